// The lanes that are known, and how they stay true.
//
// Laws:
// - Only lanes in sight are asked for, together, one request at a time: with half a screen to either side, so that
//   moving a little asks for nothing.
// - An event says only that a lane is no longer true. What happened lately is then asked for and put to the rest; what
//   can have changed the past of a lane (a pause, a declaration, a void start) has the whole of it asked for.
// - A lane is replaced, never changed, and stays until something newer is known. Those out of sight are forgotten in time.

import { batch, effect, signal } from "./base.js";
import { get } from "./api.js";
import { connection, onEvent } from "./live.js";
import { marksOf } from "./timeline_marks.js";
import { DAY, rested } from "./timeline_scale.js";
import { time } from "./words.js";

const LOOK_EACH = 100;
const ASK_EACH = 700;
const AFTER_A_FAULT = 2_000;
const MOST_LANES = 50;
const MOST_KNOWN = 300;
const WHOLE_EACH = 120_000;
const OVERLAP = 30_000;
const LONGEST = 7 * DAY;

const OF_NOW = new Set(["asked", "decided", "started", "stopped", "ended"]);
const OF_THE_PAST = new Set(["declared", "removed", "set", "paused", "resumed", "voided", "missed"]);

const known = new Map();
const seen = new Map();
const touched = new Set();
const doubted = new Set();

export const problem = signal(null);
// Grows whenever some lane has changed.
export const changes = signal(0);

export function laneOf(name) {
  if (!known.has(name)) known.set(name, signal(null));
  return known.get(name);
}

// While it is in sight it is kept true; returns how to let go of it.
export function keepInSight(name) {
  seen.set(name, (seen.get(name) || 0) + 1);
  return () => {
    const left = seen.get(name) - 1;
    if (left) seen.set(name, left);
    else seen.delete(name);
  };
}

export const inSight = () => [...seen.keys()];

// While the page is open.
export function begin() {
  const timer = setInterval(look, LOOK_EACH);
  const deaf = onEvent(hear);
  const stop = effect(() => {
    if (connection.value.state === "live") for (const name of seen.keys()) doubted.add(name);
  });
  return () => {
    clearInterval(timer);
    deaf();
    stop();
  };
}

function hear(event) {
  if (OF_THE_PAST.has(event.kind)) for (const name of known.keys()) doubted.add(name);
  else if (OF_NOW.has(event.kind) && known.has(event.agent)) touched.add(event.agent);
}

// ---- asking

let asking = false;
let next = 0;

async function look() {
  if (asking || document.hidden || Date.now() < next) return;
  const turn = wanted();
  if (!turn) return;
  asking = true;
  next = Date.now() + ASK_EACH;
  try {
    await turn();
    problem.value = null;
  } catch (fault) {
    problem.value = fault;
    next = Date.now() + AFTER_A_FAULT;
  } finally {
    asking = false;
  }
}

function wanted() {
  const lacking = [];
  const cut = [];
  const late = [];
  for (const name of seen.keys()) {
    const lane = laneOf(name).peek();
    const state = stateOf(lane, rested.peek());
    if (state === "cut") cut.push(name);
    else if (state === "lacking" || doubted.has(name)) lacking.push(name);
    else if (touched.has(name)) late.push(name);
  }
  // What nobody has seen yet is not kept waiting behind the pace of what happens.
  if (lacking.length) return () => whole(lacking.slice(0, MOST_LANES), padded(rested.peek()));
  if (cut.length) return () => whole(cut.slice(0, MOST_LANES), rested.peek());
  return late.length ? () => newest(late.slice(0, MOST_LANES)) : null;
}

function stateOf(lane, stretch) {
  if (!lane || lane.since > stretch.since || lane.until < stretch.until || Date.now() - lane.asked > WHOLE_EACH) return "lacking";
  // The oldest were left out: with fewer behind the stretch there would be room for them.
  const first = lane.more ? Math.min(...[lane.marks.runs[0], lane.marks.wakes[0]].filter(Boolean).map((mark) => mark.at)) : 0;
  return lane.more && stretch.since < first && lane.last > stretch.until ? "cut" : "known";
}

function padded({ since, until }) {
  const more = Math.min((until - since) / 2, (LONGEST - (until - since)) / 2);
  return { since: since - more, until: until + more };
}

const said = (at) => new Date(at).toISOString();

async function whole(names, { since, until }) {
  for (const name of names) {
    doubted.delete(name);
    touched.delete(name);
  }
  try {
    const answer = await get("/v1/timeline", { agents: names, since: said(since), until: said(until) });
    const found = new Map(answer.lanes.map((lane) => [lane.agent, lane]));
    take(names.map((name) => ({ ...(found.get(name) || nothing(name)), since, until, at: time(answer.now), asked: Date.now() })));
  } catch (fault) {
    for (const name of names) doubted.add(name);
    throw fault;
  }
}

// Declared and removed since, or the other way round.
const nothing = (agent) => ({ agent, runs: [], wakes: [], quiet: [], pauses: [], ahead: [], ahead_until: null, more: 0 });

async function newest(names) {
  for (const name of names) touched.delete(name);
  const before = names.map((name) => laneOf(name).peek());
  const since = Math.min(...before.map((lane) => lane.at)) - OVERLAP;
  const until = Math.max(...before.map((lane) => lane.until));
  if (since >= until) return;
  try {
    const answer = await get("/v1/timeline", { agents: names, since: said(since), until: said(until) });
    const found = new Map(answer.lanes.map((lane) => [lane.agent, lane]));
    take(before.filter((lane) => found.has(lane.agent)).map((lane) => joined(lane, found.get(lane.agent), time(answer.now))));
  } catch (fault) {
    for (const name of names) touched.add(name);
    throw fault;
  }
}

function joined(lane, late, at) {
  const told = new Set(late.runs.map((run) => run.id));
  // One that was under way and is told of no more never began.
  const runs = [...lane.runs.filter((run) => run.end !== null && !told.has(run.id)), ...late.runs];
  const verdicts = new Map([...lane.wakes, ...late.wakes].map((wake) => [`${wake.wake_id} ${wake.at} ${wake.verdict}`, wake]));
  return { ...lane, runs, wakes: [...verdicts.values()], ahead: late.ahead, ahead_until: late.ahead_until, more: lane.more + late.more, at };
}

function take(lanes) {
  batch(() => {
    for (const lane of lanes) {
      const marks = marksOf(lane);
      const last = Math.max(0, ...[marks.runs.at(-1), marks.wakes.at(-1)].filter(Boolean).map((mark) => mark.at));
      laneOf(lane.agent).value = { ...lane, marks, last };
    }
    changes.value += 1;
  });
  for (const name of known.keys()) {
    if (known.size <= MOST_KNOWN) break;
    if (!seen.has(name)) known.delete(name);
  }
}

// All is asked for anew, as somebody wishes.
export function again() {
  for (const name of seen.keys()) doubted.add(name);
  next = 0;
}
