// How a lane is drawn.
//
// A canvas for each lane in sight, and real links above it (timeline_lanes.js): five hundred marks are painted in less
// than a millisecond, where as many elements of SVG would be made, styled and compared again at every step of a zoom. What a
// canvas cannot do, be pointed at, focused and read aloud, the links do, of which there are only as many as one can use.
//
// Laws:
// - Colour never stands alone: each outcome has a pattern and a sign, each verdict a shape.
// - What has not happened is hollow and dashed.
// - Words are written only where there is room for them; the link above has them all.

import { signal } from "./base.js";
import { endOf } from "./timeline_marks.js";
import { ticks, toPixel } from "./timeline_scale.js";
import { plain, SIGNS } from "./words.js";

// A multiple of the hatching, so that it goes on from lane to lane.
export const HEIGHT = 48;
export const WAKES = 9;
export const BAR = { top: 17, height: 16 };
export const FOOT = 40;
const HATCH = 8;
const GLYPH = 14;
// A bar that is narrower has no round corners, and one that the next one covers is not drawn.
const NARROW = 12;
const COVERED = 1.5;
// Verdicts nearer than that, from the one before to the one after, are ticks.
const CROWDED = 9;
const FONT = '11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

const COLOURS = ["ground", "sheet", "line", "text", "dim", "link", "blue", "green", "orange", "red", "purple", "grey", "cool", "focus"];
export const OF = { running: "blue", done: "green", no_work: "grey", failed: "red", killed: "purple", admit: "green", defer: "orange", refuse: "red" };

// ---- colours and patterns, as the theme has them

export const palette = signal(null);

export function readPalette() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const found = {};
  for (const name of COLOURS) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  const ratio = window.devicePixelRatio || 1;
  palette.value = { ...found, ratio, patterns: patterns(found, ratio), glyphs: glyphs(found, ratio) };
}

// Reads it again when light turns to dark, or the page is magnified; returns how to stop.
export function followPalette() {
  readPalette();
  const watch = new MutationObserver(readPalette);
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const media = [matchMedia("(prefers-color-scheme: dark)"), matchMedia(`(resolution: ${window.devicePixelRatio || 1}dppx)`)];
  for (const each of media) each.addEventListener("change", readPalette);
  return () => {
    watch.disconnect();
    for (const each of media) each.removeEventListener("change", readPalette);
  };
}

function tile(ratio, draw) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = HATCH * ratio;
  const paint = canvas.getContext("2d");
  paint.scale(ratio, ratio);
  draw(paint);
  const pattern = paint.createPattern(canvas, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

function patterns(colours, ratio) {
  const stripes = (paint, ink, thick, both = false) => {
    paint.strokeStyle = ink;
    paint.lineWidth = thick;
    paint.beginPath();
    for (const shift of [-HATCH, 0, HATCH]) {
      paint.moveTo(shift - 1, HATCH + 1);
      paint.lineTo(shift + HATCH + 1, -1);
      if (!both) continue;
      paint.moveTo(shift - 1, -1);
      paint.lineTo(shift + HATCH + 1, HATCH + 1);
    }
    paint.stroke();
  };
  const ground = (paint, colour) => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, HATCH, HATCH);
  };
  return {
    failed: tile(ratio, (paint) => (ground(paint, colours.red), stripes(paint, colours.sheet, 1.8))),
    killed: tile(ratio, (paint) => (ground(paint, colours.purple), stripes(paint, colours.sheet, 1.2, true))),
    no_work: tile(ratio, (paint) => {
      ground(paint, colours.sheet);
      paint.fillStyle = colours.grey;
      for (const [x, y] of [[2, 2], [6, 6]]) {
        paint.beginPath();
        paint.arc(x, y, 1.1, 0, 7);
        paint.fill();
      }
    }),
    wait: tile(ratio, (paint) => {
      paint.fillStyle = colours.orange;
      for (const x of [0, 4]) paint.fillRect(x, 0, 2, HATCH);
    }),
    pause: tile(ratio, (paint) => stripes(paint, colours.orange, 1.1)),
  };
}

// Drawn once: a shape is dear, a small picture of it is cheap.
function glyphs(colours, ratio) {
  const drawn = ["admit", "defer", "refuse"].map((verdict) => {
    const canvas = new OffscreenCanvas(Math.ceil(GLYPH * ratio), Math.ceil(GLYPH * ratio));
    const paint = canvas.getContext("2d");
    paint.scale(ratio, ratio);
    glyph(paint, verdict, colours);
    return [verdict, canvas.transferToImageBitmap()];
  });
  return Object.fromEntries(drawn);
}

// ---- one lane

// `sheet` says what to draw on: {paint, wide, view, at, colours}.
export function paintLane(canvas, lane, sheet) {
  const { wide, view, at, colours } = sheet;
  fit(canvas, wide, HEIGHT, colours.ratio);
  const paint = canvas.getContext("2d");
  paint.setTransform(colours.ratio, 0, 0, colours.ratio, 0, 0);
  paint.clearRect(0, 0, wide, HEIGHT);
  paint.font = FONT;
  paint.textBaseline = "middle";
  const on = { ...sheet, paint, x: (moment) => toPixel(moment, view, wide), inside: (mark) => mark.at <= view.until && endOf(mark, at) >= view.since };
  paintGround(on, lane);
  if (lane) {
    const { runs, wakes, ahead, areas } = lane.marks;
    for (const area of areas.filter(on.inside)) paintArea(on, area);
    paintGrid(on);
    areaWords(on, areas.filter(on.inside));
    const bars = runs.filter(on.inside);
    bars.forEach((run, index) => paintRun(on, run, bars[index + 1]));
    const beats = ahead.filter(on.inside);
    beats.forEach((beat, index) => paintAhead(on, beat, beats[index + 1]));
    const verdicts = wakes.filter(on.inside);
    for (const wake of verdicts) if (wake.state === "defer") paintWait(on, wake);
    verdicts.forEach((wake, index) => paintWake(on, wake, verdicts[index - 1], verdicts[index + 1]));
  } else paintGrid(on);
  const now = on.x(at);
  paint.fillStyle = colours.link;
  paint.fillRect(now - 1, 0, 2, HEIGHT);
}

function fit(canvas, wide, high, ratio) {
  const [width, height] = [Math.max(Math.round(wide * ratio), 1), Math.round(high * ratio)];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

function paintGround({ paint, x, wide, at, colours }) {
  const now = Math.max(x(at), 0);
  if (now >= wide) return;
  paint.globalAlpha = 0.5;
  paint.fillStyle = colours.cool;
  paint.fillRect(now, 0, wide - now, HEIGHT);
  paint.globalAlpha = 1;
}

function paintGrid({ paint, x, wide, view, colours }) {
  for (const tick of ticks(view, wide)) {
    paint.globalAlpha = tick.day ? 1 : 0.55;
    paint.fillStyle = tick.day ? colours.dim : colours.line;
    paint.fillRect(Math.round(x(tick.at)), 0, tick.day ? 1.5 : 1, HEIGHT);
  }
  paint.globalAlpha = 1;
}

function paintArea({ paint, x, wide, at, colours }, area) {
  const left = Math.max(x(area.at), 0);
  const right = Math.min(x(endOf(area, at)), wide);
  paint.globalAlpha = area.kind === "quiet" ? 0.3 : 0.55;
  paint.fillStyle = area.kind === "quiet" ? colours.grey : colours.patterns.pause;
  paint.fillRect(left, 0, Math.max(right - left, 2), HEIGHT);
  paint.globalAlpha = 1;
}

function areaWords(on, areas) {
  let free = 0;
  for (const area of areas) {
    const left = Math.max(on.x(area.at), 0, free) + 4;
    const right = Math.min(on.x(endOf(area, on.at)), on.wide);
    const { owner, reason } = area.of;
    // That of the fleet is told once, above the lanes.
    if (area.of.scope === "fleet") continue;
    const said = area.kind === "quiet" ? "☾ quiet hours" : `${SIGNS.paused} paused by ${owner}${reason ? `: ${reason}` : ""}`;
    free = write(on, said, left, FOOT, right - left - 4, { plate: true, least: 60 });
  }
}

// Writes as much as there is room for, if it is worth it; returns where it ends.
function write({ paint, colours }, text, x, y, room, { colour = colours.text, plate = false, least = 26 } = {}) {
  const line = shortened(paint, oneLine(text), room);
  if (!line || room < least) return x;
  const long = measured(paint, line);
  if (plate) {
    paint.globalAlpha = 0.85;
    paint.fillStyle = colours.sheet;
    paint.fillRect(x - 2, y - 6, long + 4, 13);
    paint.globalAlpha = 1;
  }
  paint.fillStyle = colour;
  paint.fillText(line, x, y);
  return x + long + 4;
}

const oneLine = (text) => String(text).slice(0, 200).replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

const lengths = new Map();
function measured(paint, text) {
  if (lengths.size > 3000) lengths.clear();
  if (!lengths.has(text)) lengths.set(text, paint.measureText(text).width);
  return lengths.get(text);
}

function shortened(paint, text, room) {
  if (measured(paint, text) <= room) return text;
  const many = Math.floor((room / measured(paint, text)) * text.length) - 1;
  return many > 3 ? `${text.slice(0, many)}…` : "";
}

function paintRun(on, run, next) {
  const { paint, x, wide, at, colours } = on;
  const left = x(run.at);
  const right = Math.max(x(endOf(run, at)), left + 3);
  const colour = colours[OF[run.state]] || colours.grey;
  if (next && next.state === run.state && x(next.at) - left < COVERED && right - left < NARROW) return;
  if (right - left < THIN && run.state !== "running") thin(paint, left, run.state, colour);
  else bar(paint, left, right, colours.patterns[run.state] || colour, colour, run.state === "running");
  const long = Math.min(right, wide) - Math.max(left, 0);
  const sign = SIGNS[run.state];
  const inside = Math.max(left, 0) + 4;
  if (long > 20) {
    const plain_ = !colours.patterns[run.state];
    const ink = plain_ ? colours.sheet : colours.text;
    write(on, long > 60 && run.of.summary ? `${sign} ${run.of.summary}` : sign, inside, BAR.top + BAR.height / 2, long - 8, { colour: ink, plate: !plain_, least: 8 });
  } else if (run.state !== "done") {
    const room = (next ? x(next.at) : wide) - right - 6;
    write(on, sign, right + 3, BAR.top + BAR.height / 2, room, { colour, least: 11 });
  }
}

// Too narrow for a pattern: whole is done, low is without work, in three is failed, in two is killed.
const THIN = 5;
const PIECES = { no_work: [[8, 8]], failed: [[0, 4], [6, 4], [12, 4]], killed: [[0, 7], [9, 7]] };

function thin(paint, left, state, colour) {
  paint.fillStyle = colour;
  for (const [above, high] of PIECES[state] || [[0, BAR.height]]) paint.fillRect(Math.round(left), BAR.top + above, 3, high);
}

function bar(paint, left, right, fill, edge, open) {
  if (right - left < NARROW && !open) {
    const [from, wide] = [Math.round(left), Math.round(right - left)];
    paint.fillStyle = edge;
    paint.fillRect(from, BAR.top, wide, BAR.height);
    paint.fillStyle = fill;
    if (fill !== edge) paint.fillRect(from + 1, BAR.top + 1, wide - 2, BAR.height - 2);
    return;
  }
  paint.beginPath();
  // What still goes on has a point, not an end.
  if (open) {
    paint.moveTo(left, BAR.top);
    paint.lineTo(right, BAR.top);
    paint.lineTo(right + 7, BAR.top + BAR.height / 2);
    paint.lineTo(right, BAR.top + BAR.height);
    paint.lineTo(left, BAR.top + BAR.height);
    paint.closePath();
  } else paint.roundRect(left, BAR.top, right - left, BAR.height, Math.min(3, (right - left) / 2));
  paint.fillStyle = fill;
  paint.fill();
  if (fill === edge) return;
  paint.strokeStyle = edge;
  paint.lineWidth = 1;
  paint.stroke();
}

function paintAhead(on, beat, next) {
  const { paint, x, wide, colours } = on;
  const left = x(beat.at);
  paint.setLineDash([3, 2]);
  paint.strokeStyle = colours.blue;
  paint.lineWidth = 1.5;
  paint.beginPath();
  paint.roundRect(left, BAR.top + 1, 9, BAR.height - 2, 3);
  paint.stroke();
  paint.setLineDash([]);
  const said = beat.of.state === "beat" ? "" : beat.of.state;
  if (said) write(on, said, left + 13, BAR.top + BAR.height / 2, (next ? x(next.at) : wide) - left - 16, { colour: colours.dim });
}

function paintWait({ paint, x, wide, at, colours }, wake) {
  const left = Math.max(Math.round(x(wake.at)), 0);
  const right = Math.min(Math.round(x(endOf(wake, at))), wide);
  paint.fillStyle = colours.patterns.wait;
  paint.fillRect(left, WAKES - 1, right - left, 2);
}

function paintWake(on, wake, before, next) {
  const { paint, x, wide, colours } = on;
  const middle = x(wake.at);
  if (before && next && x(next.at) - x(before.at) < CROWDED) return paintTick(on, wake.state, middle);
  putGlyph(on, wake.state, middle, WAKES);
  const left = Math.max(middle + 8, 4);
  const room = (next ? x(next.at) - 7 : wide) - left;
  const style = { colour: wake.state === "admit" ? colours.text : colours[OF[wake.state]], plate: true };
  const said = shortWords(wake).find((text) => measured(paint, text) <= room);
  if (said) write(on, said, left, WAKES, room, style);
}

// In a crowd shapes would only cover each other: refused reach high, deferred less, admitted stand low.
function paintTick({ paint, colours }, verdict, x) {
  const high = { admit: 5, defer: 8, refuse: 12 }[verdict];
  paint.fillStyle = colours[OF[verdict]];
  paint.fillRect(Math.round(x) - 1, WAKES + 6 - high, 2, high);
}

// From the longer to the shorter; what an area says already is not said again.
function shortWords({ state, of, from }) {
  if (state === "admit") return of.cause === "timer" || !from ? [] : [`from ${oneLine(from)}`, oneLine(from)];
  if (!of.guard || of.guard === "paused" || of.guard === "quiet_hours") return [];
  return [...(from ? [`${oneLine(from)}: ${plain(of.guard)}`] : []), plain(of.guard)];
}

// A triangle that points at its run, half a disc that waits, a disc that is struck through; in the middle of its square.
function glyph(paint, verdict, colours) {
  const middle = GLYPH / 2;
  paint.fillStyle = paint.strokeStyle = colours[OF[verdict]];
  paint.lineWidth = 1.6;
  paint.beginPath();
  if (verdict === "admit") {
    paint.moveTo(middle - 4, middle - 2);
    paint.lineTo(middle + 4, middle - 2);
    paint.lineTo(middle, middle + 6);
    paint.fill();
    return;
  }
  paint.arc(middle, middle, 5, 0, 7);
  paint.fillStyle = colours.sheet;
  paint.fill();
  paint.stroke();
  paint.beginPath();
  if (verdict === "defer") {
    paint.arc(middle, middle, 5, -Math.PI / 2, Math.PI / 2);
    paint.fillStyle = colours[OF[verdict]];
    paint.fill();
  } else {
    paint.moveTo(middle - 3.5, middle + 3.5);
    paint.lineTo(middle + 3.5, middle - 3.5);
    paint.stroke();
  }
}

const putGlyph = ({ paint, colours }, verdict, x, y) => paint.drawImage(colours.glyphs[verdict], Math.round(x) - GLYPH / 2, y - GLYPH / 2, GLYPH, GLYPH);

// ---- the legend

export const SAMPLE = { wide: 30, high: 20 };

export function paintSample(canvas, what, colours) {
  fit(canvas, SAMPLE.wide, SAMPLE.high, colours.ratio);
  const paint = canvas.getContext("2d");
  const on = { paint, colours, wide: SAMPLE.wide, at: SAMPLE.wide, x: (moment) => moment };
  paint.setTransform(colours.ratio, 0, 0, colours.ratio, 0, 0);
  paint.clearRect(0, 0, SAMPLE.wide, SAMPLE.high);
  paint.font = FONT;
  paint.textBaseline = "middle";
  if (what === "quiet" || what === "pause") return paintArea(on, { kind: what, at: 1, end: SAMPLE.wide - 1 });
  if (["admit", "defer", "refuse"].includes(what)) {
    return putGlyph(on, what, SAMPLE.wide / 2, SAMPLE.high / 2);
  }
  paint.translate(0, (SAMPLE.high - BAR.height) / 2 - BAR.top);
  if (what === "ahead") return paintAhead(on, { at: 10, of: { state: "beat" } });
  return paintRun(on, { at: 1, end: what === "running" ? 22 : SAMPLE.wide - 1, kind: "run", state: what, of: {} });
}
