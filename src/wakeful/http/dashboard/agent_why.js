// Why an agent runs or does not, guard by guard: now, or at an instant that somebody points at.
//
// Laws:
// - The answer comes first, in one sentence; then what each guard says, in the order in which they are asked.
// - What is pointed at is asked for after a moment of rest; what was known stays until the answer is there.

import { html, useEffect, useRef, useState } from "./base.js";
import { get } from "./api.js";
import { agents, now } from "./live.js";
import { Fault, RunLink } from "./parts.js";
import { clock, grouped, lasting, money, plain, State, When } from "./words.js";
import { CAUSES, From, guardWord, path, Recorded, Said, Until, useNews, Verdict } from "./agent_parts.js";
import { Strip, useLane } from "./agent_strip.js";

// What each guard asks itself.
const ASKS = {
  moot: "Does the reason still stand?",
  paused: "Is it, or the fleet, paused?",
  quiet_hours: "Are these its quiet hours?",
  wakes_per_run: "Has the run that asks used up its wakes?",
  cooldown: "Was it woken only just now?",
  wakes_per_day: "Was it woken too often today?",
  wakes_per_pair: "Did these two wake each other too often today?",
  chain: "Is the chain of wakes too long?",
  minutes_per_day: "Has it used up its minutes of today?",
  spend: "Are the dollars or tokens of today used up?",
  burst: "Did it start too often in a short time?",
  state_gate: "Is the gate of its state still closed?",
  busy: "Is it running already?",
  slots: "Are all places of the fleet taken?",
};

// ---- the sentence

// Of an agent that is not running: what holds it. `row` is left out where the instant is not now.
export function Answer({ why, row }) {
  if (row && row.state === "running") return html`<${Running} row=${row} />`;
  const wanted = CAUSES[why.cause];
  if (why.verdict === "admit") return html`<span><${State} of="admit" word="Nothing holds it:" /> it would begin at once if ${wanted} asked.</span>`;
  const kind = why.verdict;
  // What is not due, or has no timer: no guard says so.
  if (!why.guard) return html`<span><${State} of="defer" word="" /><strong><${Said} text=${why.reason.replace(/^not due/, "Not due")} /></strong>${why.next_eligible && html`<${In} at=${why.next_eligible} />`}.</span>`;
  const word = kind === "refuse" ? "Refused by" : "Held by";
  return html`<span><${State} of=${kind} word=${`${word} ${guardWord(why.guard)}:`} /> <${Said} text=${why.reason} />${why.next_eligible ? html`; until <${When} at=${why.next_eligible} /><${In} at=${why.next_eligible} />` : ""}.</span>`;
}

function In({ at }) {
  const left = Math.ceil((Date.parse(at) - now.value) / 1000);
  return left > 0 ? html` <span class="dim nowrap">(in ${lasting(left)})</span>` : null;
}

// It is: who asked for that.
function Running({ row }) {
  const run = row.under_way;
  const [wake, setWake] = useState(null);
  useEffect(() => {
    let here = true;
    if (run) get(`/v1/decisions/${run.wake_id}`).then((found) => here && setWake(found), () => {});
    return () => void (here = false);
  }, [run && run.wake_id]);
  const asked = wake && wake.wake_id === (run && run.wake_id) ? wake : null;
  return html`<span><${State} of="running" word="It is running:" /> ${run ? html`<${RunLink} id=${run.id} />${run.started_at ? html` since <${When} at=${run.started_at} />` : ""}, asked for by ${asked && asked.from ? html`<${From} name=${asked.from} />` : CAUSES[run.cause]}${asked && asked.reason_given ? html`: <${Said} text=${asked.reason_given} />` : ""}` : "it has just begun"}.</span>`;
}

// ---- the tab

const REST = 220;

export function Why({ row }) {
  const { name } = row;
  const waiting = row.waiting ? row.waiting.cause : "timer";
  const [cause, setCause] = useState(waiting);
  const [sender, setSender] = useState("");
  const [picked, setPicked] = useState(null);
  const [pointed, setPointed] = useState(null);
  const [span, setSpan] = useState(6);
  const lane = useLane(name, span);
  const at = pointed ?? picked;
  const asked = useWhy(name, { cause, sender: cause === "peer" ? sender : "", at });
  useNews({ name, address: row.address }, () => Promise.all([lane.reload(), at === null ? asked.reload() : null]));
  const why = asked.value;
  return html`<section class="sheet agent-why" aria-busy=${asked.of !== at}>
    <h2>${at === null ? `Why is ${name} ${row.state === "running" ? "running" : "not running"}?` : `What held ${name} at ${clock(new Date(at).toISOString(), now.value, true)}?`}</h2>
    <div class="agent-why-answer" aria-live="polite">${why ? html`<${Answer} why=${why} row=${at === null && cause === waiting ? row : null} />` : html`<span class="dim">…</span>`}</div>
    <${Fault} problem=${asked.problem} />
    <${Strip} lane=${lane} at=${at} picked=${picked} point=${setPointed} pick=${(moment) => (setPointed(null), setPicked(moment))} span=${span} setSpan=${setSpan} />
    <div class="bar-of-tools">
      <label class="agent-inline">Asked by <select value=${cause} onChange=${(event) => setCause(event.target.value)}>${Object.entries(CAUSES).map(([word, text]) => html`<option key=${word} value=${word}>${text}</option>`)}</select></label>
      ${cause === "peer" && html`<label class="agent-inline">Which <select value=${sender} onChange=${(event) => setSender(event.target.value)}><option value="">nobody in particular</option>${[...agents.value.keys()].filter((each) => each !== name).map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>`}
      <label class="agent-inline">At <input key=${at ?? "now"} type="datetime-local" step="1" defaultValue=${local(at ?? null)} onChange=${(event) => setPicked(event.target.value ? Math.min(new Date(event.target.value).getTime(), now.peek()) : null)} /></label>
      <button type="button" disabled=${picked === null} onClick=${() => (setPointed(null), setPicked(null))}>Now</button>
    </div>
    ${why && html`<${Guards} why=${why} />`}
  </section>`;
}

function Guards({ why }) {
  const first = why.opinions.findIndex((opinion) => opinion.verdict && opinion.verdict !== "admit");
  return html`<div class="scroll-x"><table class="agent-guards" aria-label="what each guard says">
    <thead><tr><th scope="col">guard</th><th scope="col">asks</th><th scope="col">says</th><th scope="col">because</th><th scope="col">numbers</th><th scope="col">until</th></tr></thead>
    <tbody>${why.opinions.map((opinion, index) => {
      const objects = opinion.verdict && opinion.verdict !== "admit";
      return html`<tr key=${opinion.guard} class=${objects ? (index === first ? "is-first" : "is-objecting") : "is-silent"}>
        <th scope="row">${plain(opinion.guard)}</th><td>${ASKS[opinion.guard] || ""}</td><td><${Verdict} of=${opinion.verdict} /></td>
        <td>${objects ? html`<${Said} text=${opinion.reason} />` : ""}</td><td><${Numbers} numbers=${opinion.numbers} /></td><td>${objects ? html`<${Until} at=${opinion.until} />` : ""}</td></tr>`;
    })}</tbody></table></div>
    ${why.assumptions.length > 0 && html`<p class="dim">Supposed: ${why.assumptions.map((text, index) => html`${index ? "; " : ""}<${Said} key=${text} text=${text} />`)}.</p>`}
    ${why.last_decision && html`<p class="dim">Last decided: <${Recorded} wake=${why.last_decision} />.</p>`}`;
}

function Numbers({ numbers }) {
  const usd = String(numbers.unit || "").endsWith("usd");
  const say = (value) => (typeof value !== "number" ? String(value) : usd ? money(value) : grouped(Math.round(value * 100) / 100));
  const told = Object.entries(numbers).filter(([name]) => name !== "unit");
  return html`<span class="agent-numbers">${told.map(([name, value]) => html`<span key=${name}><span class="dim">${plain(name)}</span> <bdi>${say(value)}</bdi></span>`)}</span>`;
}

// `value` is the last answer, also while another instant is asked for; `of` which instant it is of.
function useWhy(name, { cause, sender, at }) {
  const [state, set] = useState({ value: null, problem: null, of: null });
  const turn = useRef(0);
  const cut = useRef(null);
  const took = useRef(0);
  const load = () => {
    const mine = ++turn.current;
    if (cut.current) cut.current.abort();
    cut.current = new AbortController();
    const begun = performance.now();
    const query = { cause, sender, at: at === null ? "" : new Date(at).toISOString() };
    return get(path(name, "why"), query, { signal: cut.current.signal }).then(
      (value) => {
        took.current = at === null ? took.current : performance.now() - begun;
        if (mine === turn.current) set({ value, problem: null, of: at });
      },
      (problem) => mine === turn.current && problem.name !== "AbortError" && set((old) => ({ ...old, problem })),
    );
  };
  useEffect(() => {
    // Where the past is long an answer takes its time, and is not asked for at every twitch.
    const timer = setTimeout(load, at === null ? 0 : Math.max(REST, 2 * took.current));
    return () => clearTimeout(timer);
  }, [name, cause, sender, at]);
  useEffect(() => {
    if (at !== null) return undefined;
    const timer = setInterval(load, 10_000);
    return () => clearInterval(timer);
  }, [name, cause, sender, at]);
  useEffect(() => () => {
    turn.current = -1;
    if (cut.current) cut.current.abort();
  }, []);
  return { ...state, reload: load };
}

// As the field for an instant wants it, on this clock.
function local(at) {
  if (at === null) return "";
  const moment = new Date(at);
  return new Date(at - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
