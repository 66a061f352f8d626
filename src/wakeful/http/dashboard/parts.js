// What pages are made of: bars, dialogs, forms that say what went wrong, and lists that draw only what is seen.

import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./base.js";
import { money, grouped } from "./words.js";

// ---- links

export const to = {
  agent: (name, tab = "") => `#/agents/${encodeURIComponent(name)}${tab ? `/${tab}` : ""}`,
  run: (id) => `#/runs/${id}`,
  task: (id) => `#/tasks/${id}`,
};
export const AgentLink = ({ name }) => (name ? html`<a href=${to.agent(name)}>${name}</a>` : html`<span class="dim">–</span>`);
export const RunLink = ({ id }) => (id ? html`<a href=${to.run(id)}>run ${id}</a>` : html`<span class="dim">–</span>`);

// ---- figures

// What is used of a limit; without one, only what is used.
export function Bar({ label, used, of, unit = "" }) {
  const say = unit === "usd" ? money : (number) => grouped(Math.round(number * 10) / 10);
  const share = of ? Math.min(used / of, 1) : 0;
  const full = of !== null && of !== undefined && used >= of;
  const text = `${say(used)}${of === null || of === undefined ? "" : ` of ${say(of)}`}`;
  return html`<span class=${`bar${full ? " is-full" : share >= 0.8 ? " is-high" : ""}`} title=${`${label}: ${text}`}>
    <span class="bar-text">${text}</span>
    ${of !== null && of !== undefined &&
    html`<span class="bar-track" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax=${of} aria-valuenow=${Math.min(used, of)}
      ><span class="bar-fill" style=${{ width: `${share * 100}%` }}></span></span>`}
  </span>`;
}

// A row of the day: each state a mark, the present one filled, its hits beside it.
export function Day({ day, position }) {
  if (!day || !day.length) return html`<span class="dim">–</span>`;
  const at = day.findIndex((state) => state.state === position.state);
  const said = day.map((state) => state.state).join(" → ");
  return html`<span class="day" title=${said} role="img" aria-label=${`day: ${said}; now in ${position.state}, ${position.hits} hits`}>
    <span class="day-marks">${day.map((state, index) => html`<i class=${`mark is-${state.kind}${index === at ? " is-now" : ""}${index < at ? " is-past" : ""}`}></i>`)}</span>
    <span class="day-word">${position.state}${position.hits ? ` +${position.hits}` : ""}</span>
  </span>`;
}

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export function Fault({ problem, again }) {
  if (!problem) return null;
  return html`<div class="fault" role="alert"><strong>${problem.message}</strong>${problem.remedy && html`<span> ${problem.remedy}</span>`}
    ${again && html` <button class="quiet" onClick=${again}>try again</button>`}</div>`;
}

// ---- asking

// What a page needs from the server: {value, problem, reload}. Asked again when `what` (a string) changes, every
// `each` milliseconds, and when reload() is called; what was known stays until something newer is.
export function useAsked(what, fetcher, { each = 0 } = {}) {
  const [state, set] = useState({ value: null, problem: null, what: null });
  const latest = useRef(0);
  const load = () => {
    const turn = ++latest.current;
    return fetcher().then(
      (value) => turn === latest.current && set({ value, problem: null, what }),
      (problem) => turn === latest.current && set((before) => ({ ...before, problem, value: before.what === what ? before.value : null, what })),
    );
  };
  useEffect(() => {
    load();
    if (!each) return undefined;
    const timer = setInterval(() => document.hidden || load(), each);
    return () => clearInterval(timer);
  }, [what, each]);
  useEffect(() => () => void (latest.current = -1), []);
  return { value: state.what === what ? state.value : null, problem: state.problem, reload: load };
}

// A button that does something: busy while it does, and says what went wrong beside it.
export function Act({ act, children, kind = "", disabled = false, label, done }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const run = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const answer = await act();
      if (done) done(answer);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<span class="act"><button type="button" class=${kind} aria-label=${label} aria-busy=${busy} disabled=${disabled || busy} onClick=${run}>${children}</button>
    ${problem && html`<${Fault} problem=${problem} />`}</span>`;
}

// ---- dialogs

export function Dialog({ title, close, children }) {
  const ref = useRef(null);
  // Whoever presses beside it leaves it. Its own edge is no such place, and neither is where a text was selected to.
  const pressed = useRef(false);
  const isBeside = ({ target, clientX: x, clientY: y }) => {
    const box = ref.current.getBoundingClientRect();
    return target === ref.current && (x < box.left || x > box.right || y < box.top || y > box.bottom);
  };
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before && before.focus && before.focus();
  }, []);
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onClose=${close} onPointerDown=${(event) => void (pressed.current = isBeside(event))}
    onClick=${(event) => pressed.current && isBeside(event) && event.detail < 2 && close()}>
    <header><h2 id="dialog-title">${title}</h2><button type="button" class="quiet" aria-label="close" onClick=${close}>✕</button></header>
    ${children}
  </dialog>`;
}

// Said for a while at the edge of the page, and to whoever listens instead of looking.
const notes = signal([]);
let numbered = 0;
export function note(text, kind = "") {
  const id = ++numbered;
  notes.value = [...notes.value, { id, text, kind }];
  setTimeout(() => (notes.value = notes.value.filter((each) => each.id !== id)), kind === "bad" ? 12_000 : 6_000);
}
export const Notes = () => html`<div class="notes" role="status" aria-live="polite">${notes.value.map((each) => html`<p key=${each.id} class=${each.kind}>${each.text}</p>`)}</div>`;

// ---- long lists

const STEP = 8;

// Rows of one height, of which only those in sight are drawn. `row(item, index)` gives the cells of one, keyed by
// `by(item)`; `mark(item)` is a class for it. `head` stands above them and stays there. The window scrolls, not the list.
// One that has the focus keeps it when its row moves to another place.
export function Rows({ items, height, row, by, mark, head, label, kind = "" }) {
  const ref = useRef(null);
  const focused = document.activeElement;
  useLayoutEffect(() => {
    if (focused !== document.activeElement && focused.isConnected && ref.current.contains(focused)) focused.focus({ preventScroll: true });
  });
  const [seen, setSeen] = useState([0, 60]);
  const look = () => {
    if (!ref.current) return;
    const top = ref.current.getBoundingClientRect().top;
    // In steps, so that not every row that passes is drawn anew.
    const first = Math.max((Math.floor(-top / height / STEP) - 1) * STEP, 0);
    const many = Math.ceil(window.innerHeight / height) + 3 * STEP;
    setSeen((before) => (before[0] === first && before[1] === first + many ? before : [first, first + many]));
  };
  useLayoutEffect(look, [items.length, height]);
  useEffect(() => {
    window.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, [height]);
  const [first, last] = seen;
  const shown = items.slice(first, last);
  return html`<div class=${`rows ${kind}`} role="table" aria-label=${label} aria-rowcount=${items.length}>
    ${head}
    <div ref=${ref} role="rowgroup" class="rows-body" style=${{ height: `${items.length * height}px` }}>
      <div class="rows-seen" style=${{ transform: `translateY(${first * height}px)` }}>
        ${shown.map((item, index) => html`<div key=${by(item)} role="row" aria-rowindex=${first + index + 1} class=${mark ? `row ${mark(item)}` : "row"} style=${{ height: `${height}px` }}>${row(item, first + index)}</div>`)}
      </div>
    </div>
  </div>`;
}

// A list that goes on: {items, next, more(), problem}. `what` is asked anew when it changes.
export function usePages(what, fetcher) {
  const [state, set] = useState({ what: null, items: [], next: null, problem: null, busy: false });
  const turn = useRef(0);
  const ask = async (cursor, before) => {
    const mine = ++turn.current;
    set((old) => ({ ...old, busy: true }));
    try {
      const page = await fetcher(cursor);
      if (mine === turn.current) set({ what, items: [...before, ...page.items], next: page.next, problem: null, busy: false });
    } catch (problem) {
      if (mine === turn.current) set((old) => ({ ...old, problem, busy: false }));
    }
  };
  useEffect(() => void ask(undefined, []), [what]);
  const current = state.what === what;
  return {
    items: current ? state.items : [],
    next: current ? state.next : null,
    loaded: current,
    busy: state.busy,
    problem: state.problem,
    more: () => ask(state.next, state.items),
    reload: () => ask(undefined, []),
  };
}
export const More = ({ pages }) => (pages.next === null ? null : html`<p class="more"><button type="button" disabled=${pages.busy} onClick=${pages.more}>${pages.busy ? "asking…" : "show more"}</button></p>`);
