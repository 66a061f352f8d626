// Times, durations, money and states in plain words, as the command line says them.

import { computed, html, useMemo } from "./base.js";
import { now } from "./live.js";

const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

// The two largest units: 45s, 2m 13s, 1h 5m, 3d 2h.
export function lasting(seconds) {
  let rest = Math.max(Math.floor(seconds), 0);
  const parts = [];
  for (const [unit, size] of UNITS) {
    parts.push([Math.floor(rest / size), unit]);
    rest %= size;
  }
  while (parts.length > 1 && !parts[0][0]) parts.shift();
  const [first, second] = parts;
  return `${first[0]}${first[1]}` + (second && second[0] ? ` ${second[0]}${second[1]}` : "");
}

// The same for a glance: seconds only where they soon matter.
export function roughly(seconds) {
  if (seconds < 300) return lasting(seconds);
  const [first, second] = lasting(seconds).split(" ");
  return first.startsWith("1") && first.length === 2 && second ? `${first} ${second}` : first;
}

export const time = (text) => Date.parse(text);
export const since = (text, at = now.value) => lasting((at - time(text)) / 1000);

export function until(text, at = now.value) {
  const left = Math.ceil((time(text) - at) / 1000);
  return left > 0 ? `in ${lasting(left)}` : "now";
}

const TWO = (number) => String(number).padStart(2, "0");
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// 14:05 today, Tue 14:05 within the week, else with the date; with seconds where that is near.
export function clock(text, at = now.value, seconds = false) {
  if (!text) return "–";
  const moment = new Date(text);
  const here = new Date(at);
  const near = Math.abs(moment - here) < 120_000;
  const hours = `${TWO(moment.getHours())}:${TWO(moment.getMinutes())}${near || seconds ? `:${TWO(moment.getSeconds())}` : ""}`;
  if (moment.toDateString() === here.toDateString()) return hours;
  if (Math.abs(moment - here) < 6 * 86_400_000) return `${DAYS[moment.getDay()]} ${hours}`;
  return `${moment.getFullYear()}-${TWO(moment.getMonth() + 1)}-${TWO(moment.getDate())} ${hours}`;
}

export const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
export const grouped = (number) => Number(number).toLocaleString("en-US");

export function money(dollars) {
  if (dollars === null || dollars === undefined) return "–";
  return dollars && Math.abs(dollars) < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`;
}

// What the server says in parts: text, and times that go on.
const PARTS = { for: since, in: until, at: clock, ago: (text, at) => `${since(text, at)} ago` };

export function partsText(parts, at = now.value) {
  return (parts || []).map((part) => (typeof part === "string" ? part : part_(part, at))).join("");
}

function part_(part, at) {
  const [kind, text] = Object.entries(part)[0];
  return PARTS[kind] ? PARTS[kind](text, at) : "";
}

// A text that goes on with the time; only where it reads differently is it written anew.
export function Running({ of, about }) {
  return html`${useMemo(() => computed(() => of(now.value)), about)}`;
}

export function Doing({ parts }) {
  return html`<span class="doing"><${Running} of=${(at) => partsText(parts, at)} about=${[parts]} /></span>`;
}

// A moment, with the whole of it to hover.
export function When({ at, how = "clock" }) {
  if (!at) return html`<span class="dim">–</span>`;
  const said = { clock, ago: PARTS.ago, in: until, for: since }[how](at, now.value);
  return html`<time datetime=${at} title=${new Date(at).toString()}>${said}</time>`;
}

// A sign and a word for every state and outcome: the colour alone says nothing.
export const SIGNS = {
  running: "▶", waiting: "◔", idle: "○", paused: "‖", quarantined: "✖", disabled: "–", outage: "▲",
  done: "✔", no_work: "∅", failed: "✖", killed: "☠",
  admit: "✔", defer: "◔", refuse: "⊘",
  pending: "○", in_progress: "▶", completed: "✔", cancelled: "–", dead_letter: "☠", blocked: "⊘",
};
export const plain = (word) => String(word ?? "").replaceAll("_", " ");

export function State({ of, word }) {
  return html`<span class=${`state is-${of}`}><i aria-hidden="true">${SIGNS[of] || "·"}</i>${word ?? plain(of)}</span>`;
}
