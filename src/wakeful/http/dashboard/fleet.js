// The fleet: one row per agent, who needs somebody first.
//
// Laws:
// - What is looked for stands in the address. What is live changes what stands in a row, never what was typed or chosen.
// - Nothing moves under a hand: while somebody points at the rows, types in them or has just done so, they keep their
//   places.

import { computed, html, signal, useCallback, useEffect, useMemo, useRef, useState } from "./base.js";
import { key, post } from "./api.js";
import { agents, loaded, status, touch } from "./live.js";
import { Dialog, Empty, Fault, note, Rows } from "./parts.js";
import { askToPause, resuming } from "./pause.js";
import { keep, place } from "./place.js";
import { clock, grouped, plain, SIGNS } from "./words.js";
import { asBefore, COLUMNS, countsOf, matching, needs, ordered, read, write } from "./fleet_order.js";
import { Cells } from "./fleet_row.js";
import { Lately, Stuck } from "./fleet_lately.js";

const STEADY = 2_000;

// ---- how wide

// A table where there is room for one; then two lines for each agent, then a card.
const WIDTHS = [["table", "(min-width: 1200px)", 46], ["lines", "(min-width: 701px)", 84], ["cards", "all", 190]];
const queries = WIDTHS.map(([, query]) => matchMedia(query));
const measure = () => WIDTHS[queries.findIndex((query) => query.matches)];
const width = signal(measure());
for (const query of queries) query.addEventListener("change", () => (width.value = measure()));

// ---- the page

const rows = computed(() => [...agents.value.values()]);
const places = computed(() => Boolean(status.value && status.value.shared));
const counts = computed(() => countsOf(rows.value));
const needy = computed(() => rows.value.filter(needs).length);

export default function Fleet() {
  const asked = read(place.value.query);
  const ask = (more) => keep(write({ ...asked, ...more }));
  const found = useMemo(() => ordered(matching(rows.value, asked), asked), [rows.value, place.value]);
  const [shown, hold] = useSteady(found);
  const [open, setOpen] = useState(null);
  const acts = useCallback((name, verb) => (verb in AT_ONCE ? AT_ONCE[verb](name) : setOpen({ name, verb })), []);
  const [shape, , height] = width.value;
  const draw = useCallback((row) => html`<${Cells} row=${row} acts=${acts} places=${places.value} />`, [acts, places.value]);
  if (!loaded.value) return html`<h1>Fleet</h1><p class="loading">asking for the fleet…</p>`;
  return html`<section class=${`fleet is-${shape}`}>
    <${Lately} />
    <${Stuck} />
    <${Tools} asked=${asked} ask=${ask} shape=${shape} many=${found.length} />
    ${found.length === 0 && shown.length === 0
      ? html`<${Nobody} asked=${asked} all=${() => ask({ states: [], text: "" })} />`
      : html`<div onPointerMove=${hold} onPointerDown=${hold} onFocusIn=${hold} onKeyDown=${(event) => (hold(), step(event))}>
          <${Rows} items=${shown} height=${height} by=${(row) => row.name} label="agents" kind=${`fleet-rows is-${shape}`}
            mark=${(row) => `fleet-row is-${row.state}${needs(row) ? " is-needy" : ""}`}
            head=${shape === "table" && html`<${Head} asked=${asked} ask=${ask} />`}
            row=${draw} />
        </div>`}
    ${open && html`<${Asking} key=${`${open.verb} ${open.name}`} ...${open} close=${() => setOpen(null)} />`}
  </section>`;
}

// The rows in the order that they had, for as long as somebody is at them; and how to say that somebody is.
function useSteady(found) {
  const [until, setUntil] = useState(0);
  const before = useRef({ query: place.value, names: [] });
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const hold = () => {
    const end = Date.now() + STEADY;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setUntil(0), STEADY);
    setUntil((old) => (old > Date.now() ? old : end));
  };
  const held = until > 0 && before.current.query === place.value;
  const shown = held ? asBefore(before.current.names, found, agents.value) : found;
  before.current = { query: place.value, names: shown.map((row) => row.name) };
  return [shown, hold];
}

// Up and down go from row to row, to the same thing in it.
function step(event) {
  const ahead = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = event.target.closest(".fleet-row");
  if (!ahead || !row || event.altKey || event.ctrlKey || event.metaKey) return;
  const next = ahead > 0 ? row.nextElementSibling : row.previousElementSibling;
  if (!next) return;
  event.preventDefault();
  const place = event.target.closest('[role="cell"]');
  const same = place && next.querySelector(`.${place.classList[0]} :is(a, button)`);
  (same || next.querySelector("a")).focus();
}

// ---- above the rows

function Tools({ asked, ask, shape, many }) {
  const all = rows.value;
  const wanting = needy.value;
  const toggle = (name) => ask({ states: asked.states.includes(name) ? asked.states.filter((each) => each !== name) : [...asked.states, name] });
  const whole = !asked.states.length && !asked.text;
  return html`
    <div class="fleet-title"><h1>Fleet</h1>
      <p class=${wanting ? "fleet-needy" : "dim"}>${wanting ? html`<i aria-hidden="true">▲</i> ${wanting === 1 ? "1 agent needs" : `${grouped(wanting)} agents need`} attention` : all.length ? "nobody needs attention" : ""}</p>
      ${!whole && html`<p class="dim">${`showing ${grouped(many)} of ${grouped(all.length)}`}</p>`}</div>
    <div class="bar-of-tools">
      <input type="search" aria-label="search agents" placeholder="search name, state, words (press /)" value=${asked.text} onInput=${(event) => ask({ text: event.target.value })} />
      <div class="chips" role="group" aria-label="filter by state">
        <button type="button" aria-pressed=${whole} onClick=${() => ask({ states: [], text: "" })}>all ${grouped(all.length)}</button>
        ${counts.value
          .filter((each) => each.many || asked.states.includes(each.name))
          .map((each) => html`<button key=${each.name} type="button" class=${`is-${each.sign}`} aria-pressed=${asked.states.includes(each.name)} onClick=${() => toggle(each.name)}><i aria-hidden="true">${SIGNS[each.sign]}</i> ${each.name} ${grouped(each.many)}</button>`)}
      </div>
      ${shape !== "table" && html`<${Order} asked=${asked} ask=${ask} />`}
    </div>`;
}

// Where there are no columns to press.
function Order({ asked, ask }) {
  const choose = (event) => {
    const column = COLUMNS.find((each) => each.name === event.target.value);
    ask({ column, down: Boolean(column.down) });
  };
  return html`<span class="fleet-order"><label>order by <select value=${asked.column.name} onChange=${choose}>${COLUMNS.map((each) => html`<option key=${each.name} value=${each.name}>${each.name === "attention" ? "needs attention" : each.word.toLowerCase()}</option>`)}</select></label>
    <button type="button" aria-label=${asked.down ? "largest first; turn round" : "smallest first; turn round"} onClick=${() => ask({ down: !asked.down })}>${asked.down ? "▼" : "▲"}</button></span>`;
}

function Head({ asked, ask }) {
  const press = (column) => ask(column === asked.column ? { down: !asked.down } : { column, down: Boolean(column.down) });
  return html`<div role="rowgroup"><div role="row" class="rows-head fleet-head">
    ${COLUMNS.map((column) => {
      const here = column === asked.column;
      return html`<span key=${column.name} role="columnheader" class=${`fleet-${column.name}`} aria-sort=${here ? (asked.down ? "descending" : "ascending") : "none"}>
        <button type="button" class="quiet" title=${column.hint || `order by ${column.word.toLowerCase()}`} onClick=${() => press(column)}>${column.word}<i aria-hidden="true">${here ? (asked.down ? "▼" : "▲") : ""}</i></button></span>`;
    })}
    <span role="columnheader" class="fleet-acts">Do</span>
  </div></div>`;
}

function Nobody({ asked, all }) {
  if (!rows.value.length) return html`<${Empty}>No agents yet: they are taken up from the fleet file.</${Empty}>`;
  const said = [asked.states.length && asked.states.join(" or "), asked.text && `“${asked.text}”`].filter(Boolean).join(", ");
  return html`<${Empty}>No agent is ${said} at the moment. <button type="button" onClick=${all}>Show all ${grouped(rows.value.length)}</button></${Empty}>`;
}

// ---- what can be done

// The answer of the guards in one line.
function reply(name, { verdict, guard, reason, run_id: run, next_eligible: at }) {
  if (verdict === "admit") return note(`${name}: begun${run ? `, run ${run}` : ""}`);
  const when = at ? `, again ${clock(at)}` : "";
  return note(`${name}: ${verdict === "refuse" ? "refused" : "deferred"}${guard ? ` by ${plain(guard)}` : ""}: ${reason}${when}`, verdict === "refuse" ? "bad" : "");
}

async function tick(name) {
  try {
    reply(name, await post(`/v1/agents/${encodeURIComponent(name)}/tick`, {}, { headers: { "idempotency-key": key() } }));
    touch(name);
  } catch (problem) {
    note(`${name}: ${problem.message}`, "bad");
  }
}

const AT_ONCE = { tick, pause: askToPause, resume: resuming };

// The dialogs of the agent's own page, taken from there when they are first wanted.
function Asking({ name, verb, close }) {
  const [found, setFound] = useState({});
  useEffect(() => {
    Promise.all([import("./agent_acts.js"), import("./agent_compose.js")]).then(
      ([{ Ask, WAKE }, { Compose }]) => setFound({ Ask, WAKE, Compose }),
      (problem) => setFound({ problem }),
    );
  }, []);
  const { Ask, WAKE, Compose, problem } = found;
  if (problem) return html`<${Dialog} title=${name} close=${close}><${Fault} problem=${problem} /></${Dialog}>`;
  if (!Ask) return null;
  return verb === "wake"
    ? html`<${Ask} name=${name} verb="wake" title=${`Wake ${name}`} close=${close} fields=${WAKE} about="It looks into its inbox now, if the guards let it. With a message, that is what it finds there first." button="Wake it" />`
    : html`<${Dialog} title=${`Message to ${name}`} close=${close}><${Compose} name=${name} close=${close} /></${Dialog}>`;
}
