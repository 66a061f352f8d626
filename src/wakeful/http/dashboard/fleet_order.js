// Which agents are looked for and in which order: pure, of rows and of what the address asks for.
//
// Law: unless asked otherwise, who needs somebody comes first: held back by its own failures, failing, blind to a source,
// over its time; then who was told to stop, who waits, who runs, and last who has nothing to do.

import { now } from "./live.js";
import { time } from "./words.js";

// What may be asked for; the first that holds is what an agent is shown as. Those marked `needs` want a person.
export const CONDITIONS = [
  { name: "quarantined", sign: "quarantined", needs: true, holds: (row) => row.state === "quarantined" },
  { name: "failing", sign: "failed", needs: true, holds: isFailing },
  { name: "outage", sign: "outage", needs: true, holds: (row) => outagesOf(row).length > 0 },
  { name: "overdue", sign: "outage", needs: true, holds: isOverdue },
  { name: "paused", sign: "paused", holds: (row) => row.state === "paused" },
  { name: "waiting", sign: "waiting", holds: (row) => row.state === "waiting" },
  { name: "running", sign: "running", holds: (row) => row.run !== null },
  { name: "idle", sign: "idle", holds: (row) => row.state === "idle" },
  { name: "disabled", sign: "disabled", holds: (row) => row.state === "disabled" },
];

// Its end comes within seconds of its limit: one that is still there has something wrong with it.
const GRACE = 30_000;

function isFailing(row) {
  const held = row.state === "quarantined" || row.state === "disabled" || (row.paused && row.paused.scope !== "fleet");
  return !held && (row.failure_streak > 0 || row.last.outcome === "failed");
}

function isOverdue(row) {
  return row.run !== null && row.wall_clock > 0 && now.peek() - time(row.run_started_at) > row.wall_clock * 1000 + GRACE;
}

export const outagesOf = (row) => row.sources.filter((source) => source.outage);
export const rankOf = (row) => CONDITIONS.findIndex((each) => each.holds(row));
export const conditionOf = (row) => CONDITIONS[rankOf(row)];
export const needs = (row) => Boolean(conditionOf(row).needs);

// How many of each there are; one agent may be counted in two.
export function countsOf(rows) {
  return CONDITIONS.map((condition) => ({ ...condition, many: rows.filter(condition.holds).length }));
}

// When something of it begins, as far as is known.
export function nextOf(row) {
  if (row.state === "paused" || row.state === "quarantined") return row.paused && row.paused.until;
  const again = row.waiting && row.waiting.next_eligible;
  // What waits may be the beat itself.
  const beat = row.next_beat && (!row.waiting || row.waiting.cause !== "timer") && row.next_beat.at;
  return again && beat ? (again < beat ? again : beat) : again || beat || null;
}

// ---- what is looked for

export const ATTENTION = "attention";

// `down`: whether its first order is from the largest on. What is not there comes last in either.
export const COLUMNS = [
  { name: "name", word: "Agent", of: (row) => row.name },
  { name: ATTENTION, word: "Doing", hint: "who needs attention first", of: rankOf },
  { name: "day", word: "Day", of: (row) => (row.day.length ? row.position.state : null) },
  { name: "wakes", word: "Wakes", hint: "admitted today, of those allowed", down: true, of: (row) => row.today.wakes.used },
  { name: "minutes", word: "Minutes", hint: "at work today, of those allowed", down: true, of: (row) => row.today.minutes.used },
  { name: "usd", word: "Dollars", hint: "spent today, of the budget", down: true, of: (row) => row.today.usd.used },
  { name: "inbox", word: "Inbox", hint: "unread messages", down: true, of: (row) => row.unread },
  { name: "tasks", word: "Tasks", hint: "open tasks", down: true, of: (row) => row.open_tasks },
  { name: "last", word: "Last outcome", down: true, of: (row) => row.last.ended_at },
  { name: "next", word: "Next", hint: "its next beat", of: (row) => nextOf(row) },
];

export function read(query) {
  const said = query.get("sort") || ATTENTION;
  const down = said.startsWith("-");
  const column = COLUMNS.find((each) => each.name === said.replace(/^-/, "")) || COLUMNS.find((each) => each.name === ATTENTION);
  const states = (query.get("state") || "").split(",").filter((name) => CONDITIONS.some((each) => each.name === name));
  return { column, down, states, text: query.get("text") || "" };
}

export function write({ column, down, states, text }) {
  const sort = `${down ? "-" : ""}${column.name}`;
  return { sort: sort === ATTENTION ? "" : sort, state: states.join(","), text };
}

// The words that do not change while one looks: a time that runs is nothing to search for.
const words = new WeakMap();
function wordsOf(row) {
  if (!words.has(row)) words.set(row, gathered(row));
  return words.get(row);
}

function gathered(row) {
  const said = row.doing.filter((part) => typeof part === "string").join(" ");
  const away = outagesOf(row).map((source) => `${source.source} ${source.outage}`);
  return [row.name, row.address, row.position.state, said, row.last.outcome, row.last.reason, row.node, ...away].join(" ").toLowerCase();
}

export function matching(rows, { states, text }) {
  const looked = text.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = CONDITIONS.filter((each) => states.includes(each.name));
  return rows.filter((row) => {
    if (chosen.length && !chosen.some((each) => each.holds(row))) return false;
    return !looked.length || looked.every((word) => wordsOf(row).includes(word));
  });
}

export function ordered(rows, { column, down }) {
  const keyed = rows.map((row) => [column.of(row), row]);
  const sign = down ? -1 : 1;
  keyed.sort(([a, first], [b, second]) => {
    if (a !== b) {
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      if (a < b) return -sign;
      if (a > b) return sign;
    }
    return first.name < second.name ? -1 : 1;
  });
  return keyed.map(([, row]) => row);
}

// In the order that they had; who is new comes last, and who no longer matches stays as long as it is there.
export function asBefore(names, rows, all) {
  const before = new Set(names);
  return [...names.filter((name) => all.has(name)).map((name) => all.get(name)), ...rows.filter((row) => !before.has(row.name))];
}
