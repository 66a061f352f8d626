// What the page knows of the fleet, and how it stays true.
//
// Laws:
// - One stream of events for the whole page. An event says only whose row is no longer true: dirty rows are asked for
//   again together, at most three times a second, however many events there are.
// - When the stream breaks it is resumed after the last event; while it is broken the page says since when, and asks for
//   nothing but the stream, less and less often. After a break, and now and then, everything is asked for again: events
//   are hints. It is live again only when that has come. What was asked for when it broke is not waited for.
// - A tab that nobody sees asks for nothing, and soon follows nothing: a browser has few connections to one server.
// - Rows are replaced, never changed: whoever keeps one keeps what was true then.

import { batch, effect, signal } from "./base.js";
import { ahead, AWAY, events, get, token } from "./api.js";

const PAGE = 1000;
const ASK_EACH = 333;
const MOST_NAMES = 200;
const WHOLE_EACH = 30_000;
// However often something is told that holds for all.
const WHOLE_AT_MOST = 2_000;
const STATUS_EACH = 1_000;
// What is wrong with the fleet file is told by no event.
const STATUS_AT_LEAST = 5_000;
// The server gives a sign of life each 15 s.
const SILENT = 20_000;
const [SHORTEST, LONGEST] = [250, 3_000];
// Somebody who only looks at another tab for a moment keeps the stream.
const UNSEEN = 5_000;

// By name, in the order of names.
export const agents = signal(new Map());
// With `asked`, when it was asked for by this clock: what was done after that it cannot know.
export const status = signal(null);
// `state` is connecting, live or stale; `since` when that began; `fresh` until when what is shown was true; `why` a Problem.
export const connection = signal({ state: "connecting", since: Date.now(), fresh: Date.now(), why: null });
// The server's time, each second: what is drawn of durations depends on it and on nothing else.
export const now = signal(Date.now());
// Whether both of the above are known.
export const loaded = signal(false);
// Whether somebody may be looking.
const seen = signal(!document.hidden);

const listeners = new Set();
const dirty = new Set();
let wanted = { status: true, whole: true };
let last = null;
let heard = Date.now();

// Calls `told(event)` for every event of the fleet; returns how to stop. An event without an agent may concern everybody;
// one of the kind "missed" says that there were others.
export function onEvent(told) {
  listeners.add(told);
  return () => listeners.delete(told);
}

function tell(event) {
  for (const told of [...listeners]) {
    try {
      told(event);
    } catch (error) {
      reportError(error);
    }
  }
}

// After something was done here: its effect is looked for at once.
export function touch(agent) {
  if (agent) dirty.add(agent);
  else all();
  wanted.status = true;
  asked.rows = asked.status = 0;
  plan();
}

function all() {
  wanted = { status: true, whole: true };
  asked = { rows: 0, status: 0, whole: 0 };
}

function say(state, why = null) {
  const before = connection.value;
  const since = Date.now() + ahead.value;
  // Of what nobody followed, as of what broke, the last sign of life counts, however late that was noticed.
  const fresh = before.state === "live" ? heard + ahead.value : loaded.value ? before.fresh : since;
  if (before.state !== state) connection.value = { state, since, fresh, why };
  else if (why) connection.value = { ...before, why };
}

// ---- rows

let asking = false;
// When each was last asked for.
let asked = { rows: 0, status: 0, whole: 0 };
let timer = 0;
let notBefore = 0;

// The next look, as soon as there is something to ask that was not just asked.
function plan() {
  clearTimeout(timer);
  const due = [asked.whole + WHOLE_EACH, asked.status + STATUS_AT_LEAST];
  if (wanted.whole) due.push(asked.whole + WHOLE_AT_MOST);
  if (wanted.status) due.push(asked.status + STATUS_EACH);
  if (dirty.size) due.push(asked.rows + ASK_EACH);
  timer = setTimeout(refresh, Math.max(Math.min(...due) - Date.now(), notBefore - Date.now(), 0));
}

async function refresh() {
  if (asking || !stream.open || document.hidden) return;
  asking = true;
  const { signal: cut } = stream.control;
  try {
    const at = Date.now();
    if (wanted.whole ? at - asked.whole >= WHOLE_AT_MOST : at - asked.whole >= WHOLE_EACH) await whole(cut);
    else if (dirty.size && at - asked.rows >= ASK_EACH) await some(cut);
    if (Date.now() - asked.status >= (wanted.status ? STATUS_EACH : STATUS_AT_LEAST)) await standing(cut);
    notBefore = 0;
    if (!cut.aborted && !wanted.whole) say("live");
  } catch (problem) {
    all();
    // With the stream broken, whoever follows it says so.
    if (!cut.aborted) {
      notBefore = Date.now() + LONGEST;
      if (token.value) say("stale", problem);
      if (problem.status === AWAY) stream.cut();
    }
  } finally {
    asking = false;
  }
  plan();
}

async function whole(cut) {
  wanted.whole = false;
  dirty.clear();
  asked.whole = asked.rows = Date.now();
  const found = new Map();
  const rows = async () => {
    for (let after = ""; after !== null; ) {
      const page = await get("/v1/agents", { after, limit: PAGE }, { signal: cut });
      for (const row of page.items) found.set(row.name, row);
      after = page.next;
    }
  };
  await Promise.all([rows(), standing(cut)]);
  batch(() => {
    agents.value = found;
    loaded.value = true;
  });
}

async function some(cut) {
  const names = [...dirty].slice(0, MOST_NAMES);
  for (const name of names) dirty.delete(name);
  asked.rows = Date.now();
  const page = await get("/v1/agents", { names, limit: PAGE }, { signal: cut });
  const found = new Map(agents.value);
  // Who is asked for and not told is gone; one that was not there before has its place among the others.
  for (const name of names) if (!page.items.some((row) => row.name === name)) found.delete(name);
  const many = found.size;
  for (const row of page.items) found.set(row.name, row);
  agents.value = found.size === many ? found : new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function standing(cut) {
  wanted.status = false;
  const at = (asked.status = Date.now());
  status.value = { ...(await get("/v1/status", {}, { signal: cut })), asked: at };
}

// ---- the stream

// What holds for all when it is told of nobody.
const FLEETWIDE = new Set(["booted", "declared", "removed", "paused", "resumed", "set"]);

// What changes nothing that is told of the fleet as a whole.
const OF_ONE = new Set(["asked", "marked_read", "snoozed", "step_saved", "passed_over", "acted", "denied", "tainted"]);

function take(event) {
  if (event.id !== null) last = event.id;
  if (!event.data) return;
  const { agent, kind } = event.data;
  if (agent) dirty.add(agent);
  else if (FLEETWIDE.has(kind)) wanted.whole = true;
  if (!OF_ONE.has(kind)) wanted.status = true;
  plan();
  tell(event.data);
}

const stream = {
  open: false,
  control: null,
  cut() {
    if (this.control) this.control.abort();
  },
};

// Listens as long as there is something to hear.
async function listen(begun) {
  const cut = (stream.control = new AbortController());
  const watch = setInterval(() => Date.now() - heard > SILENT && cut.abort(), 1000);
  heard = Date.now();
  try {
    if (last !== null && !(await isKnown(cut.signal))) last = null;
    const whence = last;
    for await (const event of events("/v1/stream", { last, signal: cut.signal, alive: () => (heard = Date.now()) })) {
      if (!stream.open) {
        stream.open = true;
        begun();
        notBefore = 0;
        all();
        plan();
        if (whence === null) tell({ kind: "missed", agent: null, fields: {} });
      }
      take(event);
    }
  } catch (problem) {
    if (problem.name !== "AbortError") throw problem;
  } finally {
    clearInterval(watch);
    stream.open = false;
    stream.control = null;
    cut.abort();
  }
}

// Whether this store ever came to where we are: it may be another one, which would have nothing to tell us for long.
async function isKnown(cut) {
  const page = await get("/v1/events", { after: Math.max(last - 1, 0), limit: 1 }, { signal: cut });
  return page.items.length > 0;
}

async function follow() {
  let pause = SHORTEST;
  for (;;) {
    await somebody();
    let why = { status: AWAY, message: "the engine ended the stream" };
    try {
      await listen(() => (pause = SHORTEST));
    } catch (problem) {
      why = problem;
    }
    if (!seen.value || !token.value) {
      // What happens meanwhile is not followed: afterwards everything is asked for anyway.
      last = null;
      say("connecting");
      continue;
    }
    say("stale", why);
    await rest(pause);
    pause = Math.min(pause * 2, LONGEST);
  }
}

// Until there is a token, and somebody who looks.
const somebody = () =>
  new Promise((resolve) => {
    const stop = effect(() => {
      if (token.value && seen.value) queueMicrotask(() => (stop(), resolve()));
    });
  });

let rested = () => {};
const rest = (milliseconds) =>
  new Promise((resolve) => {
    rested = resolve;
    setTimeout(resolve, milliseconds);
  });

// ---- time, and who looks

function tick() {
  if (document.hidden) return;
  now.value = Date.now() + ahead.value;
  // A pause that runs out is told by nobody.
  if (status.value && status.value.pauses.some((pause) => pause.until && Date.parse(pause.until) <= now.value)) {
    wanted = { status: true, whole: true };
    plan();
  }
}

function look() {
  clearTimeout(look.timer);
  if (document.hidden) {
    look.timer = setTimeout(() => ((seen.value = false), stream.cut()), UNSEEN);
    return;
  }
  batch(() => {
    seen.value = true;
    now.value = Date.now() + ahead.value;
  });
  all();
  rested();
  plan();
}

export function begin() {
  document.addEventListener("visibilitychange", look);
  window.addEventListener("online", () => rested());
  setInterval(tick, 1000);
  // Known with the first answer, and before the rows in it are drawn.
  effect(() => void (now.value = Date.now() + ahead.value));
  effect(() => {
    if (token.value) return;
    // The next one may be of another fleet.
    stream.cut();
    batch(() => {
      loaded.value = false;
      status.value = null;
      agents.value = new Map();
    });
  });
  follow();
}
