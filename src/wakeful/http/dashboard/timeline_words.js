// The timeline said in words: beside what is pointed at, as who woke whom lately, as a table, as a legend.

import { html, useEffect, useRef, useState } from "./base.js";
import { now } from "./live.js";
import { AgentLink, Empty } from "./parts.js";
import { arrows } from "./timeline_arrows.js";
import { changes, keepInSight, laneOf } from "./timeline_data.js";
import { hovered } from "./timeline_hands.js";
import { endOf, words } from "./timeline_marks.js";
import { paintSample, palette } from "./timeline_paint.js";
import { rested, view } from "./timeline_scale.js";
import { clock, counted, plain } from "./words.js";

// ---- beside what is pointed at

export function Tip() {
  const point = hovered.value;
  const lane = point && laneOf(point.agent).value;
  const mark = lane && lane.marks.all.find((each) => each.key === point.key);
  if (!mark) return null;
  const { title, sign, lines } = words(mark, lane, now.value);
  const page = document.body.clientWidth;
  const wide = Math.min(380, page - 16);
  const place = { left: `${Math.max(Math.min(point.x + 14, page - wide - 8), 8)}px`, width: `${wide}px` };
  // Below what is pointed at, or above it where there is no room below.
  if (point.y > window.innerHeight * 0.6) place.bottom = `${window.innerHeight - point.y + 18}px`;
  else place.top = `${point.y + 18}px`;
  return html`<div class=${`timeline-tip is-${mark.state}`} role="tooltip" style=${place}>
    <p class=${`state is-${mark.state}`}><i aria-hidden="true">${sign}</i><strong>${point.agent}: ${title}</strong></p>
    ${lines.map((line) => html`<p class="text">${line}</p>`)}
    ${point.by === "touch" && html`<p class="dim">touch it again to open it</p>`}
  </div>`;
}

// ---- lately

const MOST_LATELY = 5;

// The last wake of each by each.
function lately(names) {
  const last = new Map();
  for (const arrow of arrows.value) if (names.has(arrow.agent) && arrow.at >= view.peek().since) last.set(JSON.stringify([arrow.from, arrow.agent]), arrow);
  return [...last.values()].sort((one, other) => other.at - one.at).slice(0, MOST_LATELY);
}

const HOW = { admit: "woke", defer: "asked for", refuse: "asked for" };

function Woke({ arrow }) {
  const { of, href, final: state } = arrow.mark;
  const moment = clock(new Date(arrow.at).toISOString(), now.value);
  return html`<li><a href=${href}><strong>${arrow.from}</strong> ${HOW[state]} <strong>${arrow.agent}</strong> ${moment}${state === "admit" ? "" : `, ${state === "defer" ? "deferred" : "refused"} by ${plain(of.guard || "the door")}`}</a></li>`;
}

export function Lately({ names }) {
  const found = lately(names);
  return html`<div class="timeline-lines"><h2>Lately</h2>
    <ul>${found.length ? found.map((arrow) => html`<${Woke} key=${arrow.key} arrow=${arrow} />`) : html`<li class="dim">nobody was woken by another</li>`}</ul></div>`;
}

// ---- a table

const LANES_AT_ONCE = 25;
const MOST_ROWS = 200;

function Kept({ name }) {
  useEffect(() => keepInSight(name), []);
  return null;
}

export function Table({ names }) {
  const [many, setMany] = useState(LANES_AT_ONCE);
  const shown = names.slice(0, many);
  const { since, until } = rested.value;
  const at = now.peek();
  const marks = changes.value < 0 ? [] : shown.flatMap((name) => {
    const lane = laneOf(name).peek();
    return lane ? lane.marks.all.filter((mark) => mark.at <= until && endOf(mark, at) >= since).map((mark) => ({ mark, lane })) : [];
  });
  const past = marks.filter(({ mark }) => mark.at <= at && mark.kind !== "ahead").sort((one, other) => other.mark.at - one.mark.at);
  const next = marks.filter(({ mark }) => mark.at > at || mark.kind === "ahead").sort((one, other) => one.mark.at - other.mark.at);
  return html`<div>
    ${shown.map((name) => html`<${Kept} key=${name} name=${name} />`)}
    <p class="dim">${clock(new Date(since).toISOString(), at)} to ${clock(new Date(until).toISOString(), at)}.
      ${names.length > many && html`<span> The first ${many} of ${counted(names.length, "lane")}. <button type="button" onClick=${() => setMany(many + LANES_AT_ONCE)}>show more lanes</button></span>`}</p>
    <div class="timeline-tables"><${Part} title="What happened, the latest first" marks=${past} at=${at} none="Nothing happened in this stretch." /><${Part} title="What is expected, the next first" marks=${next} at=${at} none="Nothing is expected in this stretch." /></div>
  </div>`;
}

function Part({ title, marks, at, none }) {
  return html`<section class="sheet" aria-label=${title}><h2>${title}</h2>
    ${marks.length > MOST_ROWS && html`<p class="dim">${MOST_ROWS} of ${marks.length}: zoom in for the others.</p>`}
    ${marks.length === 0 ? html`<${Empty}>${none}</${Empty}>` : html`<div class="scroll-x" role="region" aria-label=${`${title}, a table`} tabindex="0"><table class="timeline-table">
      <thead><tr><th scope="col">When</th><th scope="col">Agent</th><th scope="col">What</th><th scope="col">In words</th></tr></thead>
      <tbody>${marks.slice(0, MOST_ROWS).map(({ mark, lane }) => html`<${Line} key=${`${lane.agent} ${mark.key}`} mark=${mark} lane=${lane} at=${at} />`)}</tbody>
    </table></div>`}
  </section>`;
}

function Line({ mark, lane, at }) {
  const { title, sign, lines } = words(mark, lane, at);
  return html`<tr><td class="nowrap">${clock(new Date(mark.at).toISOString(), at)}</td><td><${AgentLink} name=${lane.agent} /></td>
    <td class="nowrap"><a class=${`state is-${mark.state}`} href=${mark.href}><i aria-hidden="true">${sign}</i>${title}</a></td><td class="text">${lines.join("\n")}</td></tr>`;
}

// ---- the legend

const SAMPLES = [
  ["running", "running"], ["done", "done"], ["no_work", "no work"], ["failed", "failed"], ["killed", "killed"], ["admit", "wake admitted"], ["defer", "deferred"],
  ["refuse", "refused"], ["ahead", "expected"], ["quiet", "quiet hours"], ["pause", "paused"],
];

function Sample({ what }) {
  const ref = useRef(null);
  const colours = palette.value;
  useEffect(() => void (colours && paintSample(ref.current, what, colours)), [colours]);
  return html`<canvas ref=${ref} aria-hidden="true" class="timeline-sample"></canvas>`;
}

export function Legend() {
  return html`<details class="timeline-legend" open=${window.innerWidth > 700}><summary>Legend</summary>
    <ul>${SAMPLES.map(([what, said]) => html`<li key=${what}><${Sample} what=${what} />${said}</li>`)}<li><svg class="timeline-sample" aria-hidden="true" viewBox="0 0 30 20"><path class="timeline-arrow is-admit is-meant" d="M4,3 C4,12 14,14 24,14" /><path class="timeline-head is-admit" d="M20,10 L28,14 L20,18 z" /></svg>who woke whom</li></ul>
  </details>`;
}
