// A task is added: asked for once, however often the button is pressed or the answer is lost.

import { html, useRef, useState } from "./base.js";
import { key, post, Problem } from "./api.js";
import { touch } from "./live.js";
import { Dialog, Fault, note } from "./parts.js";
import { go } from "./place.js";
import { AgentNames } from "./work_parts.js";

const list = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

function body(form) {
  const said = Object.fromEntries(new FormData(form));
  const told = { title: said.title.trim(), priority: said.priority };
  if (said.whose.trim()) told[said.to] = said.whose.trim();
  for (const name of ["description", "not_before", "timeout", "causal_key"]) if (said[name].trim()) told[name] = said[name].trim();
  if (said.tags.trim()) told.tags = list(said.tags);
  if (said.max_retries) told.max_retries = Number(said.max_retries);
  if (said.depends_on.trim()) told.depends_on = list(said.depends_on).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  if (said.payload.trim()) {
    try {
      told.payload = JSON.parse(said.payload);
    } catch (error) {
      throw new Problem(400, `the payload is not JSON: ${error.message}`, "write JSON, or leave it out");
    }
  }
  return told;
}

export function AddTask({ close, agent = "", role = "" }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [payee, setPayee] = useState(role && !agent ? "role" : "agent");
  // The same words are the same task; other words are another one.
  const asked = useRef({ text: "", key: "" });
  const add = async (event) => {
    event.preventDefault();
    setProblem(null);
    setBusy(true);
    try {
      const told = body(event.target);
      const text = JSON.stringify(told);
      if (asked.current.text !== text) asked.current = { text, key: key() };
      const task = await post("/v1/tasks", told, { headers: { "idempotency-key": asked.current.key } });
      note(task.warning ? `task ${task.id} is added, but ${task.warning}` : `task ${task.id} is ${task.duplicate ? "there already" : "added"}`);
      touch(task.agent);
      close();
      go(`/tasks/${task.id}`);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Add a task" close=${close}><form onSubmit=${add}>
    <label>What is to be done <input name="title" required maxlength="500" autofocus autocomplete="off" /></label>
    <fieldset><legend>For whom</legend>
      <label class="choice"><input type="radio" name="to" value="agent" checked=${payee === "agent"} onChange=${() => setPayee("agent")} /> an agent</label>
      <label class="choice"><input type="radio" name="to" value="role" checked=${payee === "role"} onChange=${() => setPayee("role")} /> whoever has the role</label>
      <label>${payee === "agent" ? "Agent" : "Role"} <input name="whose" required autocomplete="off" list=${payee === "agent" ? "work-agents" : undefined} defaultValue=${agent || role} /></label></fieldset>
    <label>At length <textarea name="description" rows="4"></textarea></label>
    <label>Priority <select name="priority" defaultValue="normal">${["low", "normal", "high", "urgent"].map((word) => html`<option value=${word} selected=${word === "normal"}>${word}</option>`)}</select></label>
    <label>Tags <input name="tags" autocomplete="off" placeholder="words, with commas" /></label>
    <details><summary>More</summary>
      <label>Payload, as JSON <textarea name="payload" rows="3" class="mono" spellcheck="false"></textarea></label>
      <label>Not before <input name="not_before" placeholder="14:30, in 20m, 2026-12-24T18:00Z" /></label>
      <label>Depends on <input name="depends_on" placeholder="numbers or keys of tasks, with commas" /></label>
      <label>Retries after the first try <input name="max_retries" type="number" min="0" max="1000" /></label>
      <label>Longest attempt <input name="timeout" placeholder="45s, 10m, 2h" /></label>
      <label>Causal key <input name="causal_key" placeholder="tasks of one key are done in their order" /></label></details>
    <${Fault} problem=${problem} />
    <footer><button type="button" onClick=${close}>Cancel</button><button class="main" disabled=${busy}>${busy ? "adding…" : "Add the task"}</button></footer>
    <${AgentNames} /></form></${Dialog}>`;
}
