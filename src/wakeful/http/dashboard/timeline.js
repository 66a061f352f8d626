// The timeline: a lane for each agent, from the last hours to what is expected of the next.
//
// Laws:
// - What is looked at (stretch, filter, table) stays through every update and is kept in the address.
// - Lanes are as many as there are agents; those in sight are made, asked for and painted (parts.js, timeline_data.js).
// - Left of the line is what happened; right of it what is expected, and hollow.

import { batch, effect, html, signal, untracked, useEffect, useLayoutEffect, useMemo, useRef } from "./base.js";
import { agents, loaded, now } from "./live.js";
import { Empty, Fault, Rows } from "./parts.js";
import { keep, place } from "./place.js";
import { Arrows } from "./timeline_arrows.js";
import { again, begin, changes, inSight, laneOf, problem } from "./timeline_data.js";
import { pressed, useHands } from "./timeline_hands.js";
import { Lane } from "./timeline_lanes.js";
import { endOf } from "./timeline_marks.js";
import { followPalette, HEIGHT } from "./timeline_paint.js";
import { dayWords, follow, following, goOn, HOUR, move, PRESETS, rested, settle, stand, ticks, toPixel, view, width, zoom } from "./timeline_scale.js";
import { Lately, Legend, Table, Tip } from "./timeline_words.js";
import { clock, counted, partsText, plain, SIGNS } from "./words.js";

const STATES = ["running", "waiting", "idle", "paused", "quarantined", "disabled"];
const NARROW = matchMedia("(max-width: 700px)");
const ABOVE = 24;
const PATH = "/timeline";
// How much of the past is shown to somebody who did not say.
const FIRST = () => (NARROW.matches ? HOUR : 6 * HOUR);

const find = signal("");
const state = signal("");
const table = signal(false);
const narrow = signal(NARROW.matches);
let written = "";
let own = null;

// ---- the address

// What stands in the address counts, and what does not stand there is as it was at first.
function recall() {
  const { query } = place.peek();
  const [since, until] = ["since", "until"].map((name) => Date.parse(query.get(name)));
  const past = Number(query.get("past")) * 1000;
  batch(() => {
    if (until > since) stand({ since, until });
    else follow(past || FIRST());
    settle();
    find.value = query.get("find") || "";
    state.value = query.get("state") || "";
    table.value = query.get("as") === "table";
  });
  written = said();
  own = location.hash;
}

function said() {
  const { since, until } = rested.value;
  const stretch = following.value ? { past: following.value === FIRST() ? "" : Math.round(following.value / 1000) } : { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
  return JSON.stringify({ ...stretch, find: find.value, state: state.value, as: table.value ? "table" : "" });
}

function remember() {
  const text = said();
  const moving = !following.value && rested.value !== view.peek();
  if (moving || text === written || place.peek().path !== PATH) return;
  written = text;
  keep(JSON.parse(text));
  own = location.hash;
}

// Somebody went to another address of this page.
function arrive() {
  if (place.value.path === PATH && location.hash !== own) untracked(recall);
}

// ---- which lanes

function wanted() {
  const texts = find.value.toLowerCase().split(",").map((text) => text.trim()).filter(Boolean);
  const found = [];
  for (const row of agents.value.values()) {
    if (state.value && row.state !== state.value) continue;
    const said = texts.length ? `${row.name} ${partsText(row.doing, now.peek())}`.toLowerCase() : "";
    if (texts.length && !texts.some((text) => said.includes(text))) continue;
    found.push(row.name);
  }
  return found;
}

// The same list as long as the same names are in it.
function useNames() {
  const kept = useRef([]);
  const found = wanted();
  if (found.length !== kept.current.length || found.some((name, index) => name !== kept.current[index])) kept.current = found;
  return kept.current;
}

// ---- parts of the page

function Tools({ names }) {
  const past = following.value;
  return html`<div class="bar-of-tools timeline-tools">
    <h1>Timeline</h1>
    <input type="search" aria-label="find lanes" placeholder="find: names, or what they are doing" value=${find.value} onInput=${(event) => (find.value = event.target.value)} />
    <select aria-label="state" value=${state.value} onChange=${(event) => (state.value = event.target.value)}>
      <option value="">any state</option>${STATES.map((each) => html`<option key=${each} value=${each}>${plain(each)}</option>`)}
    </select>
    <span class="chips" role="group" aria-label="how much">${PRESETS.map(([long, word]) => html`<button key=${word} type="button" aria-pressed=${past === long} onClick=${() => follow(long)}>${word}</button>`)}</span>
    <span class="timeline-steps" role="group" aria-label="move and zoom">
      <button type="button" aria-label="earlier" title="earlier (←)" onClick=${() => move(-0.5)}>◀</button>
      <button type="button" aria-label="later" title="later (→)" onClick=${() => move(0.5)}>▶</button>
      <button type="button" aria-label="zoom out" title="zoom out (−, ctrl and wheel)" onClick=${() => zoom(2)}>−</button>
      <button type="button" aria-label="zoom in" title="zoom in (+, ctrl and wheel)" onClick=${() => zoom(0.5)}>+</button>
      <button type="button" class="timeline-now" aria-pressed=${past !== null} title="follow the clock (n)" onClick=${() => follow()}>now</button>
    </span>
    <button type="button" aria-pressed=${table.value} onClick=${() => (table.value = !table.value)}>as a table</button>
    <span class="dim" role="status">${counted(names.length, "lane")}</span>
  </div>`;
}

const ZONE = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });
const zoneOf = (at) => ZONE.formatToParts(at).find((part) => part.type === "timeZoneName").value;

// Those that hold all lanes, as any of them tells.
function fleetPauses() {
  const [name] = changes.value < 0 ? [] : inSight();
  const lane = name && laneOf(name).peek();
  return lane ? lane.marks.areas.filter((area) => area.kind === "pause" && area.of.scope === "fleet") : [];
}

function Hours() {
  const ref = useRef(null);
  const wide = width.value;
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => (width.value = Math.round(entry.contentRect.width)));
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  const stretch = view.value;
  const line = toPixel(now.value, stretch, wide);
  const held = fleetPauses().filter((pause) => pause.at < stretch.until && endOf(pause, now.value) > stretch.since);
  const isFree = (x, half) => x > half && x < wide - half && Math.abs(x - line) > 44 + half;
  const shown = ticks(stretch, wide).filter((tick) => isFree(toPixel(tick.at, stretch, wide), tick.day ? 36 : 18));
  return html`<div role="row" class="rows-head timeline-head-row">
    <div role="columnheader" class="timeline-day"><strong>${dayWords(Math.max(stretch.since, Math.min(now.value, stretch.until)))}</strong> <small>${zoneOf(now.value)}</small></div>
    <div role="columnheader" class=${`timeline-hours${held.length ? " is-held" : ""}`} ref=${ref} aria-label="hours">
      ${shown.map((tick) => html`<span key=${tick.at} class=${tick.day ? "is-day" : ""} style=${{ left: `${toPixel(tick.at, stretch, wide)}px` }}>${tick.label}</span>`)}
      ${held.map((pause) => html`<small key=${pause.key} class="timeline-held" style=${{ left: `${Math.max(toPixel(pause.at, stretch, wide), 0)}px` }}>${SIGNS.paused} fleet paused by ${pause.of.owner}${pause.of.reason ? `: ${pause.of.reason}` : ""}</small>`)}
      ${line >= 0 && line <= wide && html`<strong key="now" class="timeline-flag" style=${{ left: `${Math.min(Math.max(line, 36), wide - 36)}px` }}>now ${clock(new Date(now.value).toISOString(), now.value).slice(0, 5)}</strong>`}
      ${line < 0 && html`<span key="ahead" class="timeline-beyond">all of it expected</span>`}
    </div>
  </div>`;
}

function Chart({ names }) {
  const ref = useRef(null);
  useHands(ref);
  const order = useMemo(() => new Map(names.map((name, index) => [name, index])), [names]);
  const row = { height: HEIGHT + (narrow.value ? ABOVE : 0), above: narrow.value ? ABOVE : 0 };
  return html`<div class="timeline-chart" ref=${ref} tabindex="0" role="group" aria-label="lanes; arrow keys move in time, plus and minus zoom, n is now">
    <${Rows} kind="timeline-rows" label="lanes" items=${names} height=${row.height} by=${(name) => name} head=${html`<${Hours} />`} row=${(name) => html`<${Lane} name=${name} />`} />
    <div class="timeline-over"><${Arrows} order=${order} row=${row} /></div>
  </div>`;
}

export default function Timeline() {
  useLayoutEffect(() => effect(arrive), []);
  useEffect(() => {
    const turned = () => (narrow.value = NARROW.matches);
    NARROW.addEventListener("change", turned);
    const ends = [begin(), followPalette(), effect(() => void (now.value && untracked(goOn))), effect(remember), () => NARROW.removeEventListener("change", turned)];
    return () => ends.forEach((end) => end());
  }, []);
  const names = useNames();
  const chosen = useMemo(() => new Set(names), [names]);
  const keys = (event) => pressed(event, names);
  return html`<section class="timeline" onKeyDown=${keys}>
    <${Tools} names=${names} />
    <${Fault} problem=${problem.value} again=${again} />
    <${Lately} names=${chosen} />
    ${!table.value && html`<${Legend} />`}
    ${loaded.value && names.length === 0 ? html`<${Empty}>${agents.value.size ? "No lane is like that." : "No agent is declared."}</${Empty}>` : table.value ? html`<${Table} names=${names} />` : html`<${Chart} names=${names} />`}
    <${Tip} />
  </section>`;
}
