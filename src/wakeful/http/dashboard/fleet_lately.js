// Above the rows: who was woken by whom lately, the last asking of each by each, with what became of it; and what woke
// somebody and was never dealt with.

import { html } from "./base.js";
import { get } from "./api.js";
import { now } from "./live.js";
import { to, useAsked } from "./parts.js";
import { clock, counted, plain, time } from "./words.js";
import { useHeard } from "./work_parts.js";

// How many of each are told: one's own asking hides nobody else's.
const CAUSES = { peer: 3, operator: 2 };
const [PAGE, PAST] = [25, 24 * 3600_000];
const HOW = { admit: "woke", defer: "asked for", refuse: "asked for" };

// The newest of each pair; they come newest first.
async function lastOf(cause, most) {
  const since = new Date(now.peek() - PAST).toISOString();
  const { items } = await get("/v1/decisions", { cause, since, limit: PAGE });
  const last = new Map();
  for (const row of items) {
    const pair = JSON.stringify([row.from, row.agent]);
    if (row.from && !last.has(pair)) last.set(pair, row);
  }
  return [...last.values()].slice(0, most);
}

async function asked() {
  const found = await Promise.all(Object.entries(CAUSES).map(([cause, most]) => lastOf(cause, most)));
  return found.flat().sort((one, other) => time(other.at) - time(one.at));
}

function Asking({ row }) {
  const { verdict, guard, run_id: run } = row;
  const held = verdict === "admit" ? "" : `, ${verdict === "defer" ? "deferred" : "refused"} by ${plain(guard || "the door")}`;
  return html`<li><a href=${run ? to.run(run) : `#/decisions?wake=${row.wake_id}`}><strong><bdi>${row.from}</bdi></strong> ${HOW[verdict]} <strong>${row.agent}</strong> ${clock(row.at, now.value)}${held}</a></li>`;
}

export function Lately() {
  const { value, reload } = useAsked("lately", asked);
  useHeard((event) => event.kind === "decided" && event.fields.cause in CAUSES, reload, 2000);
  if (!value || !value.length) return null;
  return html`<div class="timeline-lines"><h2>Lately</h2><ul>${value.map((row) => html`<${Asking} key=${row.wake_id} row=${row} />`)}</ul></div>`;
}

const LEFT = 3;
const STIRS = new Set(["ended", "marked_read", "snoozed", "gone", "returned"]);

export function Stuck() {
  const { value, reload } = useAsked("stuck", () => get("/v1/stuck", { limit: LEFT }));
  useHeard(({ kind }) => STIRS.has(kind), reload, 5000);
  if (!value || !value.items.length) return null;
  return html`<div class="timeline-lines is-stuck"><h2>▲ Stuck</h2><ul>${value.items.map((item) => html`<li key=${item.id}><a href=${to.agent(item.to, "inbox")}><strong>${item.to}</strong>: <bdi>${item.subject || `message ${item.id}`}</bdi>, since ${clock(item.since, now.value)}, shown to ${counted(item.runs, "run")}</a></li>`)}${value.more && html`<li>and more</li>`}</ul></div>`;
}
