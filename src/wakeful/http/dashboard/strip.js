// What holds for the whole fleet, on every page: whether what you see is true, what is wrong, what today cost and what
// happens next.

import { computed, html } from "./base.js";
import { agents, connection, loaded, now, status } from "./live.js";
import { Bar } from "./parts.js";
import { fleetPauses } from "./pause.js";
import { clock, counted, lasting, money, partsText, roughly, since, time } from "./words.js";
import { nextOf } from "./fleet_order.js";

// ---- whether it is true

// A moment without a stream is nobody's worry.
const SHORT = 1500;
const age = () => Math.max(now.value - connection.value.since, 0);
// Nobody may have followed for long before it broke.
const old = () => Math.max(now.value - connection.value.fresh, age());

export function Connection() {
  const { state, why } = connection.value;
  if (state === "live") return html`<span class="connection is-live" role="status"><i aria-hidden="true">●</i> live</span>`;
  if (state === "connecting" || age() < SHORT) return html`<span class="connection" role="status">connecting…</span>`;
  return html`<span class="connection is-stale" role="status" title=${why ? why.message : ""}><i aria-hidden="true">▲</i> stale</span>`;
}

// Said once to whoever listens; only the eye is shown how the seconds pass.
export function Stale() {
  const { state, why } = connection.value;
  if (state !== "stale" || age() < SHORT) return null;
  return html`<div class="banner is-stale" role="alert"><p><strong>▲ NOT LIVE</strong> ${why ? why.message : "the engine does not answer"}${why && why.remedy ? ` (${why.remedy})` : ""}.
    What you see is <span aria-hidden="true">${lasting(old() / 1000)}</span> old. It is tried again by itself.</p></div>`;
}

// ---- what is wrong

const MOST = 4;
// Its place is told once: most outages name it themselves.
const blind = ({ source, outage }) => (outage.includes(source.replace(/^\w+\+/, "")) ? outage : `${source}: ${outage}`);

export function Troubles() {
  const told = status.value;
  if (!told) return null;
  const lines = [];
  const some = (rows, words, noun) => {
    lines.push(...rows.slice(0, MOST).map(words));
    if (rows.length > MOST) lines.push(`and ${counted(rows.length - MOST, noun)}`);
  };
  if (told.engine === null && !told.shared) lines.push("no engine: nothing begins by itself (start one: wakeful up)");
  else if (told.engine && !told.engine.ready) lines.push(`the engine is not ready: ${told.engine.why_not}`);
  const gone = told.shared ? told.nodes.filter((node) => node.state !== "up" && node.runs) : [];
  some(gone, (node) => `node ${node.name} ${node.state === "left" ? "left" : "is lost, last seen"} ${since(node.seen_at)} ago, with ${counted(node.runs, "run")} open`, "more node");
  some(told.outages, (outage) => `${outage.agent}: ${blind(outage)}${outage.since ? `, since ${clock(outage.since)}` : ""}`, "more outage");
  some(told.untaken, (row) => `${counted(row.tasks, "open task")} for ${row.agent || `role ${row.role}`} that nobody can take`, "more that nobody can take");
  some(told.diagnostics, (said) => said, "more fault of the fleet file");
  return lines.length ? html`<div class="banner is-trouble" role="region" aria-label="troubles">${lines.map((line) => html`<p key=${line} class="text">▲ ${line}</p>`)}</div>` : null;
}

// ---- what today cost, what happens next

const AHEAD = 3;
const beats = computed(() => {
  const found = [];
  for (const row of agents.value.values()) {
    if (row.state !== "idle" && row.state !== "waiting") continue;
    const at = nextOf(row);
    if (at) found.push({ name: row.name, at, row });
  }
  return found.sort((a, b) => (a.at < b.at ? -1 : 1)).slice(0, AHEAD);
});

function soon(at) {
  const left = Math.ceil((time(at) - now.value) / 1000);
  return left > 0 ? `in ${roughly(left)}` : "now";
}

const Label = () => html`<a href="#/?sort=next" title="the whole fleet by its next beats">next</a>`;

function Next() {
  const [pause] = fleetPauses();
  if (pause) return html`<span class="summary-next"><${Label} /> nothing, ${pause.until ? `until ${clock(pause.until)}` : "until somebody resumes"}</span>`;
  if (!beats.value.length) return html`<span class="summary-next"><${Label} /> nothing is due</span>`;
  return html`<span class="summary-next"><${Label} /> ${beats.value.map(({ name, at, row }, index) => html`<span key=${name} title=${partsText(row.doing)}>${index > 0 && " · "}<b>${name}</b> ${soon(at)}</span>`)}</span>`;
}

export function Summary() {
  const told = status.value;
  if (!told || !loaded.value) return html`<p class="summary dim">…</p>`;
  const { fleet } = told;
  const running = new Set(told.open_runs.map((run) => run.agent)).size;
  const spent = fleet.spent || { usd: sum(), of_usd: null };
  return html`<p class="summary">
    <strong class="summary-title">${fleet.title || "fleet"}</strong>
    <span class="summary-cost" title=${`today: ${money(spent.usd)}`}><b>today</b> <${Bar} label="dollars of the fleet today" unit="usd" used=${spent.usd} of=${spent.of_usd} /></span>
    <${Next} />
    <span class="summary-rest">${counted(fleet.agents, "agent")}${running ? `, ${running} running` : ""}</span>
    <span class="summary-rest">sessions ${fleet.sessions.taken} of ${fleet.sessions.of}</span>
    <span class="summary-rest">workers ${fleet.workers.taken} of ${fleet.workers.of}</span>
    ${told.shared && html`<span>${counted(told.nodes.filter((node) => node.state === "up").length, "node")} up</span>`}
  </p>`;
}

// What is used behind an address is told of each of its replicas.
function sum() {
  const used = new Map();
  for (const row of agents.value.values()) used.set(row.address, row.today.usd.used);
  return [...used.values()].reduce((all, each) => all + each, 0);
}
