// What of a lane can be pointed at, and how it is said in words.
//
// Laws:
// - Everything drawn is a mark with a key that stays its own while the lane is asked for again: what was hovered or
//   focused stays so.
// - A wake that waits is asked about again and again: that is one mark, from the first time to the last.
// - The words are whole: whoever cannot see the picture misses nothing of it.

import { to } from "./parts.js";
import { clock, lasting, plain, SIGNS, time, until } from "./words.js";

const VERDICTS = { admit: "admitted", defer: "deferred", refuse: "refused" };
const SUBJECTS = { beat: "its beat", inbox: "its inbox", task: "a task" };

// {runs, wakes, ahead, areas, all}: each in the order of time, `all` of them together.
export function marksOf(lane) {
  const runs = lane.runs.map((run) => ({
    kind: "run", key: `run ${run.id}`, at: time(run.start), end: run.end ? time(run.end) : null, of: run, state: run.outcome || "running",
    from: run.from, href: to.run(run.id),
  }));
  const wakes = wakesOf(lane.wakes);
  // The forecast supposes that somebody ends what has no end: until somebody does, nothing is expected.
  const held = lane.pauses.some((pause) => !pause.until);
  const ahead = (held ? [] : lane.ahead).map((beat) => ({
    kind: "ahead", key: `ahead ${beat.at}`, at: time(beat.at), end: null, of: beat, state: "expected", href: to.agent(lane.agent, "why"),
  }));
  const areas = [
    ...lane.quiet.map((each) => ({ kind: "quiet", key: `quiet ${each.until}`, at: time(each.since), end: time(each.until), of: each, state: "quiet", href: to.agent(lane.agent, "why") })),
    ...lane.pauses.map((each) => ({ kind: "pause", key: `pause ${each.scope} ${each.owner} ${each.since}`, at: time(each.since), end: each.until ? time(each.until) : null, of: each, state: "paused", href: to.agent(lane.agent, "why") })),
  ];
  const all = [...runs, ...wakes, ...ahead, ...areas].sort((one, other) => one.at - other.at || (one.key < other.key ? -1 : 1));
  return { runs, wakes, ahead, areas, all };
}

function wakesOf(verdicts) {
  const marks = [];
  const waiting = new Map();
  const asked = new Map();
  for (const each of verdicts) {
    const at = time(each.at);
    // What came of it in the end is told where it was first asked for.
    if (asked.has(each.wake_id)) Object.assign(asked.get(each.wake_id), { final: each.verdict, run: each.run_id });
    const before = each.wake_id === null ? undefined : waiting.get(each.wake_id);
    if (before) before.end = at;
    if (before && each.verdict === "defer" && before.of.guard === each.guard) {
      Object.assign(before, { of: each, times: before.times + 1, open: true });
      continue;
    }
    if (before) before.open = false;
    const mark = {
      kind: "wake", key: `wake ${each.wake_id} ${each.at}`, at, end: null, of: each, state: each.verdict, final: each.verdict, run: each.run_id, times: 1, first: !before,
      open: each.verdict === "defer", from: each.from, href: each.wake_id === null ? "#/decisions" : `#/decisions?wake=${each.wake_id}`,
    };
    marks.push(mark);
    if (each.wake_id !== null && !asked.has(each.wake_id)) asked.set(each.wake_id, mark);
    if (each.verdict === "defer" && each.wake_id !== null) waiting.set(each.wake_id, mark);
    else waiting.delete(each.wake_id);
  }
  return marks;
}

// Where a mark ends on the paper: what goes on, goes on until now.
export function endOf(mark, at) {
  if (mark.kind === "run") return mark.end ?? Math.max(at, mark.at);
  if (mark.kind === "pause") return mark.end ?? Infinity;
  if (mark.kind === "wake" && mark.state === "defer") return mark.open ? Math.max(at, mark.at) : mark.end ?? mark.at;
  return mark.end ?? mark.at;
}

// ---- words

export function because({ cause, from, by_run: by }) {
  const run = by ? ` (run ${by})` : "";
  if (cause === "timer") return "its own beat came due";
  if (cause === "task") return from ? `a task of ${from}${run} was ready` : "a task was ready";
  if (cause === "news") return from ? `news from ${from}${run} rang` : "something rang in its inbox";
  if (cause === "operator") return from && from !== "operator" ? `woken by operator ${from}` : "an operator asked for it";
  return from ? `woken by ${from}${run}` : "woken by a peer";
}

// Instants within a text, by the reader's clock.
const local = (text, at) => String(text || "").replace(/\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:\d\d)/g, (found) => clock(found, at));
const guard = (of) => (of.guard ? `${plain(of.guard)}${of.reason ? `: ${of.reason}` : ""}` : of.reason || "");

// {title, sign, lines}.
export function words(mark, lane, at) {
  const { of, kind } = mark;
  const said = { run: runWords, wake: wakeWords, ahead: aheadWords, quiet: quietWords, pause: pauseWords }[kind](mark, of, at, lane);
  return { ...said, lines: said.lines.filter(Boolean) };
}

function runWords(mark, of, at) {
  const open = mark.end === null;
  return {
    title: open ? "running" : plain(mark.state),
    sign: SIGNS[mark.state],
    lines: [
      open ? `since ${clock(of.start, at)}, for ${lasting((at - mark.at) / 1000)}` : `${clock(of.start, at)} to ${clock(of.end, at)}, ${lasting((mark.end - mark.at) / 1000)}`,
      `${because(of)}; about ${SUBJECTS[of.subject] || of.subject}`,
      of.summary,
    ],
  };
}

function wakeWords(mark, of, at) {
  const waits = mark.state === "defer";
  const ended = waits && !mark.open && mark.end !== null;
  return {
    title: `wake ${VERDICTS[mark.state] || mark.state}`,
    sign: SIGNS[mark.state],
    lines: [
      `${clock(new Date(mark.at).toISOString(), at)}${mark.times > 1 ? `, asked about ${mark.times} times` : ""}${ended ? `, waited ${lasting((mark.end - mark.at) / 1000)}` : ""}`,
      because(of),
      mark.state === "admit" ? (of.run_id ? `became run ${of.run_id}` : "") : guard(of) && `by ${local(guard(of), at)}`,
      of.until && !ended && mark.state !== "admit" ? `${waits ? "tried again" : "possible again"} at ${clock(of.until, at)}` : "",
    ],
  };
}

function aheadWords(mark, of, at) {
  return {
    title: of.state === "beat" ? "beat expected" : `${of.state} expected`,
    sign: "◇",
    lines: [`${clock(of.at, at)}, ${until(of.at, at)}`, of.kind === "rem" ? "a state of rest: no model is called" : "", local(of.assumption, at)],
  };
}

// The server cuts what reaches beyond the stretch that was asked for: of such an end nothing is known.
function quietWords(mark, of, at, lane) {
  const begin = mark.at > lane.since + 1000 ? `from ${clock(of.since, at)}` : "";
  const end = mark.end < lane.until - 1000 ? `until ${clock(of.until, at)}` : "";
  return { title: "quiet hours", sign: "☾", lines: [[begin, end].filter(Boolean).join(" "), "beats, tasks and news wait; wakes by peers are refused"] };
}

function pauseWords(mark, of, at) {
  return {
    title: of.scope === "fleet" ? "the fleet paused" : "paused",
    sign: SIGNS.paused,
    lines: [`by ${of.owner}${of.reason ? `: ${of.reason}` : ""}`, `from ${clock(of.since, at)}${of.until ? ` until ${clock(of.until, at)}` : " until somebody resumes"}`],
  };
}

export function sentence(mark, lane, at) {
  const { title, lines } = words(mark, lane, at);
  return [`${lane.agent}: ${title}`, ...lines].join(", ");
}
