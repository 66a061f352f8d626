// Every verdict of the guards, newest first: who asked for whom, what was said to it, with the numbers, and what then.
//
// Laws:
// - What is read does not move: new verdicts are counted above the list, and shown when that is asked for.
// - What is looked for stands in the address.

import { html, useEffect, useState } from "./base.js";
import { get } from "./api.js";
import { now } from "./live.js";
import { AgentLink, Empty, Fault, More, RunLink, useAsked, usePages } from "./parts.js";
import { cleaned } from "./escapes.js";
import { clock, counted, grouped, money, plain, State, time, When } from "./words.js";
import { AgentNames, because, numbers, Typed, useFilters, useHeard, VERDICTS } from "./work_parts.js";

const PAGE = 100;
const [ENOUGH, MOST_LOOKS] = [30, 10];
const FILTERS = ["text", "agent", "verdict", "guard", "cause", "since", "until"];
const GUARDS = ["moot", "paused", "quiet_hours", "wakes_per_run", "cooldown", "wakes_per_day", "wakes_per_pair", "chain", "minutes_per_day", "spend", "burst", "state_gate", "busy", "slots", "check"];
const CAUSES = ["timer", "operator", "task", "peer", "news"];
const AGO = [["15m", 15], ["1h", 60], ["6h", 360], ["24h", 1440]];

// ---- filters

const TWO = (number) => String(number).padStart(2, "0");
// What an input for a local time takes, of an instant; and back.
function local(text) {
  const at = new Date(text);
  return text && !Number.isNaN(at.getTime()) ? `${String(at.getFullYear()).padStart(4, "0")}-${TWO(at.getMonth() + 1)}-${TWO(at.getDate())}T${TWO(at.getHours())}:${TWO(at.getMinutes())}` : "";
}
// Null while its year is being typed: 0002 is on the way to 2026.
function instant(text) {
  const at = new Date(text);
  if (!text) return "";
  return at.getFullYear() >= 1000 ? at.toISOString() : null;
}

function Filters({ filters }) {
  const { said, say } = filters;
  const pick = (name, label, words, word = plain) => html`<label class="is-short">${label}<select name=${name} value=${said[name]} onChange=${(event) => say({ [name]: event.target.value })}><option value="">any</option>${words.map((each) => html`<option value=${each}>${word(each)}</option>`)}</select></label>`;
  const moment = (name, label) => html`<${Typed} kind="is-moment" label=${label} type="datetime-local" name=${name} value=${local(said[name])} say=${(text) => instant(text) !== null && say({ [name]: instant(text) })} />`;
  return html`<form class="work-filters" role="search" aria-label="decisions" onSubmit=${(event) => event.preventDefault()}>
    <label class="grow">Search<input type="search" name="text" value=${said.text} placeholder="in reasons, senders and agents" onInput=${(event) => say({ text: event.target.value })} /></label>
    <${Typed} label="Agent" name="agent" value=${said.agent} say=${(agent) => say({ agent })} list="work-agents" autocomplete="off" />
    ${pick("verdict", "Verdict", Object.keys(VERDICTS), (word) => VERDICTS[word])} ${pick("guard", "Guard", GUARDS)} ${pick("cause", "Cause", CAUSES)}
    ${moment("since", "Since")} ${moment("until", "Until")}
    <span class="chips" role="group" aria-label="lately">${AGO.map(([word, minutes]) => html`<button type="button" onClick=${() => say({ since: new Date(now.peek() - minutes * 60_000).toISOString(), until: "" })}>last ${word}</button>`)}</span>
    ${filters.any && html`<button type="button" class="quiet" onClick=${() => say(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>clear</button>`}
    <${AgentNames} /></form>`;
}

// ---- one verdict

// "refused by cooldown: …", with its numbers, and from when on it may be asked again.
function Said({ row }) {
  const figures = numbers(row.numbers);
  return html`<p><${State} of=${row.verdict} word=${`${VERDICTS[row.verdict] || "not decided"}${row.guard && row.verdict !== "admit" ? ` by ${plain(row.guard)}` : ""}`} />
    ${row.reason && html` <bdi>${cleaned(row.reason)}</bdi>`}${figures && html` <span class="dim">(${figures})</span>`}</p>
    ${row.next_eligible && html`<${Next} row=${row} />`}`;
}

function Next({ row }) {
  if (time(row.next_eligible) <= now.value) return html`<p class="dim">could be asked again from <${When} at=${row.next_eligible} /> on</p>`;
  return html`<p class="work-next">${row.verdict === "defer" ? "tried again" : "may be asked again"} at <${When} at=${row.next_eligible} /> <span class="dim"><${When} at=${row.next_eligible} how="in" /></span></p>`;
}

function Verdict({ row }) {
  return html`<li class=${`work-verdict is-${row.verdict}`}>
    <p class="work-verdict-when"><${When} at=${row.at} /> <span class="dim"><${When} at=${row.at} how="ago" /></span></p>
    <p class="work-verdict-who"><strong><${AgentLink} name=${row.agent} /></strong> <span class="dim">${row.subject ? `its ${row.subject}` : ""}</span>${" "}<br /><span class="dim">because <bdi>${cleaned(because(row.reason_given ? { ...row, reason: row.reason_given } : { cause: row.cause, from: row.from }))}</bdi></span></p>
    <div class="work-verdict-what"><${Said} row=${row} /></div>
    <p class="work-verdict-links">${row.run_id ? html`<${RunLink} id=${row.run_id} /> · ` : ""}${row.wake_id !== null && html`<a href=${`#/decisions?wake=${row.wake_id}`}>wake ${row.wake_id}</a>`}</p></li>`;
}

// The last word on one wake, and what led to it.
function Wake({ id }) {
  const { value: row, problem, reload } = useAsked(id, () => get(`/v1/decisions/${encodeURIComponent(id)}`));
  useHeard((event) => event.wake_id === Number(id), reload);
  if (!row) return problem ? html`<${Fault} problem=${problem} again=${reload} />` : html`<p class="loading">…</p>`;
  const state = { waiting: "it waits", joined: `it joined wake ${row.joined}`, admitted: "it was admitted", refused: "it was refused" }[row.state] || row.state;
  return html`<section class="sheet work-wake"><h2>Wake ${id}: ${state}</h2>
    <div class="work-wake-said"><${Said} row=${row} /></div>
    <dl class="facts">
      <dt>For</dt><dd><${AgentLink} name=${row.agent} />${row.subject ? `, its ${row.subject}` : ""}</dd>
      <dt>Because</dt><dd><bdi>${cleaned(because({ ...row, reason: row.reason_given }))}</bdi>${row.by_run ? html` in <${RunLink} id=${row.by_run} />` : ""}</dd>
      <dt>Decided</dt><dd>${clock(row.at)}</dd>
      <dt>Run</dt><dd><${RunLink} id=${row.run_id} /></dd>
      ${row.joined !== null && html`<dt>Joined</dt><dd><a href=${`#/decisions?wake=${row.joined}`}>wake ${row.joined}</a></dd>`}
      <dt>Chain</dt><dd>${row.chain.depth === 0 ? "the root itself" : html`${counted(row.chain.depth, "wake")} away from its root, <a href=${`#/decisions?wake=${row.chain.root}`}>wake ${row.chain.root}</a>`}${row.lineage_usd ? `; ${money(row.lineage_usd)} had been spent on that` : ""}</dd>
    </dl>
    <p><a href=${`#/decisions?agent=${encodeURIComponent(row.agent || "")}`}>all decisions on ${row.agent}</a> · <a href="#/decisions">all decisions</a></p></section>`;
}

// ---- the list

// A search looks at a part of the past at a time: it goes on until there is something to read.
async function found(ask, cursor) {
  const items = [];
  for (let looks = 0; ; looks++) {
    const page = await ask(cursor);
    items.push(...page.items);
    cursor = page.next;
    if (cursor === null || items.length >= ENOUGH || looks === MOST_LOOKS) return { items, next: cursor };
  }
}

function List() {
  const filters = useFilters(FILTERS);
  const query = filters.settled;
  const what = JSON.stringify(query);
  const ask = (before) => get("/v1/decisions", { ...query, before, limit: PAGE });
  const pages = usePages(what, (cursor) => found(ask, cursor));
  const [fresh, setFresh] = useState(0);
  useEffect(() => setFresh(0), [what, pages.items]);
  const top = pages.items.length ? pages.items[0].event_id : 0;
  useHeard((event) => event.kind === "decided", async () => {
    if (!pages.loaded) return;
    const page = await ask(undefined);
    setFresh(page.items.filter((row) => row.event_id > top).length);
  });
  return html`<${Filters} filters=${filters} />
    <div class="work-fresh" role="status">${fresh > 0 && html`<button type="button" class="main" onClick=${pages.reload}>↑ ${fresh >= PAGE ? `${PAGE} or more` : grouped(fresh)} new</button>`}</div>
    <${Fault} problem=${pages.problem} again=${pages.reload} />
    ${pages.loaded && !pages.items.length && pages.next === null && html`<${Empty}>${filters.any ? "No verdict matches." : "Nothing has been decided yet."}</${Empty}>`}
    ${pages.loaded && !pages.items.length && pages.next !== null && html`<${Empty}>None among those looked at so far; there are older ones.</${Empty}>`}
    <ol class="work-verdicts">${pages.items.map((row) => html`<${Verdict} key=${`${row.event_id} ${row.wake_id}`} row=${row} />`)}</ol>
    <${More} pages=${pages} />`;
}

export default function Decisions() {
  const { said } = useFilters(["wake"]);
  return html`<h1>Decisions</h1>${said.wake ? html`<${Wake} key=${said.wake} id=${said.wake} />` : html`<${List} />`}`;
}
