// The pause button: one for the fleet, one for each agent; the banner that cannot be missed; the receipt.
//
// Law: the receipt is a promise of the server's: from then on nothing begins there, by any path. What it lists as still
// running is followed until it has ended.

import { computed, effect, html, signal, useState } from "./base.js";
import { post } from "./api.js";
import { agents, now, status, touch } from "./live.js";
import { Act, AgentLink, Dialog, Fault, note, RunLink } from "./parts.js";
import { place } from "./place.js";
import { clock, counted, since, until } from "./words.js";

const OTHER = "other";
const DURATIONS = [["15m", "15 minutes"], ["1h", "1 hour"], ["4h", "4 hours"], ["12h", "12 hours"], ["", "until somebody resumes"], [OTHER, "other"]];

// Whom the open dialog is about: an agent's name, "" for the fleet, null for none.
const asked = signal(null);
export const askToPause = (agent = "") => (asked.value = agent);
// Whoever goes back leaves it with the page that it was asked on.
const here = computed(() => place.value.path);
effect(() => void (here.value, (asked.value = null)));

const path = (agent, verb) => (agent ? `/v1/agents/${encodeURIComponent(agent)}/${verb}` : `/v1/${verb}`);

// ---- to let go

export async function resume(agent = "") {
  const answer = await post(path(agent, "resume"));
  const whom = agent || "the fleet";
  if (answer.held_by.length) note(`${whom} is still held by ${answer.held_by.map(holder).join("; ")}`, "bad");
  else note(answer.resumed ? `${whom} goes on` : `${whom} was not paused`);
  touch(agent);
  return answer;
}

const holder = (pause) => `${pause.owner}${pause.scope === "fleet" ? " (the whole fleet)" : ""}: ${pause.reason}`;

// As a button does it: what goes wrong is said.
export const resuming = (agent = "") => resume(agent).catch((problem) => note([problem.message, problem.remedy].filter(Boolean).join(": "), "bad"));

// ---- to hold

export function PauseDialog() {
  return asked.value === null ? null : html`<${Ask} key=${asked.value} agent=${asked.value} close=${() => (asked.value = null)} />`;
}

function Ask({ agent, close }) {
  const [reason, setReason] = useState("");
  const [duration, setDuration] = useState("1h");
  const [other, setOther] = useState("");
  const [at_once, setAtOnce] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [receipt, setReceipt] = useState(null);
  const whom = agent || "the whole fleet";
  const long = duration === OTHER ? other.trim() : duration;
  const pause = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(null);
    try {
      const answer = await post(path(agent, "pause"), { reason, now: at_once, ...(long || duration === OTHER ? { duration: long } : {}) });
      setReceipt({ ...answer, came: Date.now() });
      touch(agent);
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  if (receipt) return html`<${Dialog} key="receipt" title=${`${agent || "The whole fleet"} is paused`} close=${close}><${Receipt} receipt=${receipt} agent=${agent} close=${close} /></${Dialog}>`;
  return html`<${Dialog} key="form" title=${`Pause ${whom}`} close=${close}>
    <form onSubmit=${pause}>
      <p>Nothing ${agent ? "of it " : ""}begins while the pause holds, by any path. Messages and tasks are kept.</p>
      <label>Why <input name="reason" autofocus maxlength="400" autocomplete="off" value=${reason} onInput=${(event) => setReason(event.target.value)} placeholder="what others should know" /></label>
      <fieldset><legend>For how long</legend>
        ${DURATIONS.map(([value, word]) => html`<label key=${value} class="choice"><input type="radio" name="duration" value=${value} checked=${duration === value} onChange=${() => setDuration(value)} /> ${word}</label>`)}
        ${duration === OTHER && html`<label>How long <input name="other" autocomplete="off" placeholder="90m, 2d, 1h 30m" value=${other} onInput=${(event) => setOther(event.target.value)} /></label>`}
      </fieldset>
      <label class="choice"><input type="checkbox" name="now" checked=${at_once} onChange=${(event) => setAtOnce(event.target.checked)} /> also end what runs now</label>
      <${RunsNow} agent=${agent} ends=${at_once} />
      <${Fault} problem=${problem} />
      <footer><button type="button" onClick=${close}>Cancel</button><button class="danger" disabled=${busy}>${busy ? "pausing…" : `Pause ${whom}`}</button></footer>
    </form>
  </${Dialog}>`;
}

// What the press will meet.
function RunsNow({ agent, ends }) {
  const runs = openRuns(agent);
  if (!runs.length) return html`<p class="dim">Nothing ${agent ? "of it " : ""}is running now.</p>`;
  const names = [...new Set(runs.map((run) => run.agent))];
  const alone = runs.length === 1;
  const whom = names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
  return html`<p class="dim">${counted(runs.length, "run")} under way (${whom}): ${ends ? `asked to end, and ended if ${alone ? "it does" : "they do"} not` : alone ? "it goes on to its end" : "they go on to their end"}.</p>`;
}

// An address stands for all behind it.
function openRuns(agent) {
  const runs = status.value ? status.value.open_runs : [];
  const behind = (run) => run.agent === agent || (agents.value.get(run.agent) || {}).address === agent;
  return agent ? runs.filter(behind) : runs;
}

// ---- the receipt

function Receipt({ receipt, agent, close }) {
  const open = new Set(openRuns(agent).map((run) => run.id));
  // What was asked for before the receipt came may not know of a run that it lists: that one is not over.
  const isNewer = status.value !== null && status.value.asked >= receipt.came;
  const running = receipt.running.map((run) => ({ ...run, over: isNewer && !open.has(run.id) }));
  const left = running.filter((run) => !run.over);
  return html`<div class="receipt">
    <p><strong>Nothing ${agent ? `of ${agent} ` : ""}begins any more${receipt.until ? html`, until ${clock(receipt.until)} (${until(receipt.until)})` : ", until somebody resumes"}.</strong></p>
    ${!receipt.engine && html`<p>No engine is up: the pause holds when one is.</p>`}
    ${receipt.ended.length > 0 && html`<p>Asked to end: ${receipt.ended.map((id) => html`<${RunLink} key=${id} id=${id} /> `)}</p>`}
    <p role="status" class=${`state is-${left.length ? "running" : "done"}`}><i aria-hidden="true">${left.length ? "▶" : "✔"}</i><strong>${left.length ? `Still running: ${counted(left.length, "run")}` : "Nothing is running."}</strong></p>
    ${running.length > 0 && html`<ul class="receipt-runs">${running.map((run) => html`<${Left} key=${run.id} run=${run} close=${close} />`)}</ul>`}
    <footer><button type="button" onClick=${() => (close(), resuming(agent))}>Resume</button><button type="button" class="main" autofocus onClick=${close}>Close</button></footer>
  </div>`;
}

function Left({ run, close }) {
  return html`<li><span onClick=${(event) => event.target.closest("a") && close()}><${AgentLink} name=${run.agent} /> · <${RunLink} id=${run.id} /></span>
    ${run.over ? html` · <span class="state is-done"><i aria-hidden="true">✔</i>over</span>` : html`${run.started_at && ` · for ${since(run.started_at)} `}<${Act} kind="quiet" label=${`end run ${run.id}`} act=${() => post(`/v1/runs/${run.id}/kill`)} done=${() => touch(run.agent)}>end it</${Act}>`}</li>`;
}

// ---- the banner

const held = () => (status.value ? status.value.pauses.filter((pause) => !pause.until || Date.parse(pause.until) > now.value) : []);
export const fleetPauses = () => held().filter((pause) => pause.scope === "fleet");

// Nobody shall wonder for an hour why nothing happens.
export function FleetPaused() {
  const pauses = fleetPauses();
  if (!pauses.length) return null;
  const runs = openRuns("");
  return html`<div class="banner is-fleet" role="alert">
    <p class="banner-head"><strong>‖ THE FLEET IS PAUSED</strong> <span>${runs.length ? html`nothing begins; ${counted(runs.length, "run")} still going` : "nothing runs, nothing begins"}</span>
      <button type="button" onClick=${() => resuming("")}>▶ Resume the fleet</button></p>
    ${pauses.map((pause) => html`<p key=${pause.owner}><${Held} pause=${pause} /></p>`)}
  </div>`;
}

const MOST = 4;

// Who else is held: each by a line, as long as there are few.
export function OthersPaused() {
  const pauses = held().filter((pause) => pause.scope !== "fleet");
  if (!pauses.length) return null;
  return html`<div class="banner" role="alert">
    ${pauses.slice(0, MOST).map((pause) => {
      const [name, quarantined] = [whose(pause), pause.owner === "quarantine"];
      return html`<p key=${`${pause.scope} ${pause.owner}`} class="banner-line"><strong>${quarantined ? "✖" : "‖"} ${name} ${quarantined ? "is quarantined" : "is paused"}</strong> <${Held} pause=${pause} />
        <button type="button" class="quiet" onClick=${() => resuming(name)}>Resume ${name}</button></p>`;
    })}
    ${pauses.length > MOST && html`<p><a href="#/?state=quarantined,paused">and ${counted(pauses.length - MOST, "more pause")}</a></p>`}
  </div>`;
}

const whose = (pause) => pause.scope.replace(/^agent:/, "");

function Held({ pause }) {
  const by = pause.owner === "quarantine" ? "" : `by ${pause.owner === "file" ? "a PAUSE file (remove it to resume)" : pause.owner} `;
  return html`<span class="text">${by}since ${clock(pause.since)}${pause.until ? html`, until ${clock(pause.until)} <span aria-hidden="true">(${until(pause.until)})</span>` : ", until somebody resumes"}${pause.reason ? html`: <bdi>${pause.reason}</bdi>` : ""}</span>`;
}
