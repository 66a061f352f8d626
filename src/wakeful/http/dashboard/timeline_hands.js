// Mouse, fingers and keys on the lanes.
//
// Laws:
// - The wheel alone scrolls the page, as everywhere; with ctrl it zooms about the pointer, with shift it moves in time.
// - A drag is no click. A finger's first touch shows what is there, its second goes there.
// - On a mark, arrows go from mark to mark and from lane to lane; elsewhere they move in time.

import { signal, useEffect } from "./base.js";
import { now } from "./live.js";
import { laneOf } from "./timeline_data.js";
import { endOf } from "./timeline_marks.js";
import { BAR } from "./timeline_paint.js";
import { follow, move, settle, stand, toPixel, toTime, view, width, zoom } from "./timeline_scale.js";

const NEAR = 6;
const DRAG = 4;
const STEP = 0.2;
const NEARER = 0.7;

// What is pointed at or focused: {agent, key, x, y, by}; where it stands on the screen is kept for the words beside it.
export const hovered = signal(null);
// The mark that the keys stand on, by agent and key.
export const focused = signal(null);

// ---- what is there

export function markAt(lane, x, y) {
  if (!lane) return null;
  const { runs, wakes, ahead, areas } = lane.marks;
  const order = y < BAR.top - 1 ? [wakes, runs, ahead, areas] : y > BAR.top + BAR.height + 1 ? [areas, runs, ahead, wakes] : [runs, ahead, wakes, areas];
  for (const marks of order) {
    const found = nearest(marks, x);
    if (found) return found;
  }
  return null;
}

function nearest(marks, x) {
  let best = null;
  let least = NEAR + 0.01;
  for (const mark of marks) {
    const left = toPixel(mark.at);
    const right = Math.max(toPixel(endOf(mark, now.peek())), left + (mark.kind === "ahead" ? 10 : 3));
    const away = x < left ? left - x : x > right ? x - right : 0;
    // Of two at the same place the later one lies above.
    if (away <= least && away <= NEAR) [best, least] = [mark, away];
  }
  return best;
}

function point(event) {
  const track = event.target.closest && event.target.closest(".timeline-track");
  const agent = track && track.dataset.agent;
  if (!agent) return (hovered.value = null);
  const box = track.getBoundingClientRect();
  const mark = markAt(laneOf(agent).peek(), event.clientX - box.left, event.clientY - box.top);
  return (hovered.value = mark && { agent, key: mark.key, x: event.clientX, y: event.clientY, by: event.pointerType });
}

// ---- mouse and fingers

class Hands {
  constructor(chart) {
    this.chart = chart;
    this.down = new Map();
    this.moved = 0;
    this.shown = null;
  }

  left() {
    const track = this.chart.querySelector(".timeline-track");
    return track ? track.getBoundingClientRect().left : 0;
  }

  begin(event) {
    if (event.button || !event.target.closest(".timeline-track, .timeline-hours")) return;
    this.down.set(event.pointerId, event.clientX);
    this.moved = 0;
    this.shown = hovered.peek() && hovered.peek().key;
    if (event.pointerType === "touch") point(event);
  }

  move(event) {
    if (!this.down.has(event.pointerId)) return void (event.pointerType !== "touch" && point(event));
    const before = [...this.down.values()];
    const by = event.clientX - this.down.get(event.pointerId);
    this.moved += Math.abs(by);
    if (this.moved <= DRAG && before.length === 1) return void this.down.set(event.pointerId, event.clientX);
    this.down.set(event.pointerId, event.clientX);
    if (!this.chart.hasPointerCapture(event.pointerId)) this.chart.setPointerCapture(event.pointerId);
    hovered.value = null;
    if (before.length === 2) this.pinch(before, [...this.down.values()]);
    else if (before.length === 1) move(-by / width.peek());
  }

  pinch(before, after) {
    const [wide, wider] = [before, after].map(([one, other]) => Math.max(Math.abs(one - other), 10));
    zoom(wide / wider, toTime((after[0] + after[1]) / 2 - this.left()));
  }

  end(event) {
    this.down.delete(event.pointerId);
  }

  click(event) {
    const touched = event.pointerType === "touch" && hovered.peek() && hovered.peek().key !== this.shown;
    if (event.target.closest(".timeline-spot") && (this.moved > DRAG || touched)) event.preventDefault();
  }

  wheel(event) {
    const aside = event.shiftKey ? event.deltaX || event.deltaY : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (!event.ctrlKey && !event.metaKey && !aside) return;
    event.preventDefault();
    hovered.value = null;
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.min(Math.max(event.deltaY, -120), 120) / 300), toTime(event.clientX - this.left()));
    else move(aside / width.peek());
  }

  leave(event) {
    if (event.pointerType !== "touch" && hovered.peek() && hovered.peek().by !== "keys") hovered.value = null;
  }
}

// On the element that holds the lanes.
export function useHands(ref) {
  useEffect(() => {
    const chart = ref.current;
    const hands = new Hands(chart);
    const heard = {
      pointerdown: (event) => hands.begin(event), pointermove: (event) => hands.move(event), pointerup: (event) => hands.end(event),
      pointercancel: (event) => hands.end(event), pointerleave: (event) => hands.leave(event), click: (event) => hands.click(event),
      dragstart: (event) => event.preventDefault(), wheel: (event) => hands.wheel(event),
    };
    for (const [name, told] of Object.entries(heard)) chart.addEventListener(name, told, { passive: false, capture: name === "click" });
    // The pointer stands still, and something else is under it.
    const scrolled = () => {
      const held = hovered.peek();
      if (held && held.by !== "keys") point({ target: document.elementFromPoint(held.x, held.y) || chart, clientX: held.x, clientY: held.y, pointerType: held.by });
    };
    window.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      for (const [name, told] of Object.entries(heard)) chart.removeEventListener(name, told, { capture: name === "click" });
      window.removeEventListener("scroll", scrolled);
      hovered.value = focused.value = null;
    };
  }, []);
}

// ---- keys

const KEYS = {
  "+": () => zoom(NEARER), "=": () => zoom(NEARER), "-": () => zoom(1 / NEARER), _: () => zoom(1 / NEARER), n: () => follow(),
  ArrowLeft: () => move(-STEP), ArrowRight: () => move(STEP), Home: () => follow(),
};

// `names` are the lanes in their order.
export function pressed(event, names) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  const spot = event.target.closest(".timeline-spot");
  if (event.key === "Escape" && hovered.peek()) hovered.value = null;
  else if (spot && !event.shiftKey && event.key.startsWith("Arrow")) step(event.key, focused.peek(), names);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
}

function step(key, from, names) {
  const lane = from && laneOf(from.agent).peek();
  const at = lane ? lane.marks.all.findIndex((mark) => mark.key === from.key) : -1;
  if (at < 0) return;
  if (key === "ArrowLeft" || key === "ArrowRight") return stepTo(from.agent, lane.marks.all[at + (key === "ArrowLeft" ? -1 : 1)]);
  const by = key === "ArrowUp" ? -1 : 1;
  for (let index = names.indexOf(from.agent) + by; index >= 0 && index < names.length; index += by) {
    const other = laneOf(names[index]).peek();
    if (!other) return;
    const seen = other.marks.all.filter((mark) => mark.at <= view.peek().until && endOf(mark, now.peek()) >= view.peek().since);
    const best = seen.reduce((one, mark) => (one && Math.abs(one.at - lane.marks.all[at].at) <= Math.abs(mark.at - lane.marks.all[at].at) ? one : mark), null);
    if (best) return stepTo(names[index], best);
  }
}

function stepTo(agent, mark) {
  if (!mark) return;
  const { since, until } = view.peek();
  if (endOf(mark, now.peek()) < since || mark.at > until) {
    stand({ since: mark.at - (until - since) / 2, until: mark.at + (until - since) / 2 });
    settle();
  }
  focused.value = { agent, key: mark.key };
}
