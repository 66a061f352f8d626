// One task whole: what is to be done, what came of it, every attempt; and what may be done to it as it stands.

import { html, useState } from "./base.js";
import { ask, get, post } from "./api.js";
import { touch } from "./live.js";
import { AgentLink, Dialog, Fault, note, RunLink, to, useAsked } from "./parts.js";
import { go } from "./place.js";
import { cleaned } from "./escapes.js";
import { plain, State, When } from "./words.js";
import { Attempts, pretty, Section, Steps, Text, useHeard, whose } from "./work_parts.js";

const OPEN = ["pending", "in_progress", "failed", "blocked"];
const ENDED = ["completed", "cancelled", "dead_letter"];

// What may be done, from which states; what is asked for beside it, and what is said of it.
const CHANGES = [
  { verb: "retry", word: "Try again", kind: "main", may: (task) => ["failed", "blocked", "dead_letter"].includes(task.state) || (task.state === "pending" && task.due_at), said: "is taken up again" },
  { verb: "done", word: "Call it done…", may: (task) => OPEN.includes(task.state), field: "result", label: "What came of it", says: "Nobody works on it any more; those that depend on it may begin.", said: "is done" },
  { verb: "fail", word: "Give it up…", may: (task) => OPEN.includes(task.state), field: "reason", label: "Why", says: "It is not tried again, and stands among the dead letters, from where it can be replayed.", said: "is given up" },
  { verb: "cancel", word: "Cancel it…", may: (task) => OPEN.includes(task.state), field: "reason", label: "Why", says: "It is nobody's any more; a worker that is at it is stopped.", said: "is cancelled" },
  { verb: "remove", word: "Remove it…", kind: "danger", may: (task) => ENDED.includes(task.state), says: "The task and its history are gone for good; only the events tell of it.", said: "is gone" },
];

// What is removed here is not asked for again, although its end may be heard of before it is answered.
const removing = new Set();

async function apply(task, { verb, field }, text) {
  if (verb !== "remove") return post(`/v1/tasks/${task.id}/${verb}`, field && text ? { [field]: text } : {});
  removing.add(task.id);
  try {
    return await ask("DELETE", `/v1/tasks/${task.id}`);
  } catch (error) {
    removing.delete(task.id);
    throw error;
  }
}

function Change({ task, change, close, changed }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const act = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      changed(await apply(task, change, text), change);
      close();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  const word = change.word.replace("…", "");
  return html`<${Dialog} title=${`Task ${task.id}: ${word.toLowerCase()}?`} close=${close}><form onSubmit=${act}>
    <p class="text"><strong>${cleaned(task.title)}</strong></p><p>${change.says}</p>
    ${change.field && html`<label>${change.label} <textarea name=${change.field} rows="3" autofocus value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>`}
    <${Fault} problem=${problem} />
    <footer><button type="button" onClick=${close}>Leave it</button><button class=${change.verb === "done" ? "main" : "danger"} disabled=${busy}>${busy ? "asking…" : word}</button></footer>
  </form></${Dialog}>`;
}

function Actions({ task, changed }) {
  const [chosen, choose] = useState(null);
  const [problem, setProblem] = useState(null);
  const press = async (change) => {
    setProblem(null);
    if (change.says) return choose(change);
    try {
      changed(await apply(task, change), change);
    } catch (error) {
      setProblem(error);
    }
  };
  return html`<div class="work-actions">${CHANGES.filter((change) => change.may(task)).map((change) => html`<button type="button" key=${change.verb} class=${change.kind || ""} onClick=${() => press(change)}>${change.word}</button>`)}</div>
    <${Fault} problem=${problem} />
    ${chosen && html`<${Change} task=${task} change=${chosen} close=${() => choose(null)} changed=${changed} />`}`;
}

function About({ task }) {
  const row = (word, value) => (value ? html`<dt>${word}</dt><dd>${value}</dd>` : null);
  return html`<section class="sheet"><h2>Facts</h2><dl class="facts">
    ${row("For", task.agent ? html`<${AgentLink} name=${task.agent} />` : html`<bdi>${cleaned(whose(task))}</bdi>`)}
    ${row("Added", html`<${When} at=${task.created_at} /> by <bdi>${cleaned(task.from || task.source || "?")}</bdi>${task.run_id ? html` in <${RunLink} id=${task.run_id} />` : ""}`)}
    ${row("Ended", task.closed_at && html`<${When} at=${task.closed_at} />`)}
    ${row("Not before", task.due_at && html`<${When} at=${task.due_at} /> <span class="dim"><${When} at=${task.due_at} how="in" /></span>`)}
    ${row("Priority", task.priority)}
    ${row("Tags", task.tags.length > 0 && html`<span class="work-tags">${task.tags.map((tag) => html`<a href=${`#/tasks?tag=${encodeURIComponent(tag)}`}><bdi>${cleaned(tag)}</bdi></a>`)}</span>`)}
    ${row("Retries", task.max_retries !== null && `at most ${task.max_retries} after the first try`)}
    ${row("Timeout", task.timeout)}
    ${row("Key", task.key && html`<code>${cleaned(task.key)}</code>`)}
    ${row("Causal key", task.causal_key && html`<code>${cleaned(task.causal_key)}</code>`)}
    ${row("Source", task.source && html`<bdi>${cleaned(task.source)}</bdi>`)}
    ${row("Depends on", task.depends_on.length > 0 && html`<ul class="work-plain">${task.depends_on.map((each) => html`<li key=${each.id}><a href=${to.task(each.id)}>task ${each.id}</a> <${State} of=${each.state} /></li>`)}</ul>`)}
  </dl></section>`;
}

export function TaskPage({ id }) {
  const { value: task, problem, reload } = useAsked(id, () => get(`/v1/tasks/${id}`), { each: 10_000 });
  const number = Number(id);
  const runs = new Set(task ? task.attempts.map((attempt) => attempt.run_id) : []);
  useHeard((event) => !removing.has(number) && (event.item_id === number || (event.run_id !== null && runs.has(event.run_id)) || event.kind === "task_ended" || event.kind === "task_changed"), reload);
  const changed = (answer, { said }) => {
    note(`task ${id} ${said}`);
    touch(answer.agent);
    if (answer.removed) go("/tasks");
    else reload();
  };
  if (!task) return problem ? html`<h1>Task ${id}</h1><${Fault} problem=${problem} again=${reload} /><p><a href="#/tasks">All tasks</a></p>` : html`<p class="loading">…</p>`;
  const error = task.state !== "completed" && task.error;
  return html`<article class="work-task">
    <div class="work-top"><p><a href="#/tasks">← all tasks</a></p><${Actions} task=${task} changed=${changed} /></div>
    <header class="work-head"><h1>Task ${task.id}: <bdi>${cleaned(task.title)}</bdi></h1>
      <p class="work-lead"><${State} of=${task.state} word=${plain(task.state === "dead_letter" ? "dead" : task.state)} /> <span class="dim">·</span> for ${task.agent ? html`<${AgentLink} name=${task.agent} />` : html`<bdi>${cleaned(whose(task))}</bdi>`} <span class="dim">·</span> added <${When} at=${task.created_at} how="ago" /></p>
      ${task.waiting_for && html`<p class="work-waits">Waits for <bdi>${cleaned(task.waiting_for)}</bdi></p>`}
      ${error && error !== task.waiting_for && html`<${Text} text=${error} kind="work-error" />`}
      <${Fault} problem=${problem} again=${reload} /></header>
    <div class="work-columns">
      <div class="work-wide">
        ${task.result !== null && html`<section class="sheet"><h2>Result</h2><${Text} text=${task.result || "(empty)"} /></section>`}
        ${task.description && html`<section class="sheet"><h2>What is to be done</h2><${Text} text=${task.description} /></section>`}
        <section class="sheet"><h2>Attempts <span class="dim">${task.attempts.length}</span></h2><${Attempts} attempts=${task.attempts} /></section>
        <${Steps} steps=${task.steps} />
      </div>
      <div class="work-narrow"><${About} task=${task} />
        ${task.payload !== null && html`<${Section} title="Payload"><${Text} text=${pretty(task.payload)} kind="mono" /></${Section}>`}</div>
    </div></article>`;
}
