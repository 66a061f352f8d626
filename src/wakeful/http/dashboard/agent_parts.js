// What the pages of one agent share: hearing of it, lists that stay where they are, words with times in them.
//
// Laws:
// - What is asked again because something happened is asked together, at most about twice a second and never before the
//   last answer is there; what is on the page stays until something newer is.
// - What agents and strangers wrote stands isolated, so that it turns nothing beside it.

import { html, useEffect, useRef, useState } from "./base.js";
import { key } from "./api.js";
import { agents, connection, now, onEvent } from "./live.js";
import { clock, plain, SIGNS, State, until, When } from "./words.js";
import { AgentLink, RunLink } from "./parts.js";

export const path = (name, rest = "") => `/v1/agents/${encodeURIComponent(name)}${rest ? `/${rest}` : ""}`;

const SOON = 450;

// Calls `told` soon after an event that is about this agent, the fleet, or its address; and when the page is live again.
export function useNews({ name, address = name, kinds }, told) {
  const latest = useRef({});
  latest.current = { address, told };
  const state = connection.value.state;
  const before = useRef(state);
  useEffect(() => {
    const state = { timer: null, busy: false, again: false };
    const ring = () => {
      state.again = true;
      if (state.timer === null && !state.busy) state.timer = setTimeout(go, SOON);
    };
    // One after the other: whoever asks faster than it is answered never shows anything.
    const go = async () => {
      Object.assign(state, { timer: null, busy: true, again: false });
      await Promise.resolve(latest.current.told()).catch(() => {});
      state.busy = false;
      if (state.again) ring();
    };
    const stop = onEvent((event) => {
      const about = !event.agent || event.agent === name || event.agent === latest.current.address;
      if (about && (!kinds || event.kind === "missed" || kinds.includes(event.kind))) ring();
    });
    return () => {
      stop();
      clearTimeout(state.timer);
      state.busy = true;
    };
  }, [name]);
  useEffect(() => {
    if (state === "live" && before.current !== "live") latest.current.told();
    before.current = state;
  }, [state]);
}

// A list that goes on, newest first, and can be asked again without losing what was added to it: {items, next, more(),
// refresh()}. `fetcher({limit, cursor})` gives a page.
export function useList(what, fetcher, size = 50) {
  const [state, set] = useState({ what: null, items: [], next: null, problem: null, busy: false });
  const turn = useRef(0);
  const busy = useRef(false);
  const ask = async (query, join) => {
    const mine = ++turn.current;
    busy.current = true;
    set((old) => ({ ...old, busy: Boolean(query.cursor) }));
    try {
      const page = await fetcher(query);
      if (mine === turn.current) set((old) => ({ what, ...join(page, old), problem: null, busy: false }));
    } catch (problem) {
      if (mine === turn.current) set((old) => ({ ...old, problem, busy: false }));
    } finally {
      if (mine === turn.current) busy.current = false;
    }
  };
  const first = (page) => ({ items: page.items, next: page.next });
  useEffect(() => void ask({ limit: size }, first), [what]);
  useEffect(() => () => void (turn.current = -1), []);
  const current = state.what === what;
  return {
    items: current ? state.items : [],
    next: current ? state.next : null,
    loaded: current,
    busy: state.busy,
    problem: state.problem,
    more: () => ask({ limit: size, cursor: state.next }, (page, old) => ({ items: [...old.items, ...page.items], next: page.next })),
    refresh: () => {
      if (busy.current) return undefined;
      // What could not be had at first is asked for as if it had not been.
      if (!current) return ask({ limit: size }, first);
      const limit = Math.min(Math.max(size, state.items.length), 500);
      return ask({ limit }, (page, old) => {
        const last = page.items.at(-1);
        const rest = page.next === null || !last ? [] : old.items.filter((item) => item.id < last.id);
        return { items: [...page.items, ...rest], next: rest.length ? old.next : page.next };
      });
    },
  };
}

// One key for one content: the same thing pressed twice is asked for once, and something else is something else.
export function keyOf(once, content) {
  const what = JSON.stringify(content);
  if (once.current.what !== what) once.current = { what, key: key() };
  return once.current.key;
}

// The second click of a double click was meant for what stood here before.
export const deliberate = (act) => (event) => event.detail < 2 && act();

// ---- words

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))/;

// What the server says, with its instants on the reader's own clock.
export function Said({ text }) {
  return html`<bdi class="agent-said">${String(text ?? "").split(INSTANT).map((part, index) => (index % 2 ? html`<${When} at=${part} />` : part))}</bdi>`;
}

export const said = (text) => String(text ?? "").split(INSTANT).map((part, index) => (index % 2 ? clock(part) : part)).join("");

// A guard where a sentence names it.
export const guardWord = (guard) => (guard === "paused" ? "a pause" : plain(guard));

export const CAUSES = { timer: "its timer", operator: "the operator", task: "a task", peer: "another agent", news: "news from outside" };

export function Until({ at }) {
  if (!at) return html`<span class="dim">–</span>`;
  return html`<span><${When} at=${at} />${Date.parse(at) > now.value && html` <span class="dim">${until(at, now.value)}</span>`}</span>`;
}

// What came of asking for an agent's time.
export function Reply({ reply }) {
  if (!reply) return null;
  const kind = reply.verdict || "admit";
  const word = { admit: "admitted", defer: "it waits", refuse: "refused" }[reply.verdict] || "asked for";
  return html`<div class=${`agent-reply is-${kind}`}>
    <p><span class=${`state is-${kind}`}><i aria-hidden="true">${SIGNS[kind]}</i><strong>${word}</strong></span>${reply.guard && html` by <strong>${guardWord(reply.guard)}</strong>`}
      ${reply.run_id && html` · <${RunLink} id=${reply.run_id} />`}${reply.reason && html` · <${Said} text=${reply.reason} />`}
      ${reply.joined && html` · it joins wake ${reply.joined}`}${reply.duplicate && html` · this was asked for before, and is not done twice`}</p>
    ${reply.next_eligible && html`<p class="dim">may be asked again <${Until} at=${reply.next_eligible} /></p>`}
    ${reply.advice && html`<p class="dim"><${Said} text=${reply.advice} /></p>`}
  </div>`;
}

// A verdict with its sign; null is a guard that has no objection.
export const Verdict = ({ of }) => (of && of !== "admit" ? html`<${State} of=${of} word=${{ defer: "waits", refuse: "refuses" }[of]} />` : html`<${State} of="admit" word="no objection" />`);

export const From = ({ name }) => (agents.value.has(name) ? html`<${AgentLink} name=${name} />` : html`<bdi>${name}</bdi>`);

// What was really said about a wake, then.
export function Recorded({ wake }) {
  return html`<span><${When} at=${wake.at} />, by ${wake.from ? html`<${From} name=${wake.from} />` : CAUSES[wake.cause] || wake.cause}: <${State} of=${wake.verdict || "admit"} word=${{ admit: "admitted", defer: "deferred", refuse: "refused" }[wake.verdict]} />${wake.guard ? ` by ${guardWord(wake.guard)}` : ""}${wake.reason && wake.verdict !== "admit" ? html`: <${Said} text=${wake.reason} />` : ""}${wake.run_id ? html` · <${RunLink} id=${wake.run_id} />` : ""}</span>`;
}
