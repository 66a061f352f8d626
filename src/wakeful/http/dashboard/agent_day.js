// An agent's day, drawn: its states as a path, the present one filled, with how often it was there of how often it has to be.

import { html } from "./base.js";
import { When } from "./words.js";

// An agent without a lifecycle is told no day.
export function Day({ day, lifecycle, position }) {
  if (day.length === 0) {
    return html`<section class="sheet" aria-labelledby="agent-day"><h2 id="agent-day">Its day</h2><p class="dim">No lifecycle: each beat is like the other.</p></section>`;
  }
  const here = lifecycle.find((state) => state.state === position.state);
  const left = here ? here.repeat - position.hits : 0;
  return html`<section class="sheet" aria-labelledby="agent-day"><h2 id="agent-day">Its day: now in <bdi>${position.state}</bdi></h2>
    <ol class="agent-day">${lifecycle.map((state, index) => html`<${Step} key=${state.state} state=${state} hits=${state.state === position.state ? position.hits : null} follows=${index + 1 < lifecycle.length && lifecycle[index + 1].state === state.next} />`)}</ol>
    ${here && html`<p class="dim">${left > 1 ? `${left} more beats that are done lead` : "One more beat that is done leads"} from <bdi>${here.state}</bdi> to <bdi>${here.next || here.state}</bdi>.</p>`}
  </section>`;
}

function Step({ state, hits, follows }) {
  const now = hits !== null;
  const marks = Array.from({ length: Math.min(state.repeat, 8) }, (_, index) => (now && index < hits ? "●" : "○")).join("");
  return html`<li class=${`agent-step is-${state.kind}${now ? " is-now" : ""}`} aria-current=${now ? "step" : undefined}>
    <span class="agent-step-box"><strong><span aria-hidden="true">${state.kind === "rem" ? "☾" : "☀"}</span> <bdi>${state.state}</bdi></strong>
      <span class="agent-step-hits"><span aria-hidden="true">${marks}</span> ${now ? `${hits} of ${state.repeat}` : `×${state.repeat}`}</span>
      <span class="dim">${now ? "here now" : state.last_done_at ? html`done <${When} at=${state.last_done_at} />` : "not done yet"}</span></span>
    <span class="agent-step-arrow">${follows ? html`<span aria-hidden="true">→</span>` : state.next ? html`<span title=${`then ${state.next}`}><span aria-hidden="true">↩</span> <bdi>${state.next}</bdi></span>` : ""}</span></li>`;
}
