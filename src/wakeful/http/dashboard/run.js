// One run: what it is, what it prints, what it was told, who led to it and what came of it; and its end, if need be.

import { html, useState } from "./base.js";
import { get, post } from "./api.js";
import { agents, now, status, touch } from "./live.js";
import { AgentLink, Dialog, Fault, note, to, useAsked } from "./parts.js";
import { cleaned } from "./escapes.js";
import { Chain } from "./run_chain.js";
import { Output } from "./run_output.js";
import { clock, counted, grouped, lasting, money, plain, State, When } from "./words.js";
import { Attempts, because, lasted, numbers, Section, Steps, Text, useHeard, VERDICTS } from "./work_parts.js";

const isOpen = (run) => run.state === "running" || run.state === "admitted";

// ---- what it is, in one line

function howLong(run) {
  if (run.state === "admitted") return `waits to begin since ${clock(run.admitted_at)}`;
  if (run.state === "void") return "never began: it was taken back before it did";
  const row = agents.value.get(run.agent);
  const wall = row && row.run === run.id ? row.wall_clock : null;
  if (isOpen(run)) return `for ${lasted(run)}${wall ? ` of ${lasting(wall)}` : ""}`;
  return run.started_at ? `after ${lasted(run)}` : "";
}

// "wren woke it: a new line is there", with a link to the run in which it did.
function Because({ run }) {
  const wake = run.wake;
  if (!wake) return html`<span>${plain(run.cause)}</span>`;
  const by = run.chain && run.chain.by_run;
  const [task] = run.tasks;
  if (run.cause === "task" && task) return html`<span><a href=${to.task(task.id)}>task ${task.id}</a>${wake.from ? html` of <bdi>${cleaned(wake.from)}</bdi>` : ""} waited: <bdi>${cleaned(task.title)}</bdi>${run.tasks.length > 1 ? `, and ${run.task_ids.length - 1} more` : ""}</span>`;
  return html`<span><bdi>${cleaned(because({ cause: run.cause, from: wake.from, reason: wake.reason_given }))}</bdi>${by ? html` in <a href=${to.run(by)}>run ${by}</a>` : ""}</span>`;
}

function Head({ run, stopped }) {
  const of = run.outcome || (isOpen(run) ? "running" : "idle");
  return html`<header class="work-head">
    <h1>Run ${run.id} of <${AgentLink} name=${run.agent} /></h1>
    <p class="work-lead"><${State} of=${of} word=${plain(run.outcome || run.state)} /> ${howLong(run)} <span class="dim">·</span> its ${run.subject} <span class="dim">·</span> because <${Because} run=${run} /></p>
    ${stopped && isOpen(run) && html`<p class="work-stopped" role="status"><strong>Asked to end</strong> by ${stopped.by}${stopped.at ? ` at ${clock(stopped.at, now.value, true)}` : ""}: ${stopped.at_once ? "KILL, at once" : "TERM, and KILL when its grace is over"}.${stopped.more ? ` ${stopped.more}` : ""}</p>`}
    ${run.reason && html`<${Text} text=${run.reason} kind="work-error" />`}
    ${run.summary && html`<${Text} text=${run.summary} kind="work-summary" />`}
  </header>`;
}

// ---- earlier and later

// There is no way to ask for the next one: the runs behind this one are asked for, in steps that grow.
async function later(agent, id) {
  for (const step of [100, 1000, 10_000, 1_000_000]) {
    const page = await get("/v1/runs", { agent, before: id + step + 1, limit: Math.min(step, 1000) });
    const found = page.items.filter((run) => run.id > id).at(-1);
    if (found) return found.id;
  }
  return null;
}

function Neighbours({ run }) {
  const asked = useAsked(`${run.agent} ${run.id}`, async () => {
    const [page, after] = await Promise.all([get("/v1/runs", { agent: run.agent, before: run.id, limit: 1 }), later(run.agent, run.id)]);
    return { before: page.items.length ? page.items[0].id : null, after };
  });
  useHeard((event) => event.kind === "started" && event.agent === run.agent && asked.value && asked.value.after === null, asked.reload);
  const { before, after } = asked.value || {};
  return html`<nav class="work-neighbours" aria-label=${`runs of ${run.agent}`}>
    ${before ? html`<a href=${to.run(before)}>← earlier run ${before}</a>` : html`<span class="dim">${asked.value ? "its first run" : ""}</span>`}
    <a href=${to.agent(run.agent, "runs")}>all runs of ${run.agent}</a>
    ${after ? html`<a href=${to.run(after)}>later run ${after} →</a>` : html`<span class="dim">${asked.value ? "its newest run" : ""}</span>`}
  </nav>`;
}

// ---- its end

function Kill({ run, close, asked }) {
  const [atOnce, setAtOnce] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const kill = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const answer = await post(`/v1/runs/${run.id}/kill`, { at_once: atOnce });
      touch(run.agent);
      asked(answer, atOnce);
      close();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`End run ${run.id} of ${run.agent}?`} close=${close}>
    <form onSubmit=${kill}>
      <p>It has been running for ${lasted(run)}. It and everything that it has started is ended; it counts as no attempt.${run.task_ids.length ? " Its tasks go back to their queue." : ""}</p>
      <fieldset><legend>How</legend>
        <label class="choice"><input type="radio" name="how" autofocus checked=${!atOnce} onChange=${() => setAtOnce(false)} /> ask it to end (TERM), and KILL when its grace is over</label>
        <label class="choice"><input type="radio" name="how" checked=${atOnce} onChange=${() => setAtOnce(true)} /> KILL at once</label></fieldset>
      <${Fault} problem=${problem} />
      <footer><button type="button" onClick=${close}>Let it run</button><button class="danger" disabled=${busy}>${busy ? "asking…" : "End the run"}</button></footer>
    </form></${Dialog}>`;
}

// ---- what belongs to it

function Facts({ run, decision }) {
  const { usd, tokens } = run.usage;
  const usage = usd || tokens ? `${money(usd)} · ${grouped(tokens)} tokens` : "nothing said";
  return html`<section class="sheet"><h2>Facts</h2><dl class="facts">
    <dt>Cost</dt><dd>${isOpen(run) && !usd && !tokens ? "said when it ends" : usage}${run.estimated ? html` <strong>estimated</strong> <span class="dim">nobody said what it used; this was set aside for it</span>` : ""}</dd>
    <dt>Started</dt><dd><${When} at=${run.started_at} />${run.started_at && html` <span class="dim"><${When} at=${run.started_at} how="ago" /></span>`}</dd>
    <dt>Ended</dt><dd>${run.ended_at ? html`<${When} at=${run.ended_at} /> <span class="dim">took ${lasted(run)}</span>` : isOpen(run) ? "it goes on" : "–"}</dd>
    <dt>Cause</dt><dd>${run.cause}, for its ${run.subject}</dd>
    <dt>Decision</dt><dd>${decision
      ? html`<${State} of=${decision.verdict} word=${VERDICTS[decision.verdict] || "–"} /> ${decision.at && html`<${When} at=${decision.at} />`}${decision.reason ? html` <bdi>${cleaned(decision.reason)}</bdi>` : ""}${Object.keys(decision.numbers || {}).length ? html` <span class="dim">(${numbers(decision.numbers)})</span>` : ""} `
      : ""}<a href=${`#/decisions?wake=${run.wake_id}`}>wake ${run.wake_id}</a></dd>
    <dt>Attempt</dt><dd>${run.attempt}</dd>
    ${run.node && status.value && status.value.shared && html`<dt>Node</dt><dd>${run.node}</dd>`}
  </dl></section>`;
}

function Item({ item }) {
  const about = item.subject || `${item.kind} ${item.id}`;
  return html`<li key=${item.id}><p>${item.kind === "task" ? html`<a href=${to.task(item.id)}>task ${item.id}</a>` : `${item.kind} ${item.id}`} <strong><bdi>${cleaned(about)}</bdi></strong></p>
    <p class="dim">${item.from ? html`from <bdi>${cleaned(item.from)}</bdi> · ` : ""}${plain(item.kind === "task" ? item.state : item.type)}${item.priority && item.priority !== "normal" ? ` · ${item.priority}` : ""}</p>
    <${Text} text=${item.body} /></li>`;
}

function Items({ run }) {
  const { items } = run;
  const gone = run.shown.length - items.length;
  if (!run.shown.length) return null;
  return html`<${Section} title="What it was shown" count=${run.shown.length}>
    <ul class="work-items">${items.map((item) => html`<${Item} key=${item.id} item=${item} />`)}</ul>
    ${gone > 0 && html`<p class="dim">and ${counted(gone, "more item")}</p>`}</${Section}>`;
}

function Task({ task, run }) {
  const [open, setOpen] = useState(run.task_ids.length === 1);
  const whole = useAsked(open ? `${task.id} ${task.state} ${task.attempts}` : "", () => (open ? get(`/v1/tasks/${task.id}`) : Promise.resolve(null)));
  return html`<li><details open=${open} onToggle=${(event) => setOpen(event.target.open)}><summary><a href=${to.task(task.id)}>task ${task.id}</a> <bdi>${cleaned(task.title)}</bdi> <${State} of=${task.state} />
    <span class="dim"> · ${counted(task.attempts, "attempt")}</span></summary>
    <${Fault} problem=${whole.problem} again=${whole.reload} />${whole.value && html`<${Attempts} attempts=${whole.value.attempts} here=${run.id} />`}</details></li>`;
}

function Tasks({ run }) {
  const { tasks, task_ids: ids } = run;
  if (!ids.length) return null;
  return html`<${Section} title="Tasks" count=${ids.length}><ul class="work-items">${tasks.map((task) => html`<${Task} key=${task.id} task=${task} run=${run} />`)}</ul>
    ${ids.length > tasks.length && html`<p class="dim">and ${counted(ids.length - tasks.length, "more task")}</p>`}</${Section}>`;
}

export default function Run({ id }) {
  const number = Number(id);
  const run = useAsked(id, () => get(`/v1/runs/${id}`));
  const blame = useAsked(id, () => get(`/v1/runs/${id}/blame`));
  const wake = run.value ? run.value.wake_id : null;
  const decision = useAsked(String(wake), () => (wake === null ? Promise.resolve(null) : get(`/v1/decisions/${wake}`)));
  const [asking, ask] = useState(false);
  const [stopped, setStopped] = useState(null);
  useHeard((event) => {
    if (event.kind === "stopped" && event.run_id === number) setStopped((known) => ({ ...known, by: event.fields.by, at: event.at, at_once: event.fields.at_once }));
    return event.run_id === number;
  }, run.reload, 500);
  const lineage = new Set(blame.value ? blame.value.items.flatMap((link) => [link.wake_id]) : []);
  useHeard((event) => event.run_id === number || lineage.has(event.wake_id) || (event.kind === "asked" && event.fields.by_run === number), blame.reload);
  if (!run.value) return run.problem ? html`<h1>Run ${id}</h1><${Fault} problem=${run.problem} again=${run.reload} />` : html`<p class="loading">…</p>`;
  const told = run.value;
  const asked = (answer, atOnce) => {
    if (!answer.asked) note(`run ${id} had ended already: ${plain(answer.outcome || answer.state)}`);
    else {
      note(`run ${id} is asked to end`);
      const more = answer.engine ? "" : answer.shared ? `Its node ${answer.node} is not up: it is ended with its lease.` : "No engine is at work: the next one will end it.";
      setStopped((known) => ({ by: "the operator", at_once: atOnce, ...known, more }));
    }
    run.reload();
  };
  return html`<article class="work-run">
    <div class="work-top"><${Neighbours} run=${told} />${isOpen(told) && html`<button type="button" class="danger" onClick=${() => ask(true)}>☠ End this run…</button>`}</div>
    <${Head} run=${told} stopped=${stopped} />
    <${Fault} problem=${run.problem} again=${run.reload} />
    <div class="work-columns">
      <div class="work-wide"><${Output} id=${number} open=${isOpen(told)} />
        ${told.briefing && html`<${Section} title="What it was told" open=${false}><pre class="output work-briefing" tabindex="0">${cleaned(told.briefing)}</pre></${Section}>`}</div>
      <div class="work-narrow"><section class="sheet"><h2>Who led to it, and what it woke</h2>
          ${blame.value ? html`<${Chain} blame=${blame.value} />` : blame.problem ? html`<${Fault} problem=${blame.problem} again=${blame.reload} />` : html`<p class="dim">…</p>`}</section>
        <${Facts} run=${told} decision=${decision.value} />
        <${Tasks} run=${told} /><${Items} run=${told} /><${Steps} steps=${told.steps} /></div>
    </div>
    ${asking && html`<${Kill} run=${told} close=${() => ask(false)} asked=${asked} />`}
  </article>`;
}
