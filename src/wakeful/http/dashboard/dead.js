// Dead letters: the tasks that were given up, each with its whole history, to be replayed or discarded, some or all.
//
// Laws:
// - Many are changed a page at a time, and what became of each is told. It can be stopped between two pages.
// - "All that match" are those that were there when it was asked for: what dies in the meantime is not meant.
// - The list does not change under somebody who has chosen from it.

import { html, useEffect, useRef, useState } from "./base.js";
import { ahead, get, post } from "./api.js";
import { touch } from "./live.js";
import { Dialog, Empty, Fault, More, note, to, useAsked, usePages } from "./parts.js";
import { cleaned } from "./escapes.js";
import { counted, grouped, plain, When } from "./words.js";
import { Attempts, NEWEST, TaskFilters, TASK_FILTERS, Text, useFilters, useHeard, whose } from "./work_parts.js";

const PAGE = 100;
// So many are changed in one transaction.
const AT_ONCE = 200;
const MOST_TOLD = 200;

const CHANGES = {
  retry: { word: "Replay", busy: "replaying", said: "taken up again", says: "They are taken up again as if they were new; their history stays." },
  remove: { word: "Discard", busy: "discarding", said: "discarded", says: "They and their history are gone for good; only the events tell of them." },
};

// The second click of a double click was meant for what stood here before.
const deliberate = (act) => (event) => event.detail < 2 && act();

// ---- many at once

async function* pagesOf(change, meant) {
  const about = { change, state: ["dead_letter"] };
  if (meant.ids) {
    for (let at = 0; at < meant.ids.length; at += AT_ONCE) yield post("/v1/tasks/change", { ...about, tasks: meant.ids.slice(at, at + AT_ONCE) });
    return;
  }
  // One by one, since whatever dies meanwhile may have any number.
  for (let after = 0; after !== null; ) {
    const page = await get("/v1/dead", { ...meant.query, after, limit: AT_ONCE });
    const tasks = page.items.filter((task) => Date.parse(task.closed_at) <= meant.at).map((task) => task.id);
    if (tasks.length) yield post("/v1/tasks/change", { ...about, tasks });
    after = page.next;
  }
}

function Bulk({ change, meant, many, close }) {
  const { word, busy, said, says } = CHANGES[change];
  const [state, set] = useState({ begun: false, over: false, stopped: false, changed: [], unchanged: [], problem: null });
  const stop = useRef(false);
  const left = useRef(false);
  useEffect(() => () => void (stop.current = left.current = true), []);
  const go = async () => {
    stop.current = false;
    set((old) => ({ ...old, begun: true, problem: null }));
    let problem = null;
    let done = 0;
    try {
      for await (const answer of pagesOf(change, meant)) {
        done += answer.changed.length;
        set((old) => ({ ...old, changed: [...old.changed, ...answer.changed], unchanged: [...old.unchanged, ...answer.unchanged] }));
        if (stop.current) break;
      }
    } catch (error) {
      problem = error;
    }
    touch();
    if (left.current) note(`${problem ? problem.message : "stopped"}: ${grouped(done)} of ${grouped(many)} ${said}`, "bad");
    set((old) => ({ ...old, over: true, stopped: stop.current, problem }));
  };
  const { begun, over, stopped, changed, unchanged, problem } = state;
  const whom = meant.ids ? counted(many, "dead letter") : `all ${counted(many, "dead letter")} that match`;
  return html`<${Dialog} title=${over ? `${word}: what came of it` : `${word} ${whom}?`} close=${() => close(begun)}>
    ${!begun && html`<p>${says}</p>`}
    ${begun && html`<p role="status"><strong>${over ? (stopped ? "Stopped: " : "") : `${busy}… `}${grouped(changed.length)} of ${grouped(many)} ${said}</strong>${unchanged.length ? `, ${grouped(unchanged.length)} not` : ""}.</p>
      <progress max=${many} value=${changed.length + unchanged.length} aria-label=${busy}></progress>`}
    <${Fault} problem=${problem} />
    ${over && html`<div class="work-results" tabindex="0" role="region" aria-label="what came of each">
      ${unchanged.length > 0 && html`<h3>Not ${said}</h3><ul>${unchanged.slice(0, MOST_TOLD).map((each) => html`<li key=${each.id}><a href=${to.task(each.id)} onClick=${() => close(true)}>task ${each.id}</a> ${each.state === null ? "is gone" : each.state === "dead_letter" ? "is dead as before" : `is ${plain(each.state)}`}${each.why ? html`: <bdi>${cleaned(each.why)}</bdi>` : ""}</li>`)}</ul>`}
      ${changed.length > 0 && html`<h3>${said[0].toUpperCase() + said.slice(1)}</h3><p>${changed.slice(0, MOST_TOLD).map((id) => (change === "remove" ? html`<span key=${id}>task ${id} </span>` : html`<span key=${id}><a href=${to.task(id)} onClick=${() => close(true)}>task ${id}</a> </span>`))}${changed.length > MOST_TOLD ? `and ${grouped(changed.length - MOST_TOLD)} more` : ""}</p>`}
    </div>`}
    <footer>${over
      ? html`<button type="button" class="main" onClick=${deliberate(() => close(true))}>Close</button>`
      : begun
        ? html`<button type="button" onClick=${deliberate(() => void (stop.current = true))}>Stop</button>`
        : html`<button type="button" autofocus=${change === "remove"} onClick=${() => close(false)}>Leave them</button><button type="button" autofocus=${change === "retry"} class=${change === "remove" ? "danger" : "main"} onClick=${go}>${word} ${grouped(many)}</button>`}</footer>
  </${Dialog}>`;
}

// ---- the list

function History({ id }) {
  const { value, problem, reload } = useAsked(String(id), () => get(`/v1/tasks/${id}`));
  if (!value) return problem ? html`<${Fault} problem=${problem} again=${reload} />` : html`<p class="dim">…</p>`;
  return html`${value.description && html`<${Text} text=${value.description} />`}${value.payload !== null && html`<${Text} text=${JSON.stringify(value.payload, null, 2)} kind="mono" />`}<${Attempts} attempts=${value.attempts} />`;
}

function Letter({ task, chosen, choose }) {
  const [open, setOpen] = useState(false);
  return html`<li class=${`work-letter${chosen ? " is-chosen" : ""}`}>
    <input type="checkbox" id=${`letter-${task.id}`} aria-label=${`choose task ${task.id}`} checked=${chosen} onChange=${(event) => choose(task.id, event.target.checked)} />
    <div class="work-letter-body"><p><a href=${to.task(task.id)}>task ${task.id}</a> <strong><bdi>${cleaned(task.title)}</bdi></strong></p>
      <p class="dim"><bdi>${cleaned(whose(task))}</bdi> · died <${When} at=${task.closed_at} how="ago" /> · ${counted(task.attempts.length, "attempt")}${task.priority !== "normal" ? ` · ${task.priority}` : ""}</p>
      ${task.error && html`<p class="work-error"><bdi>${cleaned(task.error).slice(0, 500)}</bdi></p>`}
      <details onToggle=${(event) => setOpen(event.target.open)}><summary>whole history</summary>${open && html`<${History} id=${task.id} />`}</details></div>
  </li>`;
}

export default function Dead() {
  const filters = useFilters(TASK_FILTERS);
  const query = filters.settled;
  const what = JSON.stringify(query);
  const counts = useAsked(what, () => get("/v1/tasks/counts", { ...query, state: "dead_letter" }), { each: 10_000 });
  const pages = usePages(what, (cursor) => get("/v1/dead", { ...query, before: cursor || NEWEST, limit: PAGE }));
  const [chosen, setChosen] = useState(new Set());
  const [every, setEvery] = useState(false);
  const [asked, ask] = useState(null);
  const total = counts.value ? counts.value.total : null;
  // How many there were when the list was read.
  const [read, setRead] = useState(null);
  const none = () => (setChosen(new Set()), setEvery(false));
  useEffect(none, [what]);
  useEffect(() => setRead(null), [what, pages.items]);
  if (read === null && total !== null && pages.loaded) setRead(total);
  useHeard((event) => event.kind === "task_ended" || event.kind === "task_changed", () => {
    counts.reload();
    if (!chosen.size && !every && pages.items.length <= PAGE) pages.reload();
  });
  const choose = (id, is) => {
    const next = new Set(every ? pages.items.map((task) => task.id) : chosen);
    if (is) next.add(id);
    else next.delete(id);
    setEvery(false);
    setChosen(next);
  };
  const many = every ? total : chosen.size;
  const shown = pages.items.length;
  const allShown = shown > 0 && (every || pages.items.every((task) => chosen.has(task.id)));
  const begin = (change) => ask({ change, meant: every ? { query, at: Date.now() + ahead.peek() } : { ids: [...chosen] }, many });
  const finished = (begun) => {
    ask(null);
    if (!begun) return;
    none();
    pages.reload();
    counts.reload();
  };
  return html`<h1>Dead letters ${total !== null && html`<span class="dim">${grouped(total)}</span>`}</h1>
    <p class="dim">Tasks that were given up: every try failed, or somebody said so. Nothing happens to them until you decide.</p>
    <${TaskFilters} filters=${filters} />
    <div class="work-bulk">
      <label class="choice"><input type="checkbox" checked=${allShown} disabled=${!shown} onChange=${(event) => (setEvery(false), setChosen(new Set(event.target.checked ? pages.items.map((task) => task.id) : [])))} /> choose the ${grouped(shown)} shown</label>
      ${total > shown && html`<label class="choice"><input type="checkbox" checked=${every} onChange=${(event) => (setChosen(new Set()), setEvery(event.target.checked))} /> choose all ${grouped(total)} that match</label>`}
      <span class="grow"></span>
      <span class="dim" role="status">${many ? `${grouped(many)} chosen` : "none chosen"}</span>
      <button type="button" class="main" disabled=${!many} onClick=${() => begin("retry")}>Replay${many ? ` ${grouped(many)}` : ""}…</button>
      <button type="button" class="danger" disabled=${!many} onClick=${() => begin("remove")}>Discard${many ? ` ${grouped(many)}` : ""}…</button>
    </div>
    ${read !== null && total !== null && total !== read && (chosen.size > 0 || every || shown > PAGE) && html`<p><button type="button" class="quiet" onClick=${pages.reload}>The list has changed (${grouped(total)} now): read it again</button></p>`}
    <${Fault} problem=${pages.problem || counts.problem} again=${pages.reload} />
    ${pages.loaded && !shown && html`<${Empty}>${filters.any ? "No dead letter matches." : "No dead letters: nothing was given up."}</${Empty}>`}
    <ol class="work-letters">${pages.items.map((task) => html`<${Letter} key=${task.id} task=${task} chosen=${every || chosen.has(task.id)} choose=${choose} />`)}</ol>
    <${More} pages=${pages} />
    ${asked && html`<${Bulk} ...${asked} close=${finished} />`}`;
}
