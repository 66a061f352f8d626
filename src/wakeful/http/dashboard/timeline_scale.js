// Which stretch of time is looked at, and where an instant lies in it.
//
// Laws:
// - Who follows sees the last hours and a third as much of the next; the stretch then moves with the clock. Who moves or
//   zooms about a point stands still until asking for now again.
// - What is cheap to draw follows `view`, at every frame; what is dear follows `rested`, when the hand is still.
// - Ticks lie at whole minutes, hours and days of the reader's own zone, on days of 23 and 25 hours too.

import { batch, signal } from "./base.js";
import { now } from "./live.js";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const PRESETS = [[HOUR, "1 h"], [6 * HOUR, "6 h"], [DAY, "24 h"], [3 * DAY, "3 d"]];
const SHORTEST = 2 * MINUTE;
const LONGEST = 7 * DAY;
const OLDEST = 30 * DAY;
const REST = 120;

// How much of the past is followed, in milliseconds; null for who stands still.
export const following = signal(6 * HOUR);
export const view = signal(around(6 * HOUR, Date.now()));
export const rested = signal(view.peek());
// Of the track that the lanes are drawn on, in pixels.
export const width = signal(0);

function around(past, at) {
  return { since: at - past, until: at + past / 3 };
}

let rest = null;

function show({ since, until }, at = now.peek()) {
  const span = Math.min(Math.max(until - since, SHORTEST), LONGEST);
  const middle = (since + until) / 2;
  const first = Math.min(Math.max(middle - span / 2, at - OLDEST), at + LONGEST - span);
  view.value = { since: first, until: first + span };
  clearTimeout(rest);
  rest = setTimeout(settle, REST);
}

export function settle() {
  rested.value = view.peek();
}

export function follow(past = following.peek() || (view.peek().until - view.peek().since) * 0.75) {
  const most = Math.min(Math.max(past, SHORTEST * 0.75), LONGEST * 0.75);
  batch(() => {
    following.value = most;
    show(around(most, now.peek()));
    settle();
  });
}

// Each second, for who follows.
export function goOn() {
  if (!following.peek()) return;
  const { since, until } = (view.value = around(following.peek(), now.peek()));
  const moved = Math.abs(since - rested.peek().since) + Math.abs(until - rested.peek().until);
  if (moved * width.peek() > until - since) settle();
}

export function stand(stretch) {
  batch(() => {
    following.value = null;
    show(stretch);
  });
}

export function move(share) {
  const { since, until } = view.peek();
  const by = (until - since) * share;
  stand({ since: since + by, until: until + by });
}

// `factor` below one comes nearer. Without an instant it zooms about now where that is followed, else about the middle.
export function zoom(factor, about = null) {
  if (about === null && following.peek()) return follow(following.peek() * factor);
  const { since, until } = view.peek();
  const wanted = Math.min(Math.max((until - since) * factor, SHORTEST), LONGEST);
  const at = about ?? (since + until) / 2;
  const left = ((at - since) / (until - since)) * wanted;
  return stand({ since: at - left, until: at - left + wanted });
}

export const toPixel = (at, { since, until } = view.peek(), wide = width.peek()) => ((at - since) / (until - since)) * wide;
export const toTime = (pixel, { since, until } = view.peek(), wide = width.peek()) => since + (pixel / wide) * (until - since);

// ---- ticks

const SECONDS = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const TWO = (number) => String(number).padStart(2, "0");
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export const dayWords = (at) => ((date) => `${DAYS[date.getDay()]} ${date.getDate()} ${MONTHS[date.getMonth()]}`)(new Date(at));

// [{at, label, day}], no nearer to each other than their labels allow; `day` where one begins. All lanes ask for the same.
export function ticks(stretch, wide) {
  if (kept.stretch !== stretch || kept.wide !== wide) kept = { stretch, wide, ticks: wide ? ticked(stretch, wide) : [] };
  return kept.ticks;
}

const LEAST = 76;
let kept = { stretch: null, wide: 0, ticks: [] };

function ticked({ since, until }, wide) {
  const step = SECONDS.find((each) => (each * 1000 * wide) / (until - since) >= LEAST) || SECONDS.at(-1);
  const each = (86400 * 1000 * wide) / (until - since);
  const days = Math.max(Math.ceil(LEAST / each), 1);
  const found = new Map();
  const first = new Date(since);
  for (let day = 0; ; day += step === 86400 ? days : 1) {
    const midnight = new Date(first.getFullYear(), first.getMonth(), first.getDate() + day);
    if (midnight > until) break;
    const passed = Math.max(Math.floor((since - midnight) / 1000 / step) - 3600 / step - 1, 0);
    for (let second = Math.floor(passed) * step; second < 86400; second += step) {
      const moment = new Date(midnight.getFullYear(), midnight.getMonth(), midnight.getDate(), 0, 0, second);
      if (moment > until) break;
      if (moment >= since) found.set(moment.getTime(), tick(moment, step));
    }
  }
  return [...found.values()];
}

function tick(moment, step) {
  const day = !moment.getHours() && !moment.getMinutes() && !moment.getSeconds();
  const hour = `${TWO(moment.getHours())}:${TWO(moment.getMinutes())}${step < 60 ? `:${TWO(moment.getSeconds())}` : ""}`;
  return { at: moment.getTime(), day, label: day ? dayWords(moment) : hour };
}
