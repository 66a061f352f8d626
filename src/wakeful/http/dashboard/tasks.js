// The queue as a board: a column for each state, with how many there are, and the tasks themselves as far as asked for.
//
// Laws:
// - The counts are the store's own, asked for at most once a second, and right however many tasks there are; a column
//   holds only what was asked for, and the rest is counted.
// - What is open stands in the order of the queue, what has ended with the newest first.

import { html, useEffect, useRef, useState } from "./base.js";
import { get } from "./api.js";
import { Fault, to, useAsked } from "./parts.js";
import { cleaned } from "./escapes.js";
import { counted, grouped, plain, SIGNS, When } from "./words.js";
import { AddTask } from "./task_add.js";
import { TaskPage } from "./task.js";
import { NEWEST, TaskFilters, TASK_FILTERS, useFilters, useHeard, whose } from "./work_parts.js";

const PAGE = 50;
const MOST_RENEWED = 200;
// By state: what the column is called, and whether its newest come first.
const COLUMNS = [
  ["pending", "Pending", false],
  ["in_progress", "In progress", false],
  ["failed", "To be tried again", false],
  ["blocked", "Blocked", false],
  ["dead_letter", "Dead", true],
  ["completed", "Completed", true],
  ["cancelled", "Cancelled", true],
];
const NEWS = new Set(["task_taken", "task_ended", "task_changed", "acted", "asked", "decided", "started", "ended", "removed"]);

export default function Tasks({ id }) {
  return id ? html`<${TaskPage} id=${id} />` : html`<${Board} />`;
}

function Board() {
  const filters = useFilters([...TASK_FILTERS, "hide"]);
  const [adding, add] = useState(false);
  const { hide, ...query } = filters.settled;
  const what = JSON.stringify(query);
  const counts = useAsked(what, () => get("/v1/tasks/counts", query), { each: 5000 });
  // Grows with whatever may have changed what the columns hold.
  const [beat, setBeat] = useState(0);
  useHeard((event) => NEWS.has(event.kind), counts.reload);
  useHeard((event) => NEWS.has(event.kind), () => setBeat((before) => before + 1), 2000);
  const hidden = new Set(filters.said.hide.split(",").filter(Boolean));
  const toggle = (state) => {
    if (!hidden.delete(state)) hidden.add(state);
    filters.say({ hide: [...hidden].join(",") });
  };
  const known = counts.value ? counts.value.counts : {};
  return html`<div class="work-top"><h1>Tasks ${counts.value && html`<span class="dim">${grouped(counts.value.total)}</span>`}</h1><button type="button" class="main" onClick=${() => add(true)}>+ Add a task…</button></div>
    <${TaskFilters} filters=${filters} />
    <${Fault} problem=${counts.problem} again=${counts.reload} />
    <div class="chips work-states" role="group" aria-label="which states to show">${COLUMNS.map(([state, word]) => html`
      <button type="button" key=${state} class=${`is-${state}`} aria-pressed=${!hidden.has(state)} onClick=${() => toggle(state)}><i aria-hidden="true">${SIGNS[state]}</i> ${word} <strong>${counts.value ? grouped(known[state] || 0) : "…"}</strong></button>`)}</div>
    <div class="work-board" tabindex="0" role="region" aria-label="board">${COLUMNS.filter(([state]) => !hidden.has(state)).map(([state, word, newest]) => html`
      <${Column} key=${`${state} ${what}`} state=${state} word=${word} newest=${newest} query=${query} count=${counts.value ? known[state] || 0 : null} beat=${beat} />`)}</div>
    ${adding && html`<${AddTask} close=${() => add(false)} agent=${query.agent} role=${query.role} />`}`;
}

// The tasks of one state, as far as they were asked for.
function useColumn(state, query, newest, count, beat) {
  const [known, set] = useState({ items: [], next: null, loaded: false, busy: false, problem: null });
  const turn = useRef(0);
  const ask = async (more, merge) => {
    const mine = ++turn.current;
    set((old) => ({ ...old, busy: true }));
    try {
      const page = await get("/v1/tasks", { ...query, state, ...(newest ? { before: NEWEST } : {}), ...more });
      if (mine === turn.current) set((old) => ({ loaded: true, busy: false, problem: null, ...merge(old, page) }));
    } catch (problem) {
      if (mine === turn.current) set((old) => ({ ...old, busy: false, problem }));
    }
  };
  // What lies further down than was asked for again stays as it was known.
  const renewed = (old, page) => {
    const last = page.items.at(-1);
    const rest = page.next === null || !last ? [] : old.items.filter((task) => (newest ? task.id < last.id : task.id > last.id));
    return { items: [...page.items, ...rest], next: rest.length ? old.next : page.next };
  };
  // What somebody asked for is not dropped for what happens meanwhile.
  const adding = useRef(false);
  const renew = () => adding.current || ask({ limit: Math.min(Math.max(known.items.length, PAGE), MOST_RENEWED) }, renewed);
  useEffect(() => {
    // Of one that is empty and stays empty nothing need be asked.
    if (count || known.items.length) renew();
  }, [!count, beat]);
  const more = async () => {
    adding.current = true;
    await ask({ limit: PAGE, [newest ? "before" : "after"]: known.next }, (old, page) => ({ items: [...old.items, ...page.items], next: page.next }));
    adding.current = false;
  };
  return { ...known, more };
}

function Column({ state, word, newest, query, count, beat }) {
  const { items, next, busy, problem, more } = useColumn(state, query, newest, count, beat);
  const empty = count === 0 && !items.length;
  return html`<section class=${`work-column is-${state}${empty ? " is-empty" : ""}`} aria-label=${word}>
    <h2><i aria-hidden="true">${SIGNS[state]}</i> ${word} <span class="work-count">${count === null ? "…" : grouped(count)}</span></h2>
    ${state === "dead_letter" && count > 0 && html`<p><a href="#/dead">replay or discard</a></p>`}
    <${Fault} problem=${problem} />
    ${!empty && html`<ol class="work-cards" tabindex="0" aria-label=${`tasks that are ${plain(state)}`}>${items.map((task) => html`<li key=${task.id}><${Card} task=${task} /></li>`)}</ol>`}
    ${next !== null && html`<p class="work-column-more"><span class="dim">${grouped(items.length)} of ${grouped(count)}</span> <button type="button" disabled=${busy} onClick=${more}>show ${PAGE} more</button></p>`}
  </section>`;
}

function Card({ task }) {
  const ended = task.closed_at;
  const tries = task.attempts.length;
  const why = task.state === "completed" ? "" : task.waiting_for ? `waits for ${task.waiting_for}` : task.error;
  return html`<a class=${`work-card is-${task.priority}`} href=${to.task(task.id)}>
    <strong class="work-card-title"><bdi>${cleaned(task.title)}</bdi></strong>
    <span class="dim">#${task.id} · <bdi>${cleaned(whose(task))}</bdi>${task.priority !== "normal" ? html` · <strong>${task.priority}</strong>` : ""}</span>
    <span class="dim">${ended ? html`ended <${When} at=${ended} how="ago" />` : html`added <${When} at=${task.created_at} how="ago" />`}${tries > 1 || (tries && !ended) ? ` · ${counted(tries, "attempt")}` : ""}</span>
    ${why && html`<span class="work-card-why"><bdi>${cleaned(why)}</bdi></span>`}
    ${task.tags.length > 0 && html`<span class="work-tags">${task.tags.slice(0, 4).map((tag) => html`<span><bdi>${cleaned(tag)}</bdi></span>`)}</span>`}
  </a>`;
}
