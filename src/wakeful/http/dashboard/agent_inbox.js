// What was written to an agent: to read, to put off, to say that it needs no run any more; and to write to it.
//
// Laws: a message is text and nothing else. What is chosen, opened or typed stays while the list is asked again.

import { html, useEffect, useState } from "./base.js";
import { get, post } from "./api.js";
import { now, touch } from "./live.js";
import { Act, Dialog, Empty, Fault, More, note, RunLink } from "./parts.js";
import { clock, counted, plain, When } from "./words.js";
import { cleaned } from "./escapes.js";
import { From, path, useList, useNews } from "./agent_parts.js";
import { Compose, PRIORITIES, TYPES } from "./agent_compose.js";

// "The newest", as far as numbers go here.
const NEWEST = Number.MAX_SAFE_INTEGER;
const STATES = ["open", "closed", "all"];
// A message that rings for nobody has no event.
const EACH = 4000;
const [LONG, LINES] = [600, 8];
const LOUD = { urgent: "▲▲", high: "▲", normal: "", low: "▽" };

export function Inbox({ name, address }) {
  const [filter, setFilter] = useState({ state: "open", priority: "", type: "", sender: "" });
  // What is being typed there is nobody's filter yet, and stays whatever comes in meanwhile.
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(new Set());
  const [writing, setWriting] = useState(false);
  const list = useList(`${name} ${JSON.stringify(filter)}`, ({ limit, cursor }) => get(path(name, "inbox"), { ...filter, sender: filter.sender.trim(), before: NEWEST, limit, cursor }));
  useNews({ name, address }, list.refresh);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || list.refresh(), EACH);
    return () => clearInterval(timer);
  });
  const choose = (field) => (event) => setFilter({ ...filter, [field]: event.target.value });
  const toggle = (id) => setChosen((before) => (before.has(id) ? new Set([...before].filter((each) => each !== id)) : new Set([...before, id])));
  const changed = () => {
    setChosen(new Set());
    list.refresh();
    touch(name);
  };
  const some = list.items.filter((item) => chosen.has(item.id) && item.state === "open").map((item) => item.id);
  return html`<section aria-label="inbox" class="agent-inbox">
    <div class="bar-of-tools">
      <button type="button" class="main" onClick=${() => setWriting(true)}>Write to ${name}</button>
      <span class="chips" role="group" aria-label="state">${STATES.map((word) => html`<button type="button" key=${word} aria-pressed=${filter.state === word} onClick=${() => setFilter({ ...filter, state: word })}>${word}</button>`)}</span>
      <label class="agent-inline">Priority <select value=${filter.priority} onChange=${choose("priority")}><option value="">any</option>${PRIORITIES.slice(1).map((word) => html`<option key=${word} value=${word}>${word === "urgent" ? word : `${word} or more`}</option>`)}</select></label>
      <label class="agent-inline">Type <select value=${filter.type} onChange=${choose("type")}><option value="">any</option>${TYPES.map((word) => html`<option key=${word} value=${word}>${plain(word)}</option>`)}</select></label>
      <label class="agent-inline">From <input type="search" value=${typed} onInput=${(event) => setTyped(event.target.value)} onChange=${choose("sender")} placeholder="anybody" size="12" /></label>
    </div>
    ${some.length > 0 && html`<div class="bar-of-tools agent-chosen" role="group" aria-label="chosen messages"><strong>${counted(some.length, "message")}</strong> <${Read} name=${name} ids=${some} done=${changed} /> <${Snooze} name=${name} ids=${some} done=${changed} /> <button type="button" class="quiet" onClick=${() => setChosen(new Set())}>choose none</button></div>`}
    <${Fault} problem=${list.problem} again=${list.refresh} />
    ${!list.loaded && !list.problem && html`<p class="loading">…</p>`}
    ${list.loaded && list.items.length === 0 && html`<${Empty}>${filter.state === "open" && !filter.priority && !filter.type && !filter.sender ? "Its inbox is empty." : "No message is like that."}</${Empty}>`}
    <ul class="agent-messages" aria-label="messages">${list.items.map((item) => html`<${Message} key=${item.id} name=${name} item=${item} chosen=${chosen.has(item.id)} toggle=${toggle} done=${changed} />`)}</ul>
    <${More} pages=${list} />
    ${writing && html`<${Dialog} title=${`Message to ${name}`} close=${() => setWriting(false)}><${Compose} name=${name} close=${() => setWriting(false)} sent=${list.refresh} /></${Dialog}>`}
  </section>`;
}

function Message({ name, item, chosen, toggle, done }) {
  const [whole, setWhole] = useState(false);
  const body = cleaned(item.body);
  const brief = body.slice(0, LONG).split("\n").slice(0, LINES).join("\n");
  const long = brief.length < body.trimEnd().length;
  const open = item.state === "open";
  const title = item.subject ? cleaned(item.subject) : `message ${item.id}`;
  return html`<li class=${`agent-message is-${item.state}${item.unread ? " is-unread" : ""}`}>
    <div class="agent-message-head">
      ${open && html`<input type="checkbox" aria-label=${`choose message ${item.id}`} checked=${chosen} onChange=${() => toggle(item.id)} />`}
      <h2><bdi>${title}</bdi></h2>
      <span class="dim">from <${From} name=${item.from || item.source || "outside"} /></span>
      ${item.priority !== "normal" && html`<span class=${`agent-priority is-${item.priority}`}><span aria-hidden="true">${LOUD[item.priority]}</span> ${item.priority}</span>`}
      <span class="agent-type">${plain(item.type)}</span>
      <span class="dim agent-when"><${When} at=${item.created_at} /></span>
    </div>
    ${body && html`<div class="text agent-body">${long && !whole ? `${brief} …` : body}</div>`}
    ${long && html`<button type="button" class="quiet" aria-expanded=${whole} onClick=${() => setWhole(!whole)}>${whole ? "less" : "all of it"}</button>`}
    <div class="agent-message-foot dim">
      <span>${standing(item)}${item.shown_in && html`; shown to <${RunLink} id=${item.shown_in} />`}${item.run_id && html` · sent by <${RunLink} id=${item.run_id} />`}${item.reply_to && ` · answers message ${item.reply_to}`}</span>
      ${open && html`<span class="agent-message-acts"><${Read} name=${name} ids=${[item.id]} done=${done} /> <${Snooze} name=${name} ids=${[item.id]} done=${done} /></span>`}
    </div>
  </li>`;
}

function standing(item) {
  if (item.state === "closed") return item.closed_at ? `closed ${clock(item.closed_at)}` : "closed";
  if (item.snoozed_until && Date.parse(item.snoozed_until) > now.value) return `put off until ${clock(item.snoozed_until)}`;
  return item.unread ? "not shown to any run yet" : "open";
}

const which = (ids) => (ids.length === 1 ? `message ${ids[0]}` : counted(ids.length, "message"));

function Read({ name, ids, done }) {
  const act = () => post(path(name, "inbox/read"), { messages: ids });
  const told = (answer) => {
    note(answer.changed.length ? `${which(answer.changed)}: read, needs no run any more` : "that was read before");
    done();
  };
  return html`<${Act} act=${act} done=${told} label=${`Mark ${which(ids)} read`}>Mark read</${Act}>`;
}

const TIMES = [["15m", "15 minutes"], ["1h", "1 hour"], ["4h", "4 hours"], ["1d", "a day"]];

function Snooze({ name, ids, done }) {
  const [open, setOpen] = useState(false);
  const [until, setUntil] = useState("1h");
  const [problem, setProblem] = useState(null);
  const snooze = async (event) => {
    event.preventDefault();
    setProblem(null);
    try {
      const answer = await post(path(name, "inbox/snooze"), { messages: ids, until });
      note(answer.changed.length ? `${which(answer.changed)}: put off until ${clock(answer.until)}` : "nothing was open");
      setOpen(false);
      done();
    } catch (error) {
      setProblem(error);
    }
  };
  return html`<button type="button" aria-label=${`Snooze ${which(ids)}`} onClick=${() => setOpen(true)}>Snooze…</button>
    ${open && html`<${Dialog} title=${`Snooze ${which(ids)}`} close=${() => setOpen(false)}><form onSubmit=${snooze}>
      <p class="dim">Out of sight until then; it rings when the time comes.</p>
      <div class="chips" role="group" aria-label="for how long">${TIMES.map(([value, word]) => html`<button type="button" key=${value} aria-pressed=${until === value} onClick=${() => setUntil(value)}>${word}</button>`)}</div>
      <label class="agent-below">For how long, or until when <input name="until" value=${until} onInput=${(event) => setUntil(event.target.value)} /></label>
      <${Fault} problem=${problem} />
      <footer><button type="button" onClick=${() => setOpen(false)}>Cancel</button><button class="main" disabled=${!until.trim()}>Snooze</button></footer></form></${Dialog}>`}`;
}
