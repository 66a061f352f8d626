// Who woke whom: from the run that asked to the wake that it asked for.
//
// Laws:
// - Few are all drawn, faintly; many only where one of their ends is looked at. That one is drawn strongly.
// - A wake that was refused or deferred has its arrow too: asking is what happened.

import { computed, html } from "./base.js";
import { changes, inSight, laneOf } from "./timeline_data.js";
import { hovered } from "./timeline_hands.js";
import { BAR, WAKES } from "./timeline_paint.js";
import { toPixel, view, width } from "./timeline_scale.js";

const FEW = 40;
const VERDICTS = ["admit", "defer", "refuse"];

// Those of all lanes in sight, the newest last: {key, from, by, agent, at, state, mark, run}.
export const arrows = computed(() => {
  if (changes.value < 0) return [];
  const found = [];
  for (const agent of inSight()) {
    const lane = laneOf(agent).peek();
    for (const mark of lane ? lane.marks.wakes : []) {
      const { by_run: by, from } = mark.of;
      if (mark.first && from && mark.of.cause !== "timer") found.push({ key: `${agent} ${mark.key}`, from, by, agent, at: mark.at, state: mark.state, mark, run: mark.run });
    }
  }
  return found.sort((one, other) => one.at - other.at);
});

function isMeant(arrow, point) {
  if (!point) return false;
  const sends = point.agent === arrow.from && point.key === `run ${arrow.by}`;
  const comes = point.agent === arrow.agent && (point.key === arrow.mark.key || (arrow.run !== null && point.key === `run ${arrow.run}`));
  return sends || comes;
}

// Within the bar of the run that asked, where that is known.
function origin({ from, by, at }) {
  const lane = laneOf(from).peek();
  const run = lane && lane.marks.runs.find((mark) => mark.of.id === by);
  return run ? Math.min(Math.max(at, run.at), run.end ?? at) : at;
}

function path(arrow, order, row) {
  const [source, target] = [order.get(arrow.from), order.get(arrow.agent)];
  const down = source < target;
  const x = toPixel(arrow.at);
  const start = toPixel(origin(arrow));
  const top = source * row.height + row.above + (down ? BAR.top + BAR.height : BAR.top);
  const end = target * row.height + row.above + (down ? WAKES - 7 : arrow.state === "admit" ? BAR.top + BAR.height + 2 : WAKES + 7);
  const bow = Math.min(Math.abs(end - top) / 4, 22);
  const middle = (end - top) / 3;
  return `M${start.toFixed(1)},${top} C${(start - bow).toFixed(1)},${top + middle} ${(x - bow).toFixed(1)},${end - middle} ${x.toFixed(1)},${end}`;
}

// `order` has the place of every lane by its name; `row` how high one is, and how much of that is above the picture.
export function Arrows({ order, row }) {
  const { since, until } = view.value;
  const point = hovered.value;
  const known = arrows.value.filter((arrow) => arrow.at >= since && arrow.at <= until && arrow.by && order.has(arrow.from) && order.has(arrow.agent) && arrow.from !== arrow.agent);
  const meant = known.filter((arrow) => isMeant(arrow, point));
  const shown = known.length <= FEW ? known : meant;
  const places = inSight().map((name) => order.get(name)).filter((place) => place !== undefined);
  const first = Math.min(...places, ...shown.map((arrow) => order.get(arrow.from)));
  const last = Math.max(...places, ...shown.map((arrow) => order.get(arrow.from)));
  if (!shown.length || !width.value) return null;
  const [top, high] = [first * row.height, (last - first + 1) * row.height];
  return html`<svg class=${`timeline-arrows${meant.length ? " has-meant" : ""}`} aria-hidden="true" width=${width.value} height=${high} viewBox=${`0 ${top} ${width.value} ${high}`} style=${{ marginTop: `${top}px` }}>
    <defs>${VERDICTS.map((state) => html`<marker key=${state} id=${`timeline-head-${state}`} class=${`timeline-head is-${state}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker>`)}</defs>
    ${shown.map((arrow) => html`<path key=${arrow.key} class=${`timeline-arrow is-${arrow.state}${meant.includes(arrow) ? " is-meant" : ""}`} d=${path(arrow, order, row)} marker-end=${`url(#timeline-head-${arrow.state})`} />`)}
  </svg>`;
}
