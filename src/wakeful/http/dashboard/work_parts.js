// What the pages of runs, tasks and decisions have in common.

import { html, useEffect, useRef, useState } from "./base.js";
import { agents, now, onEvent } from "./live.js";
import { RunLink } from "./parts.js";
import { keep, place } from "./place.js";
import { cleaned } from "./escapes.js";
import { State, When, clock, grouped, lasting, plain, since } from "./words.js";

// The largest number that names a row, as far as numbers go here: "the newest".
export const NEWEST = Number.MAX_SAFE_INTEGER;

// ---- staying true

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Calls `act` after what `wants` says yes to, at most once in `each` milliseconds and never twice at a time; the last
// one is never lost, and neither is what happened while the stream was broken.
export function useHeard(wants, act, each = 1000) {
  const latest = useRef({});
  latest.current.wants = wants;
  latest.current.act = act;
  useEffect(() => {
    let busy = false;
    let again = false;
    let over = false;
    const go = async () => {
      busy = true;
      again = false;
      await Promise.resolve(latest.current.act()).catch(() => {});
      await sleep(each);
      busy = false;
      if (again && !over) go();
    };
    const hear = () => (busy ? (again = true) : go());
    const stop = onEvent((event) => (event.kind === "missed" || latest.current.wants(event)) && hear());
    return () => {
      over = true;
      stop();
    };
  }, []);
}

// ---- what is looked for

// Kept in the address, so that it can be sent to somebody: {said, settled, say}. `said` is what the inputs hold,
// `settled` what is asked for, a moment after the last key.
export function useFilters(names) {
  const { query } = place.value;
  const said = Object.fromEntries(names.map((name) => [name, query.get(name) || ""]));
  const [settled, settle] = useState(said);
  useEffect(() => {
    const timer = setTimeout(() => settle(said), 250);
    return () => clearTimeout(timer);
  }, [JSON.stringify(said)]);
  return { said, settled, say: (more) => keep({ ...said, ...more }), any: names.some((name) => said[name]) };
}

export const TASK_FILTERS = ["text", "agent", "role", "tag", "priority"];

// An input that holds what is typed, whatever else is drawn meanwhile, and says it when it is whole.
export function Typed({ label, value, say, kind = "", ...more }) {
  const [typed, set] = useState(value);
  useEffect(() => set(value), [value]);
  return html`<label class=${kind}>${label}<input ...${more} value=${typed} onInput=${(event) => set(event.target.value)} onChange=${(event) => say(event.target.value.trim())} /></label>`;
}

// Names are asked for when they are whole, text as it is typed.
export function TaskFilters({ filters }) {
  const { said, say } = filters;
  const named = (name, label, more = {}) => html`<${Typed} label=${label} name=${name} value=${said[name]} say=${(text) => say({ [name]: text })} ...${more} />`;
  return html`<form class="work-filters" role="search" aria-label="tasks" onSubmit=${(event) => event.preventDefault()}>
    <label class="grow">Search<input type="search" name="text" value=${said.text} placeholder="in titles and errors" onInput=${(event) => say({ text: event.target.value })} /></label>
    ${named("agent", "Agent", { list: "work-agents", autocomplete: "off" })} ${named("role", "Role")} ${named("tag", "Tag")}
    <label>Priority<select name="priority" value=${said.priority} onChange=${(event) => say({ priority: event.target.value })}>
      <option value="">any</option>${["urgent", "high", "normal", "low"].map((word) => html`<option value=${word}>${word}</option>`)}
    </select></label>
    ${filters.any && html`<button type="button" class="quiet" onClick=${() => say(Object.fromEntries(TASK_FILTERS.map((name) => [name, ""])))}>clear</button>`}
    <${AgentNames} />
  </form>`;
}

export const AgentNames = () => html`<datalist id="work-agents">${[...agents.value.keys()].map((name) => html`<option value=${name}></option>`)}</datalist>`;

// ---- words

export const whose = (task) => task.agent || (task.role ? `role ${task.role}` : "nobody");

export function took(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1000) return `${milliseconds}ms`;
  return milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(1)}s` : lasting(milliseconds / 1000);
}

export function size(bytes) {
  const [unit, one] = bytes >= 1e9 ? ["GB", 1e9] : bytes >= 1e6 ? ["MB", 1e6] : bytes >= 1e3 ? ["kB", 1e3] : ["B", 1];
  return `${one === 1 ? bytes : (bytes / one).toFixed(bytes / one < 10 ? 1 : 0)} ${unit}`;
}

// "used 5, limit 5"; of money "spent $0.90, limit $1.00".
export function numbers(found) {
  if (!found) return "";
  const dollars = String(found.unit || "").endsWith("usd");
  return Object.entries(found).filter(([name]) => name !== "unit").map(([name, value]) => {
    if (typeof value !== "number") return `${plain(name)} ${value}`;
    return `${plain(name)} ${dollars ? `$${value.toFixed(2)}` : grouped(value < 100 ? Math.round(value * 10) / 10 : Math.round(value))}`;
  }).join(", ");
}

// How long a run has taken, or took.
export function lasted(run) {
  if (!run.started_at) return "–";
  return run.ended_at ? took(Date.parse(run.ended_at) - Date.parse(run.started_at)) : since(run.started_at, now.value);
}

export const VERDICTS = { admit: "admitted", defer: "deferred", refuse: "refused" };

// "its timer rang", "wren woke it: blocker": why a run or a wake came to be.
export function because({ cause, from, reason }) {
  const why = reason ? `: ${reason}` : "";
  if (cause === "timer") return from ? `a beat that ${from} asked for${why}` : "its timer rang";
  if (cause === "operator") return `${from || "the operator"} asked for it${why}`;
  if (cause === "peer") return `${from || "another agent"} woke it${why}`;
  if (cause === "news") return `news came to its inbox${from ? ` from ${from}` : ""}${why}`;
  return `a task${from ? ` of ${from}` : ""} waited${why}`;
}

// ---- untrusted text, of any length

const ENOUGH = 4000;
export function Text({ text, kind = "" }) {
  const [whole, setWhole] = useState(false);
  if (!text) return null;
  const cut = !whole && text.length > ENOUGH * 1.5;
  return html`<div class=${`text work-text ${kind}`} dir="auto">${cleaned(cut ? text.slice(0, ENOUGH) : text)}${cut && "…"}</div>
    ${cut && html`<button type="button" class="quiet" onClick=${() => setWhole(true)}>show all ${grouped(text.length)} characters</button>`}`;
}

export const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function Section({ title, count, children, open = true, kind = "" }) {
  return html`<details class=${`sheet work-section ${kind}`} open=${open}><summary><h2>${title}</h2>${count !== undefined && html`<span class="dim">${grouped(count)}</span>`}</summary>${children}</details>`;
}

// ---- attempts

// The whole history of a task, the last attempt first; `here` is the run whose page this is.
export function Attempts({ attempts, here }) {
  if (!attempts.length) return html`<p class="dim">No attempt yet.</p>`;
  return html`<ol class="work-attempts" reversed>${attempts.map((attempt, index) => [attempt, index + 1]).reverse().map(([attempt, number]) => html`
    <li key=${`${attempt.run_id}-${number}`} value=${number} class=${attempt.run_id === here ? "is-here" : ""}>
      <p><strong>attempt ${number}</strong> <${State} of=${attempt.outcome || (attempt.ended_at ? "idle" : "running")} word=${attempt.outcome ? plain(attempt.outcome) : attempt.ended_at ? "ended" : "under way"} />
        <span> in ${attempt.run_id === here ? "this run" : html`<${RunLink} id=${attempt.run_id} />`}</span>
        <span class="dim"> · ${clock(attempt.started_at)}${attempt.duration_ms !== null ? ` · took ${took(attempt.duration_ms)}` : ""}${attempt.exit_code !== null && attempt.exit_code !== undefined ? ` · exit code ${attempt.exit_code}` : ""}${attempt.ended_at && !attempt.counted ? " · not counted" : ""}</span></p>
      ${attempt.error && html`<${Text} text=${attempt.error} kind="work-error" />`}
      ${attempt.output && html`<details class="work-tail"><summary>what it printed last</summary><pre class="output" tabindex="0">${cleaned(attempt.output)}</pre></details>`}
    </li>`)}</ol>`;
}

export function Steps({ steps }) {
  if (!steps || !steps.length) return null;
  return html`<${Section} title="Steps" count=${steps.length}><ul class="work-steps">${steps.map((step) => {
    const done = step.recorded ?? step.state === "done";
    return html`<li key=${`${step.task} ${step.name}`}><${State} of=${done ? "done" : "waiting"} word=${done ? "done" : "begun"} /> <strong><bdi>${cleaned(step.name)}</bdi></strong>
      ${step.at && html`<span class="dim"> · <${When} at=${step.at} /></span>`}
      ${step.result !== null && step.result !== undefined && html`<${Text} text=${pretty(step.result)} kind="mono dim" />`}</li>`;
  })}</ul></${Section}>`;
}
