// The runs of one agent, newest first.

import { html, useState } from "./base.js";
import { get } from "./api.js";
import { Empty, Fault, More, to } from "./parts.js";
import { grouped, money, plain, State, When } from "./words.js";
import { CAUSES, useList, useNews } from "./agent_parts.js";
import { took } from "./agent_overview.js";

const OUTCOMES = [["", "all"], ["done", "done"], ["no_work", "no work"], ["failed", "failed"], ["killed", "killed"]];

export function Runs({ name }) {
  const [outcome, setOutcome] = useState("");
  const [cause, setCause] = useState("");
  const runs = useList(`${name} ${outcome} ${cause}`, (query) => get("/v1/runs", { agent: name, outcome, cause, ...query }));
  useNews({ name, kinds: ["started", "ended", "voided", "stopped", "decided"] }, runs.refresh);
  return html`<section aria-label="runs">
    <div class="bar-of-tools">
      <span class="chips" role="group" aria-label="outcome">${OUTCOMES.map(([value, word]) => html`<button type="button" key=${value} aria-pressed=${outcome === value} onClick=${() => setOutcome(value)}>${word}</button>`)}</span>
      <label class="agent-inline">Asked by <select value=${cause} onChange=${(event) => setCause(event.target.value)}><option value="">anybody</option>${Object.entries(CAUSES).map(([value, word]) => html`<option key=${value} value=${value}>${word}</option>`)}</select></label>
    </div>
    <${Fault} problem=${runs.problem} again=${runs.refresh} />
    ${!runs.loaded && !runs.problem && html`<p class="loading">…</p>`}
    ${runs.loaded && runs.items.length === 0 && html`<${Empty}>${outcome || cause ? "No run is like that." : "It has not run yet."}</${Empty}>`}
    ${runs.items.length > 0 && html`<div class="sheet agent-table"><table aria-label=${`runs of ${name}`}>
      <thead><tr><th scope="col">run</th><th scope="col">began</th><th scope="col" class="right">took</th><th scope="col">outcome</th><th scope="col">asked by</th><th scope="col">what it said</th><th scope="col" class="right">cost</th></tr></thead>
      <tbody>${runs.items.map((run) => html`<tr key=${run.id}>
        <td><a href=${to.run(run.id)}>${run.id}</a></td>
        <td class="nowrap"><${When} at=${run.started_at || run.admitted_at} /></td>
        <td class="right nowrap">${run.ended_at ? took(run) : html`<${When} at=${run.started_at || run.admitted_at} how="for" />`}</td>
        <td class="nowrap"><${State} of=${run.outcome || (run.state === "void" ? "disabled" : "running")} word=${run.outcome ? undefined : run.state === "void" ? "never began" : "running"} />${run.attempt > 1 && html` <span class="dim">try ${run.attempt}</span>`}</td>
        <td>${CAUSES[run.cause]} <span class="dim">${plain(run.subject)}</span></td>
        <td class="agent-what"><bdi>${run.summary || run.reason}</bdi></td>
        <td class="right nowrap" title=${`${grouped(run.usage.tokens)} tokens${run.estimated ? ", estimated" : ""}`}>${money(run.usage.usd)}</td></tr>`)}</tbody></table></div>`}
    <${More} pages=${runs} />
  </section>`;
}
