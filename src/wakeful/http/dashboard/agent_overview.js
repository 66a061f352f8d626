// An agent at a glance: why it is not running, what happens next, what it has used of today, its day, and what came of it.

import { html } from "./base.js";
import { get } from "./api.js";
import { now } from "./live.js";
import { Bar, Fault, RunLink, to, useAsked } from "./parts.js";
import { counted, lasting, State, When } from "./words.js";
import { CAUSES, From, path, Recorded, Said, Until, useNews } from "./agent_parts.js";
import { Answer } from "./agent_why.js";
import { Cost } from "./agent_cost.js";
import { Day } from "./agent_day.js";

const OPEN = ["in_progress", "pending", "failed", "blocked"];
const LAST = 6;
// What changes without an event: a quiet hour ends, a beat comes due.
const SLOWLY = 15_000;

export function Overview({ row }) {
  const { name } = row;
  const cause = row.waiting ? row.waiting.cause : "timer";
  const why = useAsked(`${name} ${cause}`, () => get(path(name, "why"), { cause }), { each: SLOWLY });
  const ahead = useAsked(name, () => get(path(name, "forecast"), { n: LAST }), { each: SLOWLY });
  const runs = useAsked(name, () => get("/v1/runs", { agent: name, limit: LAST }));
  const stuck = useAsked(name, () => get("/v1/stuck", { agent: name, limit: 5 }), { each: SLOWLY });
  const tasks = useAsked(name, () => openTasks(row), { each: SLOWLY });
  const senders = useAsked(name, () => sendersOf(name));
  useNews({ name, address: row.address }, () => Promise.all([why, ahead, runs, stuck, tasks, senders].map((asked) => asked.reload())));
  const before = runs.value && runs.value.items.find((run) => run.outcome);
  return html`
    <section class="sheet agent-first" aria-labelledby="agent-why">
      <h2 id="agent-why">Why is ${name} ${row.state === "running" ? "running" : "not running"}?</h2>
      <p class="agent-why-answer">${why.value ? html`<${Answer} why=${why.value} row=${row} />` : why.problem ? "" : "…"}</p>
      <${Fault} problem=${why.value ? null : why.problem} />
      ${row.state !== "running" && why.value && !why.value.guard && row.idle_streak > 0 && html`<p>It found nothing to do ${counted(row.idle_streak, "time")} in a row, and waits longer each time.</p>`}
      ${why.value && why.value.last_decision && why.value.last_decision.verdict !== "admit" && html`<p>Last asked: <${Recorded} wake=${why.value.last_decision} />.</p>`}
      ${row.sources.filter((source) => source.outage).map((source) => html`<p key=${`${source.source} ${source.node}`}><${State} of="failed" word="Away:" /> what it hears of by <bdi>${source.source}</bdi> since <${When} at=${source.since} />: <${Said} text=${source.outage} /></p>`)}
      <p class="agent-first-foot">${before && html`<span>Last ran <${When} at=${before.started_at || before.admitted_at} />, <${Asker} run=${before} senders=${senders.value || {}} />: <${State} of=${before.outcome} /></span>`}<a href=${to.agent(name, "why")}>Guard by guard, now or then →</a></p>
    </section>
    <div class="agent-grid">
      ${stuck.value && stuck.value.items.length > 0 && html`<${Stuck} key="stuck" name=${name} asked=${stuck} />`}
      <${Next} asked=${ahead} day=${row.day} />
      <${Today} row=${row} />
      <${Day} day=${row.day} lifecycle=${row.lifecycle} position=${row.position} />
      <${Last} name=${name} runs=${runs} senders=${senders.value || {}} />
      <${Tasks} asked=${tasks} row=${row} />
      <${Cost} name=${name} address=${row.address} of=${row.today ? row.today.usd.of : null} ended=${row.last.ended_at} />
      <${About} row=${row} stuckless=${stuck.value && stuck.value.items.length === 0} />
    </div>`;
}

// ---- what comes

function Next({ asked, day }) {
  const repeats = Object.fromEntries((day || []).map((each) => [each.state, each.repeat]));
  const times = (beat) => (repeats[beat.state] > 1 ? html` <span class="dim">${beat.hits + 1} of ${repeats[beat.state]}</span>` : "");
  const beats = asked.value ? asked.value.items : [];
  const supposed = [...new Set(beats.map((beat) => beat.assumption).filter(Boolean))];
  return html`<section class="sheet" aria-labelledby="agent-next"><h2 id="agent-next">What happens next</h2>
    ${!asked.value && html`<p class="dim">${asked.problem ? asked.problem.message : "…"}</p>`}
    ${asked.value && beats.length === 0 && html`<p class="dim">No beat is to be expected: it runs when something rings or a task is ready.</p>`}
    <ol class="agent-ahead">${beats.map((beat, index) => html`<li key=${beat.at} class=${index ? "" : "is-next"}><${Until} at=${beat.at} /> <span><${Kind} kind=${beat.kind} /> <bdi>${beat.state}</bdi>${times(beat)}</span></li>`)}</ol>
    ${supposed.map((text) => html`<p key=${text} class="dim"><${Said} text=${text} /></p>`)}
  </section>`;
}

export const Kind = ({ kind }) => html`<span class="agent-kind" title=${kind === "rem" ? "a state of rest" : "a state of work"} aria-hidden="true">${kind === "rem" ? "☾" : "☀"}</span>`;

// ---- today

function Today({ row }) {
  const { today } = row;
  if (!today) return null;
  const bars = [["Wakes by others", "wakes", ""], ["Minutes", "minutes", ""], ["Dollars", "usd", "usd"], ["Tokens", "tokens", ""]];
  return html`<section class="sheet" aria-labelledby="agent-today"><h2 id="agent-today">Today, against its limits</h2>
    <dl class="agent-today">${bars.map(([label, field, unit]) => html`<div key=${field}><dt>${label}</dt><dd><${Bar} label=${label} used=${today[field].used} of=${today[field].of} unit=${unit} />${today[field].of === null && html`<span class="dim"> no limit</span>`}</dd></div>`)}</dl>
    <p><a href=${to.agent(row.name, "settings")}>Change a limit →</a></p>
  </section>`;
}

// ---- what was

async function sendersOf(name) {
  const until = now.peek();
  const told = await get("/v1/timeline", { agents: name, since: new Date(until - 86_400_000).toISOString(), until: new Date(until).toISOString() });
  return Object.fromEntries((told.lanes[0] ? told.lanes[0].runs : []).map((run) => [run.id, run.from]));
}

export const took = (run) => (run.started_at && run.ended_at ? lasting((Date.parse(run.ended_at) - Date.parse(run.started_at)) / 1000) : "");

const Asker = ({ run, senders }) => html`asked by ${senders[run.id] ? html`<${From} name=${senders[run.id]} />` : CAUSES[run.cause]}`;

function Last({ name, runs, senders }) {
  const items = runs.value ? runs.value.items : [];
  return html`<section class="sheet" aria-labelledby="agent-last"><h2 id="agent-last">Last runs</h2>
    ${runs.value && items.length === 0 && html`<p class="dim">It has not run yet.</p>`}
    <ul class="agent-runs-brief">${items.map((run) => html`<li key=${run.id}>
      <span class="nowrap"><${State} of=${run.outcome || "running"} /></span> <span class="nowrap"><${RunLink} id=${run.id} /></span> <span class="nowrap"><${When} at=${run.started_at || run.admitted_at} /></span> <span class="dim nowrap">${run.ended_at ? took(run) : html`for <${When} at=${run.started_at || run.admitted_at} how="for" />`}</span>
      <span class="dim"><${Asker} run=${run} senders=${senders} /></span>
      <bdi class="agent-summary">${run.summary || run.reason}</bdi></li>`)}</ul>
    <p><a href=${to.agent(name, "runs")}>All runs →</a></p></section>`;
}

// ---- what is left

function Stuck({ name, asked }) {
  const { items, more } = asked.value;
  return html`<section class="sheet agent-is-stuck" aria-labelledby="agent-stuck"><h2 id="agent-stuck">Stuck: ${counted(items.length, "message")}${more ? " and more" : ""}</h2>
    <ul class="agent-list">${items.map((item) => html`<li key=${item.id}><strong><bdi>${item.subject || `message ${item.id}`}</bdi></strong> <span class="dim">from <bdi>${item.from || item.source || "outside"}</bdi>, since <${When} at=${item.since} />, shown to ${counted(item.runs, "run")}, last <${RunLink} id=${item.last_run} /></span>${item.advice && html`<br /><${Said} text=${item.advice} />`}</li>`)}</ul>
    <p><a href=${to.agent(name, "inbox")}>To its inbox →</a></p></section>`;
}

// Those that name it, and those of its roles that anybody who has them may take.
async function openTasks(row) {
  const named = get("/v1/tasks", { agent: row.name, state: OPEN, limit: 8 });
  const others = row.roles.slice(0, 4).map((role) => get("/v1/tasks", { role, state: OPEN, limit: 8 }));
  const found = new Map();
  for (const page of await Promise.all([named, ...others])) for (const task of page.items) found.set(task.id, task);
  return [...found.values()].sort((one, other) => OPEN.indexOf(one.state) - OPEN.indexOf(other.state) || one.id - other.id).slice(0, 8);
}

function Tasks({ asked, row }) {
  const tasks = asked.value || [];
  return html`<section class="sheet" aria-labelledby="agent-tasks"><h2 id="agent-tasks">Open tasks${row.open_tasks ? `: ${row.open_tasks}` : ""}</h2>
    ${asked.value && tasks.length === 0 && html`<p class="dim">None.</p>`}
    <ul class="agent-list">${tasks.map((task) => html`<li key=${task.id}><${State} of=${task.state} /> <a href=${to.task(task.id)}><bdi>${task.title}</bdi></a>${task.waiting_for && html` <span class="dim"><${Said} text=${task.waiting_for} /></span>`}${task.error && html` <span class="dim"><bdi>${task.error}</bdi></span>`}</li>`)}</ul></section>`;
}

// ---- what it is

function About({ row, stuckless }) {
  const facts = [
    ["begins", row.cadence],
    ["runs", row.runner],
    ["definition", row.definition],
    ["takes tasks of", row.roles.join(", ")],
    ["time zone", row.timezone],
    ["node", row.node],
    ["quarantined after", counted(row.max_failures, "failure")],
  ].filter(([, value]) => value);
  return html`<section class="sheet" aria-labelledby="agent-about"><h2 id="agent-about">What it is</h2>
    <dl class="facts">${facts.map(([word, value]) => html`<dt key=${`${word}-`}>${word}</dt><dd key=${word}><bdi>${value}</bdi></dd>`)}</dl>
    ${stuckless && html`<p class="dim agent-below">Nothing is stuck: no message was put before a run and left there.</p>`}
    <h3 class="agent-below">Sources</h3>
    ${row.sources.length === 0 && html`<p class="dim">None is away.</p>`}
    <ul class="agent-list">${row.sources.map((source) => html`<li key=${`${source.source} ${source.node}`}>${source.outage ? html`<${State} of="failed" word="away:" />` : html`<${State} of="done" word="there:" />`} <bdi>${source.source}</bdi>${source.outage && html` <span><${Said} text=${source.outage} />, since <${When} at=${source.since} /></span>`}</li>`)}</ul></section>`;
}
