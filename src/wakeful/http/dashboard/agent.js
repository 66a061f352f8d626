// The page of one agent: what it is doing, in one line; what may be asked of it; and five ways to look closer.
//
// Law: whatever is on the page stays there while it is asked again, and what somebody types is nobody's to take away.

import { html, useComputed } from "./base.js";
import { get } from "./api.js";
import { agents } from "./live.js";
import { Fault, RunLink, to, useAsked } from "./parts.js";
import { askToPause, resuming } from "./pause.js";
import { Doing, SIGNS } from "./words.js";
import { path, useNews } from "./agent_parts.js";
import { Acts } from "./agent_acts.js";
import { Overview } from "./agent_overview.js";
import { Why } from "./agent_why.js";
import { Inbox } from "./agent_inbox.js";
import { Settings } from "./agent_settings.js";
import { Runs } from "./agent_runs.js";

const TABS = [["", "Overview"], ["why", "Why"], ["inbox", "Inbox"], ["settings", "Settings"], ["runs", "Runs"]];
// A pause of the whole fleet is let go above, and an agent may be held beside it.
const isHeld = (row) => row.state === "quarantined" || (row.state === "paused" && [row.paused, ...row.pauses].some((pause) => pause && pause.scope !== "fleet"));

export default function Agent({ name, tab = "" }) {
  const live = useComputed(() => agents.value.get(name));
  const whole = useAsked(name, () => get(path(name)));
  useNews({ name, address: whole.value ? whole.value.address : name }, whole.reload);
  if (!whole.value && whole.problem) return html`<${Nobody} name=${name} problem=${whole.problem} again=${whole.reload} />`;
  if (!whole.value) return html`<h1>${name}</h1><p class="loading">…</p>`;
  const row = { ...whole.value, ...live.value };
  return html`<div class="agent">
    <${Head} row=${row} />
    ${whole.problem && whole.problem.status === 404 && html`<${Fault} problem=${whole.problem} />`}
    <nav class="tabs" aria-label="of this agent">${TABS.map(([key, word]) => html`<a key=${key} href=${to.agent(name, key)} aria-current=${(tab || "") === key ? "page" : undefined}>${word}${key === "inbox" && row.unread > 0 && html` <span class="agent-count">${row.unread}</span>`}${key === "settings" && row.overrides.length > 0 && html` <span class="agent-count">${row.overrides.length} changed</span>`}</a>`)}</nav>
    ${choose(tab, row)}
  </div>`;
}

function choose(tab, row) {
  const { name } = row;
  if (tab === "why") return html`<${Why} key="why" row=${row} />`;
  if (tab === "inbox") return html`<${Inbox} key="inbox" name=${name} address=${row.address} />`;
  if (tab === "settings") return html`<${Settings} key="settings" name=${name} />`;
  if (tab === "runs") return html`<${Runs} key="runs" name=${name} />`;
  if (!tab) return html`<${Overview} key="" row=${row} />`;
  return html`<p>There is no page ${tab} of an agent. <a href=${to.agent(name)}>${name}</a> is this way.</p>`;
}

function Head({ row }) {
  const held = isHeld(row);
  return html`<header class="agent-head">
    <div class="agent-name"><h1>${row.name}</h1> <p class=${`agent-doing is-${row.state}`}><i aria-hidden="true">${SIGNS[row.state]}</i> <bdi><${Doing} parts=${row.doing} /></bdi>${row.run && html` · <${RunLink} id=${row.run} />`}</p>
      ${row.address !== row.name && html`<span class="dim">one of those behind ${row.address}</span>`}</div>
    <div class="agent-tools">
      ${held
        ? html`<button type="button" class="pause is-paused" onClick=${() => resuming(row.name)}>▶ Resume ${row.name}</button>`
        : html`<button type="button" class="pause" onClick=${() => askToPause(row.name)}>‖ Pause ${row.name}</button>`}
      <${Acts} name=${row.name} />
    </div>
  </header>`;
}

// A name that nobody has: whoever was probably meant is one step away.
function Nobody({ name, problem, again }) {
  const known = [...agents.value.keys()];
  const near = known.filter((each) => problem.message.includes(`did you mean ${each}?`));
  const replicas = known.filter((each) => agents.value.get(each).address === name);
  const others = near.length ? near : replicas;
  return html`<h1><bdi>${name}</bdi></h1>
    <${Fault} problem=${problem} again=${problem.status === 404 || replicas.length ? undefined : again} />
    ${others.length > 0 && html`<p>${near.length ? "Perhaps you mean" : "Each of them has a page:"} ${others.map((each) => html`<a key=${each} href=${to.agent(each)}>${each}</a> `)}</p>`}
    <p><a href="#/">All agents</a></p>`;
}
