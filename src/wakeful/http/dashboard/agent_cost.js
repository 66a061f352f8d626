// What an agent has cost on each of the last fourteen days, as bars; its budget of a day, where it has one, as a line.

import { html, useEffect } from "./base.js";
import { get } from "./api.js";
import { useAsked } from "./parts.js";
import { grouped, money } from "./words.js";

const DAYS = 14;
const NAMES = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const dayName = (day) => NAMES[new Date(`${day}T12:00:00Z`).getUTCDay()];

// Replicas are counted together, under their address.
export function Cost({ name, address, of, ended }) {
  const asked = useAsked(name, () => get("/v1/costs", { days: DAYS, agent: name }));
  useEffect(() => void (asked.value && asked.reload()), [ended]);
  return html`<section class="sheet" aria-labelledby="agent-cost"><h2 id="agent-cost">Cost of the last ${DAYS} days</h2>
    ${asked.value ? html`<${Chart} told=${asked.value} name=${name} address=${address} of=${of} />` : html`<p class="dim">${asked.problem ? asked.problem.message : "…"}</p>`}</section>`;
}

function Chart({ told, name, address, of }) {
  const own = told.agents.find((each) => each.agent === name) || told.agents.find((each) => each.agent === address);
  const usd = own ? own.usd : told.days.map(() => 0);
  const tokens = own ? own.tokens : told.days.map(() => 0);
  const total = usd.reduce((sum, each) => sum + each, 0);
  const most = Math.max(...usd, 0);
  if (!most && !Math.max(...tokens, 0)) return html`<p class="dim">Nothing was spent, or nothing was told.</p>`;
  // Those that tell only their tokens are drawn by them.
  const amounts = most ? usd : tokens;
  const say = most ? money : grouped;
  const top = Math.max(...amounts, most && of ? of : 0);
  const today = amounts.at(-1);
  return html`<p class="agent-cost-today"><strong>${say(today)}</strong> today${most && of ? ` of ${money(of)}` : ""} · ${most ? money(total) : `${grouped(tokens.reduce((sum, each) => sum + each, 0))} tokens`} in ${told.days.length} days${own && own.agent !== name ? `, of all behind ${address}` : ""}</p>
    <div class="agent-chart" role="img" aria-label=${`cost by day: ${told.days.map((day, index) => `${day} ${say(amounts[index])}`).join(", ")}`}>
      ${most && of ? html`<span class="agent-chart-limit" style=${{ bottom: `${(of / top) * 100}%` }}><span>${money(of)} a day</span></span>` : ""}
      ${told.days.map((day, index) => html`<span key=${day} class=${`agent-chart-day${index === told.days.length - 1 ? " is-today" : ""}`} title=${`${day}: ${money(usd[index])}, ${grouped(tokens[index])} tokens`}><span class="agent-chart-bar" style=${{ height: `${(amounts[index] / top) * 100}%` }}></span></span>`)}
    </div>
    <div class="agent-chart-days" aria-hidden="true">${told.days.map((day, index) => html`<span key=${day} class=${index === told.days.length - 1 ? "is-today" : ""}>${dayName(day)}</span>`)}</div>`;
}
