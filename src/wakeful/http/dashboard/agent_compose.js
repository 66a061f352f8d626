// A message from the operator.
//
// Laws: what was typed is kept until it is sent, also when the form is closed; it is sent once, however often somebody presses.

import { html, useRef, useState } from "./base.js";
import { post } from "./api.js";
import { touch } from "./live.js";
import { Fault } from "./parts.js";
import { deliberate, keyOf, path, Reply } from "./agent_parts.js";

export const TYPES = ["info", "review_request", "help_request", "unblock", "work_assignment"];
export const PRIORITIES = ["low", "normal", "high", "urgent"];
const BLANK = { subject: "", body: "", type: "info", priority: "normal" };
const kept = new Map();

export function Compose({ name, close, sent: told = () => {} }) {
  const [draft, setDraft] = useState(kept.get(name) || BLANK);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [sent, setSent] = useState(null);
  const once = useRef({ what: "", key: "" });
  const sending = useRef(false);
  const write = (field) => (event) => {
    const next = { ...draft, [field]: event.target.value };
    kept.set(name, next);
    setDraft(next);
  };
  const send = async (event) => {
    event.preventDefault();
    if (sending.current) return;
    sending.current = true;
    setBusy(true);
    setProblem(null);
    try {
      const answer = await post(path(name, "messages"), draft, { headers: { "idempotency-key": keyOf(once, draft) } });
      kept.delete(name);
      setSent(answer);
      touch(name);
      told(answer);
    } catch (error) {
      setProblem(error);
    }
    sending.current = false;
    setBusy(false);
  };
  if (sent) return html`<${Sent} name=${name} sent=${sent} close=${close} another=${() => (setSent(null), setDraft(BLANK))} />`;
  const loud = draft.priority === "high" || draft.priority === "urgent";
  return html`<form class="agent-compose" onSubmit=${send}>
    <label>Subject <input name="subject" autofocus value=${draft.subject} onInput=${write("subject")} /></label>
    <label>Message <textarea name="body" rows="6" value=${draft.body} onInput=${write("body")}></textarea></label>
    <div class="agent-pair">
      <label>Type <select name="type" value=${draft.type} onChange=${write("type")}>${TYPES.map((word) => html`<option key=${word} value=${word}>${word.replaceAll("_", " ")}</option>`)}</select></label>
      <label>Priority <select name="priority" value=${draft.priority} onChange=${write("priority")}>${PRIORITIES.map((word) => html`<option key=${word} value=${word}>${word}</option>`)}</select></label>
    </div>
    <p class="dim">${loud ? `It asks for a run of ${name} at once; the guards decide.` : `It rings for nobody: ${name} is shown it in its next run.`} From the operator.</p>
    <${Fault} problem=${problem} />
    <footer><button type="button" onClick=${close}>Cancel</button><button class="main" disabled=${busy || !draft.body.trim()}>${busy ? "sending…" : "Send"}</button></footer>
  </form>`;
}

function Sent({ name, sent, close, another }) {
  return html`<div role="status" class="agent-sent">
    <p><strong>✔ Message ${sent.message.id} is recorded${sent.duplicate ? ", and was before: it is there once" : ""}.</strong></p>
    ${sent.wake ? html`<p>The wake that it asked for:</p><${Reply} reply=${sent.wake} />` : html`<p>It rings for nobody: ${name} is shown it in its next run.</p>`}
    ${sent.note && html`<p class="dim">${sent.note}</p>`}
    <footer><button type="button" onClick=${another}>Write another</button><button type="button" class="main" autofocus onClick=${deliberate(close)}>Close</button></footer>
  </div>`;
}
