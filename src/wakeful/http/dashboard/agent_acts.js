// What may be asked of an agent: its beat now, its inbox now, a beat at an instant, a message to it.
//
// Law: each asking has a key of its own and is done once, however often somebody presses. The guards' answer is shown as it is.

import { html, useRef, useState } from "./base.js";
import { key, post } from "./api.js";
import { touch } from "./live.js";
import { Dialog, Fault } from "./parts.js";
import { deliberate, keyOf, path, Reply } from "./agent_parts.js";
import { Compose } from "./agent_compose.js";

export function Acts({ name }) {
  const [open, setOpen] = useState("");
  const [reply, setReply] = useState(null);
  const [problem, setProblem] = useState(null);
  const busy = useRef(false);
  const tick = async () => {
    if (busy.current) return;
    busy.current = true;
    setProblem(null);
    try {
      setReply(await post(path(name, "tick"), {}, { headers: { "idempotency-key": key() } }));
      touch(name);
    } catch (error) {
      setProblem(error);
    }
    busy.current = false;
  };
  const close = () => setOpen("");
  return html`
    <button type="button" title="its beat, now" onClick=${tick}>Tick now</button>
    <button type="button" title="have it look into its inbox, now" onClick=${() => setOpen("wake")}>Wake…</button>
    <button type="button" onClick=${() => setOpen("message")}>Message…</button>
    <button type="button" title="one beat at an instant" onClick=${() => setOpen("at")}>Beat at…</button>
    <div class="agent-answer" role="status" aria-label="the guards' answer">${reply && html`<${Reply} reply=${reply} /><button type="button" class="quiet" onClick=${() => setReply(null)}>dismiss</button>`}</div>
    <${Fault} problem=${problem} />
    ${open === "wake" && html`<${Ask} name=${name} verb="wake" title=${`Wake ${name}`} close=${close} fields=${WAKE} about="It looks into its inbox now, if the guards let it. With a message, that is what it finds there first." button="Wake it" />`}
    ${open === "at" && html`<${Ask} name=${name} verb="at" title=${`A beat of ${name} at an instant`} close=${close} fields=${AT} about="Once. Quiet hours do not hold it; a pause does, until it is lifted." button="Ask for it" />`}
    ${open === "message" && html`<${Dialog} title=${`Message to ${name}`} close=${close}><${Compose} name=${name} close=${close} /></${Dialog}>`}`;
}

export const WAKE = [["reason", "Why", "what it is about, in a few words"], ["body", "Message (may be left out)", "", true]];
const AT = [["when", "When", "in 20m, 14:30 or 2026-12-24T18:00Z"], ["reason", "Why (may be left out)", ""]];

export function Ask({ name, verb, title, close, fields, about, button }) {
  const [told, setTold] = useState({});
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [reply, setReply] = useState(null);
  const once = useRef({ what: "", key: "" });
  const submit = async (event) => {
    event.preventDefault();
    if (busy) return;
    const body = Object.fromEntries(Object.entries(told).filter(([, text]) => text.trim()));
    setBusy(true);
    setProblem(null);
    try {
      setReply(await post(path(name, verb), body, { headers: { "idempotency-key": keyOf(once, body) } }));
      touch(name);
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  if (reply) return html`<${Dialog} title=${title} close=${close}><${Reply} reply=${reply} /><footer><button type="button" class="main" autofocus onClick=${deliberate(close)}>Close</button></footer></${Dialog}>`;
  return html`<${Dialog} title=${title} close=${close}><form onSubmit=${submit}>
    <p class="dim">${about}</p>
    ${fields.map(([field, word, hint, long], index) => {
      const given = { name: field, value: told[field] || "", placeholder: hint, autofocus: index === 0, onInput: (event) => setTold({ ...told, [field]: event.target.value }) };
      return html`<label key=${field}>${word} ${long ? html`<textarea rows="4" ...${given}></textarea>` : html`<input ...${given} />`}</label>`;
    })}
    <${Fault} problem=${problem} />
    <footer><button type="button" onClick=${close}>Cancel</button><button class="main" disabled=${busy}>${busy ? "asking…" : button}</button></footer>
  </form></${Dialog}>`;
}
