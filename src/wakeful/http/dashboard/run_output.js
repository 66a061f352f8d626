// What a run prints, as it prints it.
//
// Laws:
// - It goes on where it was cut off: no byte is shown twice, none is passed over.
// - However much a run prints, this keeps about a megabyte of it, and says what it left out.
// - It stays at the end until somebody scrolls up, and then leaves them where they are.
// - Text nodes in blocks of lines, of which those are laid out that are looked at: to add a line costs a line.

import { html, useEffect, useRef, useState } from "./base.js";
import { events, get } from "./api.js";
import { Fault, useAsked } from "./parts.js";
import { cleaner } from "./escapes.js";
import { size } from "./work_parts.js";

const MOST = 1_000_000;
const [BLOCK, LONGEST_LINE] = [16_000, 48_000];
// The height of a line, near enough.
const LINE = 18.85;
const PIECE = 500_000;
const ENDING = 2_000;
const DRAW_EACH = 80;
const UNSEEN = 5_000;
// So much is kept of what a run prints (runners/capture.py); of more, its beginning, and its end when it is over.
const KEPT = 5 * 1024 * 1024 - 64;

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// The blocks of one stream within an element.
class Roll {
  constructor(element) {
    this.element = element;
    this.clean = cleaner();
    this.blocks = [];
    this.length = 0;
    this.begin = null;
    element.replaceChildren();
  }

  // From which byte on there is something to see.
  get first() {
    return this.blocks.length ? this.blocks[0].offset : this.begin ?? 0;
  }

  add(piece, offset, last = false) {
    this.begin ??= offset;
    const text = this.clean(piece, last);
    for (let rest = text; rest; ) {
      const block = this.open(offset + text.length - rest.length);
      const room = Math.max(BLOCK - block.length, 0);
      // To the end of a line, unless that is far away.
      const line = rest.indexOf("\n", room) + 1;
      const end = Math.min(line || rest.length, room + LONGEST_LINE);
      const part = rest.slice(0, end);
      block.node.append(document.createTextNode(part));
      block.length += end;
      block.lines += part.split("\n").length - 1;
      block.full = line === end || end < rest.length || block.length >= BLOCK + LONGEST_LINE;
      this.length += end;
      rest = rest.slice(end);
    }
    while (this.length > MOST && this.blocks.length > 1) {
      const gone = this.blocks.shift();
      this.length -= gone.length;
      gone.node.remove();
    }
  }

  // The block that is written to; those that are full are laid out when they are looked at, but for the last ones, so
  // that the end is where it is.
  open(offset) {
    const last = this.blocks.at(-1);
    if (last && !last.full) return last;
    const block = { node: document.createElement("div"), length: 0, lines: 0, offset, full: false };
    this.element.append(block.node);
    this.blocks.push(block);
    const old = this.blocks.at(-4);
    if (old) old.node.style.cssText = `content-visibility: auto; contain-intrinsic-block-size: auto ${old.lines * LINE}px`;
    return block;
  }

  // Whether it ends like that, as far as its last block goes.
  ends(text) {
    const last = this.blocks.length ? this.blocks.at(-1).node.textContent : "";
    return last.length < text.length ? text.endsWith(last) : last.endsWith(text);
  }
}

// Until the run is over or `cut`, from `at.offset` on; `told` is given what came, and what went wrong in between.
async function follow(id, stream, at, cut, told) {
  let pause = 250;
  while (!cut.aborted) {
    try {
      for await (const { event, data } of events(`/v1/runs/${id}/log`, { query: { stream, offset: at.offset }, signal: cut })) {
        // What comes after the cut is asked for again.
        if (cut.aborted) return;
        pause = 250;
        if (event === "output") at.offset = data.next_offset;
        told({ [event]: data, problem: null });
        if (event !== "over") continue;
        at.over = true;
        return;
      }
    } catch (problem) {
      if (cut.aborted) return;
      told({ problem });
      if (problem.status >= 400 && problem.status < 500) return;
    }
    await sleep(pause);
    pause = Math.min(pause * 2, 3000);
  }
}

// The same, as long as somebody looks: a browser has few connections to one server.
function followSeen(id, stream, told) {
  const at = { offset: -MOST, over: false };
  let cut = new AbortController();
  let timer = null;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => cut.abort(), UNSEEN);
    else if (!at.over && cut.signal.aborted) follow(id, stream, at, (cut = new AbortController()).signal, told);
  };
  follow(id, stream, at, cut.signal, told);
  document.addEventListener("visibilitychange", look);
  return () => {
    document.removeEventListener("visibilitychange", look);
    clearTimeout(timer);
    cut.abort();
  };
}

function Live({ id, stream, open, earlier }) {
  const ref = useRef(null);
  const stick = useRef(true);
  const [seen, setSeen] = useState({ first: 0, empty: true, full: false, over: false, problem: null });
  const [away, setAway] = useState(false);
  const toEnd = (element) => void (element.scrollTop = element.scrollHeight);
  useEffect(() => {
    const element = ref.current;
    let roll = new Roll(element);
    let gone = false;
    const state = { full: false, over: false, problem: null };
    let pieces = [];
    let waiting = 0;
    let compared = false;
    let timer = null;
    // Of more than is kept the end is put in its place when the run is over: then what was followed is not the end.
    const compare = async () => {
      const end = await get(`/v1/runs/${id}/output`, { stream, offset: -ENDING, limit: ENDING });
      const lines = cleaner()(end.text, true);
      // The first may have been cut, even within an escape.
      if (roll.ends(end.offset > 0 ? lines.slice(lines.indexOf("\n") + 1) : lines)) return;
      const tail = await get(`/v1/runs/${id}/output`, { stream, offset: -MOST, limit: MOST });
      if (gone) return;
      roll = new Roll(element);
      pieces = [tail];
      draw();
    };
    const draw = () => {
      timer = null;
      for (const { text, offset } of pieces) roll.add(text, offset);
      if (state.over) roll.add("", 0, true);
      if (state.over && !compared) {
        compared = true;
        compare().catch(() => {});
      }
      pieces = [];
      waiting = 0;
      if (stick.current) toEnd(element);
      const next = { first: roll.first, empty: !roll.length, ...state };
      setSeen((before) => (Object.keys(next).every((name) => next[name] === before[name]) ? before : next));
    };
    const stop = followSeen(id, stream, ({ output, over, problem }) => {
      if (output) waiting += pieces.push(output) && output.text.length;
      // Who is not looked at draws seldom: what would be left out by then is left out now, with all before it.
      while (waiting > MOST * 2) {
        waiting -= pieces.shift().text.length;
        if (roll.length) roll = new Roll(element);
      }
      if (output && output.next_offset >= KEPT) state.full = true;
      if (over) state.over = true;
      if (problem !== undefined) state.problem = problem;
      timer ??= setTimeout(draw, DRAW_EACH);
    });
    return () => {
      gone = true;
      stop();
      clearTimeout(timer);
    };
  }, []);
  const scrolled = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
    stick.current = scrollHeight - scrollTop - clientHeight < 24;
    setAway(!stick.current);
  };
  const rest = () => {
    stick.current = true;
    setAway(false);
    toEnd(ref.current);
  };
  return html`<div class="work-output">
    ${seen.first > 0 && html`<p class="dim">The first ${size(seen.first)} are left out here. <button type="button" class="quiet" onClick=${() => earlier(Math.max(seen.first - PIECE, 0))}>what came before</button> <code>wakeful logs ${id}${stream === "stderr" ? " --stderr" : ""}</code> prints all that is kept.</p>`}
    <div class="work-output-frame">
      <pre ref=${ref} class="output" tabindex="0" role="region" aria-label=${`${stream} of run ${id}`} onScroll=${scrolled}></pre>
      ${seen.empty && html`<p class="work-output-none">${seen.over ? `It printed nothing on ${stream}.` : open ? `Nothing on ${stream} yet.` : "…"}</p>`}
      ${away && html`<button type="button" class="main work-output-end" onClick=${rest}>↓ ${seen.over ? "to the end" : "follow the end"}</button>`}
    </div>
    ${seen.problem && html`<${Fault} problem=${seen.problem} />`}
    ${!seen.empty && html`<p class="dim work-output-state">${seen.over ? "That is all: the run is over." : seen.full ? `It prints more than the ${size(KEPT)} that are kept: what comes now is shown when it is over.` : seen.problem ? "Cut off; trying again." : "● as it is printed"}</p>`}
  </div>`;
}

// What came earlier, a piece at a time.
function Piece({ id, stream, from, move }) {
  const { value, problem, reload } = useAsked(`${id} ${stream} ${from}`, () => get(`/v1/runs/${id}/output`, { stream, offset: from, limit: PIECE }));
  const ref = useRef(null);
  useEffect(() => {
    const roll = new Roll(ref.current);
    if (value) roll.add(value.text, value.offset, true);
    ref.current.scrollTop = 0;
  }, [value]);
  return html`<div class="work-output">
    <p class="work-output-pieces"><span class="dim">${value ? `${size(value.offset)} to ${size(value.next_offset)} of ${size(value.size)}` : "…"}</span>
      <button type="button" class="quiet" disabled=${from === 0} onClick=${() => move(Math.max(from - PIECE, 0))}>earlier</button>
      <button type="button" class="quiet" disabled=${!value || value.next_offset >= value.size} onClick=${() => move(value.next_offset)}>later</button>
      <button type="button" class="quiet" onClick=${() => move(null)}>to the end</button></p>
    <${Fault} problem=${problem} again=${reload} />
    <pre ref=${ref} class="output" tabindex="0" role="region" aria-label=${`${stream} of run ${id}, an earlier piece`}></pre>
  </div>`;
}

const STREAMS = [["stdout", "Printed"], ["stderr", "Complained"]];

// `open` as long as the run may print more.
export function Output({ id, open }) {
  const sizes = useAsked(`${id} ${open}`, () => Promise.all(STREAMS.map(([stream]) => get(`/v1/runs/${id}/output`, { stream, offset: -4, limit: 4 }))), { each: open ? 3000 : 0 });
  const [chosen, choose] = useState(null);
  const [from, move] = useState(null);
  const [printed, complained] = sizes.value ? sizes.value.map((each) => each.size) : [null, null];
  // Who printed nothing and complained is heard by its complaint.
  const first = useRef(null);
  if (first.current === null && printed !== null && (!open || printed || complained)) first.current = !printed && complained ? "stderr" : "stdout";
  const stream = chosen || first.current || "stdout";
  const pick = (name) => {
    choose(name);
    move(null);
  };
  return html`<section class="sheet work-log" aria-label="output">
    <header><h2>Output</h2><div class="chips">${STREAMS.map(([name, word], index) => html`
      <button type="button" aria-pressed=${stream === name} onClick=${() => pick(name)}>${word} <span class="dim">${name}${[printed, complained][index] === null ? "" : ` · ${size([printed, complained][index])}`}</span></button>`)}</div></header>
    ${from === null
      ? html`<${Live} key=${stream} id=${id} stream=${stream} open=${open} earlier=${move} />`
      : html`<${Piece} key=${`${stream} piece`} id=${id} stream=${stream} from=${from} move=${move} />`}
  </section>`;
}
