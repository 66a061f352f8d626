// One agent in a row: what it is doing, its day, what it has used, what waits for it, how it ended and when it goes on.

import { html, steady } from "./base.js";
import { now } from "./live.js";
import { Bar, to } from "./parts.js";
import { clock, Doing, plain, roughly, Running, SIGNS, time } from "./words.js";
import { conditionOf, nextOf, outagesOf } from "./fleet_order.js";

const cell = (name, content) => html`<span role="cell" class=${`fleet-${name}`}>${content}</span>`;

// `acts` is given the agent and what is asked of it; `places` says whether it is worth saying where an agent runs. Rows
// are replaced, never changed.
export const Cells = steady(({ row, acts, places }) => {
  const { today } = row;
  const condition = conditionOf(row);
  return html`
    ${cell("name", html`<a href=${to.agent(row.name)} title=${row.name}>${row.name}</a>${places && row.node && html`<small class="dim">on ${row.node}</small>`}`)}
    ${cell("doing", html`<${WhatItDoes} row=${row} condition=${condition} />`)}
    ${cell("day", html`<${Day} row=${row} />`)}
    ${cell("wakes", html`<${Bar} label="wakes today" ...${today.wakes} />`)}
    ${cell("minutes", html`<${Bar} label="minutes today" used=${today.minutes.used < 10 ? today.minutes.used : Math.round(today.minutes.used)} of=${today.minutes.of} />`)}
    ${cell("usd", html`<${Bar} label="dollars today" unit="usd" ...${today.usd} />`)}
    ${cell("inbox", html`<${Count} many=${row.unread} noun="unread" href=${to.agent(row.name, "inbox")} />`)}
    ${cell("tasks", html`<${Count} many=${row.open_tasks} noun="open tasks" href=${`#/tasks?agent=${encodeURIComponent(row.name)}`} />`)}
    ${cell("last", html`<${Last} last=${row.last} />`)}
    ${cell("next", html`<${Next} row=${row} />`)}
    ${cell("acts", html`<${RowActs} row=${row} acts=${acts} />`)}`;
});

// Where what it is doing does not tell why it stands so high.
const SAID = { overdue: "beyond its limit", failing: "its last run failed" };

// One press away from the run that it is in, or from why it is in none.
function WhatItDoes({ row, condition }) {
  const running = row.run !== null;
  const [away] = outagesOf(row);
  return html`<a class=${`fleet-link is-${condition.sign}`} href=${running ? to.run(row.run) : to.agent(row.name, "why")} title=${running ? "look at this run" : "why"}
      ><i aria-hidden="true">${SIGNS[condition.sign]}</i><span><${Doing} parts=${row.doing} />${away && html`<small class="fleet-away" title=${`${away.source}: ${away.outage}`}>its source is away</small>`}${SAID[condition.name] && html`<small class="fleet-away">${SAID[condition.name]}</small>`}</span></a>${running && row.wall_clock > 0 && html`<${Elapsed} row=${row} />`}`;
}

// How much of its time a run has used.
function Elapsed({ row }) {
  const share = Math.min((now.value - time(row.run_started_at)) / 1000 / row.wall_clock, 1);
  return html`<span class="fleet-elapsed" aria-hidden="true"><span style=${{ width: `${Math.max(share, 0) * 100}%` }}></span></span>`;
}

// The lifecycle from left to right: each state as wide as it is often repeated, what lies behind dim, the present one
// filled as far as it has come.
function Day({ row }) {
  const { day, position } = row;
  if (!day.length) return html`<span class="dim fleet-cadence">${row.cadence || "when something arrives"}</span>`;
  const at = day.findIndex((each) => each.state === position.state);
  const here = day[at];
  const come = here && here.repeat > 1 ? `${position.hits} of ${here.repeat}` : "";
  const said = day.map((each) => (each.repeat > 1 ? `${each.state} ×${each.repeat}` : each.state)).join(" → ");
  return html`<span class="fleet-course" role="img" title=${`${said}; every round anew`} aria-label=${`day: ${said}; now ${position.state}${come ? `, ${come}` : ""}`}>
    <span class="fleet-states">${day.map((each, index) => html`<span key=${each.state} class=${`fleet-state is-${each.kind}${index === at ? " is-now" : index < at ? " is-past" : ""}`} style=${{ flexGrow: Math.min(each.repeat, 6) }}
      >${index === at && html`<i style=${{ width: `${Math.max(position.hits / each.repeat, 0.12) * 100}%` }}></i>`}<b>${each.state}</b></span>`)}</span>
    <span class="fleet-now">${position.kind === "rem" ? "☾ " : ""}${position.state}${come && ` ${come}`}</span>
  </span>`;
}

const Count = ({ many, noun, href }) => (many ? html`<a href=${href} aria-label=${`${many} ${noun}`}>${many}</a>` : html`<span class="dim" aria-label=${`no ${noun}`}>0</span>`);

// After a minute the seconds of what is over say nothing.
function ago(at, here) {
  const passed = (here - time(at)) / 1000;
  return `${passed < 60 || passed > 300 ? roughly(passed) : `${Math.floor(passed / 60)}m`} ago`;
}

function Last({ last }) {
  if (!last.outcome) return html`<span class="dim">never ran</span>`;
  const bad = last.outcome === "failed" || last.outcome === "killed";
  const words = html`<i aria-hidden="true">${SIGNS[last.outcome]}</i>${plain(last.outcome)} <time datetime=${last.ended_at} title=${last.ended_at}><${Running} of=${(here) => ago(last.ended_at, here)} about=${[last.ended_at]} /></time>`;
  return html`<span class=${`state is-${last.outcome}`}>${last.run ? html`<a href=${to.run(last.run)}>${words}</a>` : words}</span>
    ${bad && last.reason && html`<small class="fleet-reason text" title=${last.reason}>${last.reason}</small>`}`;
}

const FAR = 6 * 3600;

function Next({ row }) {
  const at = nextOf(row);
  if (!at) return html`<span class="dim">–</span>`;
  return html`<time datetime=${at} title=${at}><${Running} of=${(here) => soon(at, here)} about=${[at]} /></time>`;
}

// Far enough away a clock says more than a count.
function soon(at, here) {
  const left = Math.ceil((time(at) - here) / 1000);
  if (left > FAR) return clock(at, here);
  return left > 0 ? `in ${roughly(left)}` : "now";
}

// ---- what can be done

const BUTTONS = [
  ["tick", "⟳", "Tick", "its beat, now"],
  ["wake", "☼", "Wake", "have it look into its inbox, now"],
  ["message", "✉", "Message", "write to it"],
];

function RowActs({ row, acts }) {
  const held = row.state === "quarantined" || (row.paused && row.paused.scope !== "fleet");
  const [verb, sign, word] = held ? ["resume", "▶", "Resume"] : ["pause", "‖", "Pause"];
  return html`<${Press} name=${row.name} sign=${sign} word=${word} hint=${held ? "let it go on" : "nothing of it begins"} press=${() => acts(row.name, verb)} />
    ${BUTTONS.map(([each, mark, said, hint]) => html`<${Press} key=${each} name=${row.name} sign=${mark} word=${said} hint=${hint} press=${() => acts(row.name, each)} />`)}`;
}

// U+FE0E asks for the sign as text: no system shall paint it.
const Press = ({ name, sign, word, hint, press }) =>
  html`<button type="button" class="fleet-press" title=${`${word}: ${hint}`} aria-label=${`${word} ${name}`} onClick=${press}><i aria-hidden="true">${sign}${"\uFE0E"}</i><span aria-hidden="true">${word}</span></button>`;

