// The last hours of one agent as a strip: its runs, the wakes that were asked for, quiet hours and pauses; to point at.
//
// Law: what can be pointed at can also be reached by keys: the slider below it is the same instant.

import { html, useRef } from "./base.js";
import { get } from "./api.js";
import { now } from "./live.js";
import { useAsked } from "./parts.js";
import { clock, lasting, plain } from "./words.js";
import { Recorded, said } from "./agent_parts.js";

const HOUR = 3_600_000;
const SPANS = [[1, "1 hour"], [6, "6 hours"], [24, "24 hours"]];
// As near as this share of the strip, a wake is meant.
const NEAR = 0.008;

// {value: {since, until, lane}, reload}
export function useLane(name, hours) {
  return useAsked(`${name} ${hours}`, async () => {
    const until = now.peek();
    const since = until - hours * HOUR;
    const told = await get("/v1/timeline", { agents: name, since: new Date(since).toISOString(), until: new Date(until).toISOString() });
    return { since, until, lane: told.lanes[0] || { runs: [], wakes: [], quiet: [], pauses: [], more: 0 } };
  });
}

export function Strip({ lane: asked, at, picked, point, pick, span, setSpan }) {
  const ref = useRef(null);
  const known = asked.value;
  const moment = (event) => {
    const box = ref.current.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    return Math.round((known.since + share * (known.until - known.since)) / 1000) * 1000;
  };
  const wake = known && at !== null ? nearest(known, at) : null;
  return html`<div class="agent-past">
    <div class="bar-of-tools"><span class="chips" role="group" aria-label="how far back">${SPANS.map(([hours, word]) => html`<button type="button" key=${hours} aria-pressed=${span === hours} onClick=${() => setSpan(hours)}>${word}</button>`)}</span>
      <span class="dim">Point at an instant to ask about it; click to stay there.</span></div>
    ${known
      ? html`<div ref=${ref} class="agent-strip" aria-hidden="true" onPointerMove=${(event) => event.pointerType !== "touch" && point(moment(event))} onPointerLeave=${() => point(null)} onClick=${(event) => pick(moment(event))}>
          <${Marks} known=${known} />${at !== null && html`<span class=${`agent-cursor${picked === at ? " is-picked" : ""}`} style=${{ left: `${share(known, at) * 100}%` }}></span>`}</div>
        <input class="agent-slider" type="range" aria-label="instant" aria-valuetext=${at === null ? "now" : clock(new Date(at).toISOString(), now.value, true)} min=${known.since} max=${known.until} step="1000" value=${at ?? known.until} onInput=${(event) => pick(Number(event.target.value) >= known.until ? null : Number(event.target.value))} />
        <div class="agent-scale" aria-hidden="true">${[0, 1, 2, 3, 4].map((quarter) => html`<span key=${quarter}>${quarter === 4 ? "now" : clock(new Date(known.since + (quarter / 4) * (known.until - known.since)).toISOString())}</span>`)}</div>
        <p class="agent-then">${wake ? html`<strong>Really asked then:</strong> <${Recorded} wake=${wake} />` : html`<span class="dim">${told(known.lane)}</span>`}</p>`
      : asked.problem
        ? html`<p class="dim">The last hours cannot be drawn: ${asked.problem.message}.</p>`
        : html`<div class="agent-strip"></div>`}
  </div>`;
}

const share = (known, at) => Math.min(Math.max((at - known.since) / (known.until - known.since), 0), 1);

function Marks({ known }) {
  const band = (since, until, kind, title) => {
    const left = share(known, Date.parse(since));
    const right = until ? share(known, Date.parse(until)) : 1;
    return html`<span key=${`${kind} ${since}`} class=${`agent-band ${kind}`} title=${title} style=${{ left: `${left * 100}%`, width: `${Math.max(right - left, 0) * 100}%` }}></span>`;
  };
  return html`${known.lane.quiet.map((each) => band(each.since, each.until, "is-quiet", "quiet hours"))}
    ${known.lane.pauses.map((each) => band(each.since, each.until, "is-pause", `paused by ${each.owner}${each.reason ? `: ${each.reason}` : ""}`))}
    ${known.lane.runs.map((run) => band(run.start, run.end, `is-run is-${run.outcome || "running"}`, `run ${run.id}: ${plain(run.outcome || "running")}${run.end ? ` after ${lasting((Date.parse(run.end) - Date.parse(run.start)) / 1000)}` : ""}`))}
    ${known.lane.wakes.map((wake) => html`<span key=${`${wake.wake_id} ${wake.at}`} class=${`agent-wake is-${wake.verdict}`} title=${`${wake.verdict}${wake.guard ? ` by ${plain(wake.guard)}` : ""}: ${said(wake.reason)}`} style=${{ left: `${share(known, Date.parse(wake.at)) * 100}%` }}></span>`)}`;
}

// The wake that was decided about then, if there was one.
function nearest(known, at) {
  const reach = NEAR * (known.until - known.since);
  const near = known.lane.wakes.map((wake) => [Math.abs(Date.parse(wake.at) - at), wake]).filter(([away]) => away <= reach);
  return near.length ? near.reduce((best, each) => (each[0] < best[0] ? each : best))[1] : null;
}

function told(lane) {
  const refused = lane.wakes.filter((wake) => wake.verdict === "refuse").length;
  const deferred = lane.wakes.filter((wake) => wake.verdict === "defer").length;
  const failed = lane.runs.filter((run) => run.outcome === "failed" || run.outcome === "killed").length;
  return `▮ runs: ${lane.runs.length}${failed ? `, ${failed} of them failed or killed` : ""} · ◔ deferred: ${deferred} · ⊘ refused: ${refused}${lane.more ? ` · and ${lane.more} more` : ""}`;
}
