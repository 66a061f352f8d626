// One lane: who it is and what it is doing, its picture, and the links that lie above the picture.
//
// Laws:
// - A lane is painted when something of it changed, once for each frame at most, and never by making its elements again.
// - Every mark is a link with the whole of it in words. Where there are very many, those around the one that is looked
//   at are there; the keys reach all of them, and a lane is one stop of the tabulator.

import { effect, html, useComputed, useEffect, useLayoutEffect, useRef, useSignal } from "./base.js";
import { agents, now } from "./live.js";
import { AgentLink } from "./parts.js";
import { keepInSight, laneOf } from "./timeline_data.js";
import { focused, hovered } from "./timeline_hands.js";
import { endOf, sentence } from "./timeline_marks.js";
import { BAR, FOOT, paintLane, palette, WAKES } from "./timeline_paint.js";
import { rested, toPixel, view, width } from "./timeline_scale.js";
import { clock, Doing, SIGNS, time } from "./words.js";

const MOST_SPOTS = 48;
// Of a lane that is only nearly seen.
const FEW_SPOTS = 12;

// ---- painting

const waiting = new Set();
let frame = 0;

function soon(draw) {
  waiting.add(draw);
  if (!frame) frame = requestAnimationFrame(paintAll);
}

function paintAll() {
  frame = 0;
  const drawn = [...waiting];
  waiting.clear();
  for (const draw of drawn) draw();
}

// `near` says whether it can be seen, or nearly so.
function Picture({ name, near }) {
  const ref = useRef(null);
  useEffect(() => {
    const draw = () => {
      const [colours, wide] = [palette.peek(), width.peek()];
      if (ref.current && colours && wide) paintLane(ref.current, laneOf(name).peek(), { wide, view: view.peek(), at: now.peek(), colours });
    };
    const stop = effect(() => {
      // One that is only nearly seen is ready when it comes, and does not follow every step.
      const known = [laneOf(name).value, width.value, palette.value, near.value ? [view.value, now.value] : rested.value];
      if (known) soon(draw);
    });
    return () => {
      stop();
      waiting.delete(draw);
    };
  }, []);
  return html`<canvas ref=${ref} aria-hidden="true"></canvas>`;
}

// One eye for all lanes.
const eyes = new WeakMap();
const eye = new IntersectionObserver((entries) => entries.forEach((entry) => eyes.has(entry.target) && (eyes.get(entry.target).value = entry.isIntersecting)), { rootMargin: "60px 0px" });

// ---- links

const AREAS = new Set(["quiet", "pause"]);
const PLACES = {
  run: (left, right) => [left - 1, Math.max(right - left, 8) + 2, BAR.top - 2, BAR.height + 4],
  wake: (left) => [left - 7, 14, WAKES - 8, 16],
  ahead: (left) => [left - 2, 13, BAR.top - 1, BAR.height + 2],
  quiet: (left, right) => [left, Math.min(right - left, 150), FOOT - 7, 14],
  pause: (left, right) => [left, Math.min(right - left, 150), FOOT - 7, 14],
};

function placeOf(mark, stretch, wide, at) {
  const left = Math.max(toPixel(mark.at, stretch, wide), 0);
  const right = Math.min(toPixel(endOf(mark, at), stretch, wide), wide);
  const [x, broad, y, high] = PLACES[mark.kind](left, Math.max(right, left));
  return { left: `${x}px`, width: `${broad}px`, top: `${y}px`, height: `${high}px` };
}

function shownOf(lane, stretch, at, wanted, most) {
  const seen = lane.marks.all.filter((mark) => mark.at <= stretch.until && endOf(mark, at) >= stretch.since);
  // What held it is little, and is always there.
  const areas = seen.filter((mark) => AREAS.has(mark.kind));
  const all = seen.filter((mark) => !AREAS.has(mark.kind) || mark.key === wanted);
  const found = all.findIndex((mark) => mark.key === wanted);
  const last = all.findLastIndex((mark) => mark.at <= at);
  const middle = found >= 0 ? found : Math.max(last, 0);
  const first = Math.max(Math.min(middle - most / 2, all.length - most), 0);
  const marks = [...new Set([...areas, ...all.slice(first, first + most)])].sort((one, other) => one.at - other.at);
  return { marks, stop: (all[middle] || areas[0] || {}).key };
}

function Spots({ name, near }) {
  const lane = laneOf(name).value;
  const hot = useComputed(() => (hovered.value && hovered.value.agent === name ? hovered.value.key : null)).value;
  const held = useComputed(() => (focused.value && focused.value.agent === name ? focused.value.key : null)).value;
  const ref = useRef(null);
  const [stretch, wide] = [rested.value, width.value];
  useLayoutEffect(() => {
    const found = held && [...ref.current.children].find((spot) => spot.dataset.key === held);
    const active = document.activeElement;
    // Never from somebody who meanwhile does something else.
    if (found && found !== active && (active === document.body || active.closest(".timeline-chart"))) found.focus();
  });
  if (!lane || !wide) return html`<div ref=${ref} class="timeline-spots"></div>`;
  const at = now.peek();
  const { marks, stop } = shownOf(lane, stretch, at, held || hot, near.value ? MOST_SPOTS : FEW_SPOTS);
  const focus = (event, mark) => {
    const box = event.currentTarget.getBoundingClientRect();
    focused.value = { agent: name, key: mark.key };
    if (!hovered.peek() || hovered.peek().by === "keys") hovered.value = { agent: name, key: mark.key, x: box.left + Math.min(box.width / 2, 40), y: box.bottom, by: "keys" };
  };
  const blur = () => {
    focused.value = null;
    if (hovered.peek() && hovered.peek().by === "keys") hovered.value = null;
  };
  return html`<div ref=${ref} class="timeline-spots">${marks.map(
    (mark) => html`<a key=${mark.key} data-key=${mark.key} class=${`timeline-spot is-${mark.kind}${mark.key === hot ? " is-hot" : ""}`} href=${mark.href} tabindex=${mark.key === (held || stop) ? 0 : -1}
      aria-label=${sentence(mark, lane, at)} style=${placeOf(mark, stretch, wide, at)} draggable=${false} onFocus=${(event) => focus(event, mark)} onBlur=${blur}></a>`,
  )}</div>`;
}

// ---- the whole

function Label({ name }) {
  const row = useComputed(() => agents.value.get(name)).value;
  if (!row) return html`<div role="rowheader" class="timeline-label"><strong>${name}</strong></div>`;
  return html`<div role="rowheader" class="timeline-label">
    <strong class=${`state is-${row.state}`} title=${name}><i aria-hidden="true">${SIGNS[row.state] || "·"}</i><${AgentLink} name=${name} /></strong>
    <small><${Doing} parts=${row.doing} /></small>
  </div>`;
}

function More({ name }) {
  const lane = laneOf(name).value;
  if (!lane) return null;
  const far = lane.ahead_until && lane.marks.ahead.length > 0 && time(lane.ahead_until) < rested.value.until;
  return html`${lane.more > 0 && html`<span class="timeline-more" title="the oldest are left out: come nearer to see them">◂ ${lane.more} more: zoom in</span>`}
    ${far && html`<span class="timeline-more is-ahead" title="there is more to be expected than is told of at once">expected as far as ${clock(lane.ahead_until, now.peek())} ▸</span>`}`;
}

export function Lane({ name }) {
  const ref = useRef(null);
  const near = useSignal(false);
  useEffect(() => {
    const letGo = keepInSight(name);
    const track = ref.current;
    eyes.set(track, near);
    eye.observe(track);
    return () => {
      eye.unobserve(track);
      letGo();
    };
  }, []);
  return html`<${Label} name=${name} /><div ref=${ref} role="cell" class="timeline-track" data-agent=${name}><${Picture} name=${name} near=${near} /><${More} name=${name} /><${Spots} name=${name} near=${near} /></div>`;
}
