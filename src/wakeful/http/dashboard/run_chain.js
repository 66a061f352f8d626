// Who led to a run, and what came of it: the chain from its root, drawn as a tree.
//
// Law: the run that is looked at, the way from its root to it and what it woke itself are always drawn; the rest of the
// lineage when it is asked for, and what is left out is counted.

import { html, useState } from "./base.js";
import { AgentLink, to } from "./parts.js";
import { cleaned } from "./escapes.js";
import { counted, grouped, money, plain, State, When } from "./words.js";
import { because } from "./work_parts.js";

const MOST_OF_ONE = 30;

function rootWords({ root, whole }) {
  if (!whole) return "What began it is no longer kept.";
  const { what, agent, from, item } = root;
  const subject = item && item.subject ? `: ${item.subject}` : "";
  const words = {
    operator: `${from || "the operator"} asked for ${agent}`,
    timer: `the timer of ${agent} rang`,
    task: `task ${item ? item.id : "?"}${from ? ` of ${from}` : ""} for ${agent}${subject}`,
    message: `a message of ${from || "?"} to ${agent}${subject}`,
    file: `the file ${item ? item.external_id : "?"} in the inbox of ${agent}`,
    source: `${item ? item.external_id || item.subject : "?"} of ${item ? item.source : "?"}, for ${agent}`,
  };
  return (words[what] || `${what} for ${agent}`) + (root.reason ? `: ${root.reason}` : "");
}

// How it stands with one wake: its run's outcome, or why there is none.
function standing(link) {
  if (link.run_id !== null) {
    const of = link.outcome || (link.state === "running" || link.state === "admitted" ? "running" : "idle");
    return html`<${State} of=${of} word=${plain(link.outcome || link.state)} />`;
  }
  if (link.joined !== null) return html`<${State} of="waiting" word=${`joined wake ${link.joined}`} />`;
  const held = { refuse: "refused by", defer: "waits for" }[link.verdict];
  return html`<${State} of=${link.verdict} word=${link.guard ? `${held} ${plain(link.guard)}` : "not decided yet"} />`;
}

function Node({ link, here, below, way }) {
  const mine = link.run_id === here;
  const rows = below(link);
  const shown = rows.filter((row, index) => index < MOST_OF_ONE || way.has(row.wake_id));
  return html`<li class=${mine ? "is-here" : way.has(link.wake_id) ? "is-way" : ""}>
    <div class="work-chain-node">
      <p><strong><${AgentLink} name=${link.agent} /></strong> ${mine ? html`<strong aria-current="true">◄ this run</strong> ` : ""}${standing(link)}</p>
      <p class="dim"><bdi>${cleaned(because(link))}</bdi></p>
      <p class="dim">${link.run_id !== null && !mine && html`<a href=${to.run(link.run_id)}>run ${link.run_id}</a> · `}<a href=${`#/decisions?wake=${link.wake_id}`}>wake ${link.wake_id}</a> · <${When} at=${link.requested_at} />
        ${link.usage.usd > 0 ? ` · ${money(link.usage.usd)}` : ""}${link.runs > 1 ? ` · ${counted(link.runs, "run")}` : ""}</p>
      ${link.run_reason && html`<p class="work-error"><bdi>${cleaned(link.run_reason)}</bdi></p>`}
    </div>
    ${rows.length > 0 && html`<ul>${shown.map((row) => html`<${Node} key=${row.wake_id} link=${row} here=${here} below=${below} way=${way} />`)}
      ${rows.length > shown.length && html`<li class="dim"><div class="work-chain-node">and ${counted(rows.length - shown.length, "more wake")}</div></li>`}</ul>`}
  </li>`;
}

export function Chain({ blame }) {
  const [all, setAll] = useState(false);
  const chain = new Map(blame.chain.map((link) => [link.wake_id, link]));
  // Of a wake with several runs the chain tells the one that led on.
  const items = blame.items.map((link) => chain.get(link.wake_id) || link);
  const wanted = (link) => all || chain.has(link.wake_id) || link.by_run === blame.run;
  const children = new Map();
  for (const link of items) if (link.parent !== null) children.set(link.parent, [...(children.get(link.parent) || []), link]);
  const below = (link) => (children.get(link.wake_id) || []).filter(wanted);
  const top = blame.chain[0];
  const drawn = items.filter(wanted).length;
  const { lineage } = blame;
  const least = lineage.cut ? "at least " : "";
  return html`<div class="work-chain">
    <p class="work-chain-root"><i aria-hidden="true">◆</i> <bdi>${cleaned(rootWords(blame))}</bdi> <span class="dim">· <${When} at=${blame.root.at} /></span></p>
    ${top.depth > 0 && html`<p class="dim">… ${counted(top.depth, "wake")} between that and this:</p>`}
    <ul class="work-chain-tree"><${Node} link=${top} here=${blame.run} below=${below} way=${chain} /></ul>
    ${blame.woke.length === 0 && html`<p class="dim">This run woke nobody.</p>`}
    <p class="dim">All that came of that root: ${least}${counted(lineage.runs, "run")}, ${least}${money(lineage.usage.usd)} and ${grouped(lineage.usage.tokens)} tokens${lineage.refused ? `; ${counted(lineage.refused, "wake")} refused` : ""}.
      ${(all || drawn < items.length) && html` <button type="button" class="quiet" onClick=${() => setAll(!all)}>${all ? "only what led here" : `draw all ${grouped(items.length)} wakes`}</button>`}</p>
  </div>`;
}
