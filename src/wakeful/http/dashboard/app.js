// The shell: where you are, what holds, whether what you see is true, and the page itself.

import { html, render, signal, useEffect, useLayoutEffect, useRef, useState } from "./base.js";
import { useErrorBoundary } from "./vendor/hooks.js";
import { isRight, refused, setToken, token } from "./api.js";
import { askForHelp, Keys } from "./keys.js";
import { begin } from "./live.js";
import { Fault, Notes } from "./parts.js";
import { askToPause, fleetPauses, FleetPaused, OthersPaused, PauseDialog, resuming } from "./pause.js";
import { place, settle } from "./place.js";
import { Connection, Stale, Summary, Troubles } from "./strip.js";

// Each page is a module with a default component, loaded when it is first looked at; the groups of its address are its
// properties.
const PAGES = [
  [/^\/$/, () => import("./fleet.js"), "Fleet"],
  [/^\/timeline$/, () => import("./timeline.js"), "Timeline"],
  [/^\/agents\/(?<name>[^/]+)(?:\/(?<tab>[a-z]+))?$/, () => import("./agent.js"), "Agent"],
  [/^\/runs\/(?<id>\d+)$/, () => import("./run.js"), "Run"],
  [/^\/tasks(?:\/(?<id>\d+))?$/, () => import("./tasks.js"), "Tasks"],
  [/^\/dead$/, () => import("./dead.js"), "Dead letters"],
  [/^\/decisions$/, () => import("./decisions.js"), "Decisions"],
];
const TABS = [["#/", "Fleet"], ["#/timeline", "Timeline"], ["#/tasks", "Tasks"], ["#/dead", "Dead letters"], ["#/decisions", "Decisions"]];

// ---- light and dark

const THEMES = ["system", "light", "dark"];
const theme = signal(localStorage.getItem("wakeful.theme") || "system");
function shade(name) {
  theme.value = name;
  localStorage.setItem("wakeful.theme", name);
  document.documentElement.dataset.theme = name;
}
document.documentElement.dataset.theme = theme.value;

function Theme() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  return html`<button type="button" class="quiet" title=${`theme: ${theme.value}`} aria-label=${`theme: ${theme.value}; change to ${next}`} onClick=${() => shade(next)}>${{ system: "◐", light: "☼", dark: "☾" }[theme.value]}</button>`;
}

function PauseFleet() {
  return fleetPauses().length
    ? html`<button type="button" class="pause is-paused" onClick=${() => resuming("")}><i aria-hidden="true">▶</i> Resume fleet</button>`
    : html`<button type="button" class="pause" onClick=${() => askToPause("")}><i aria-hidden="true">‖</i> Pause fleet</button>`;
}

// ---- pages

const named = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

// By title, once loaded.
const components = new Map();

function Page() {
  const { path } = place.value;
  const found = PAGES.map(([pattern, load, title]) => [pattern.exec(path), load, title]).find(([match]) => match);
  const [, setLoaded] = useState("");
  const [problem, setProblem] = useState(null);
  const title = found ? found[2] : "Nothing here";
  const load = (again = false) => {
    setProblem(null);
    found[1]().then(
      (module) => (components.set(title, module.default), setLoaded(title)),
      async () => {
        // Some browsers never ask again for a module that they were not given once: then all is asked for anew, if somebody is there.
        if (again && (await fetch("/healthz").then((answer) => answer.ok, () => false))) return location.reload();
        return setProblem({ title, message: "this page could not be loaded", remedy: "the engine may be away" });
      },
    );
  };
  useEffect(() => void (found && load()), [title]);
  const given = found ? Object.fromEntries(Object.entries(found[0].groups || {}).map(([name, text]) => [name, text && named(text)])) : {};
  const Component = components.get(title);
  const here = Boolean(Component);
  useEffect(() => {
    document.title = `${given.name || (given.id ? `${title} ${given.id}` : title)} · wakeful`;
  }, [path]);
  const before = useRef(path);
  useLayoutEffect(() => {
    if (!here) return;
    settle();
    // What had the focus is gone with the page that it was on.
    if (before.current !== path && document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true });
    before.current = path;
  }, [path, here]);
  if (!found) return html`<h1>Nothing here</h1><p><a href="#/">The fleet</a> is this way.</p>`;
  if (problem && problem.title === title) return html`<${Fault} problem=${problem} again=${() => load(true)} />`;
  if (!here) return html`<p class="loading">…</p>`;
  return html`<${Guarded} key=${`${title} ${given.name || given.id || ""}`}><${Component} ...${given} /></${Guarded}>`;
}

// A page that breaks takes nothing else with it: neither the banner nor the pause button.
function Guarded({ children }) {
  const [error, again] = useErrorBoundary((found) => console.error(found));
  if (error) return html`<${Fault} problem=${{ message: `this page broke: ${error.message || error}` }} again=${again} />`;
  return children;
}

// What stays in sight is told to the style, so that the heads of lists stay below it: the whole crown, or where there is
// little room the banners within it.
function useHeight(...refs) {
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      const there = refs.map((ref) => ref.current).filter(Boolean);
      const stays = there.find((each) => getComputedStyle(each).position === "sticky");
      document.documentElement.style.setProperty("--crown", `${stays ? Math.round(stays.getBoundingClientRect().height) : 0}px`);
    });
    for (const ref of refs) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
}

function Shell() {
  const { path } = place.value;
  const crown = useRef(null);
  const banners = useRef(null);
  useHeight(crown, banners);
  const here = (href) => (href === "#/" ? path === "/" || path.startsWith("/agents") || path.startsWith("/runs") : path.startsWith(href.slice(1)));
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>Skip to the page</a>
    <div class="crown" ref=${crown}>
      <header class="top">
        <a class="brand" href="#/" aria-label="wakeful: the fleet"><img src="/dashboard/mark.svg" alt="" width="22" height="22" /> <span>wakeful</span></a>
        <nav aria-label="pages">${TABS.map(([href, word]) => html`<a key=${href} href=${href} aria-current=${here(href) ? "page" : undefined}>${word}</a>`)}</nav>
        <span class="edge"><${Connection} /><button type="button" class="quiet" title="keys (?)" aria-label="help: keys" onClick=${askForHelp}>?</button><${Theme} /><${PauseFleet} /></span>
      </header>
      <div class="banners" ref=${banners}><${Stale} /><${FleetPaused} /></div>
    </div>
    <${OthersPaused} /><${Troubles} />
    <main id="main" tabindex="-1"><${Summary} /><${Page} /></main>
    <${PauseDialog} /><${Keys} /><${Notes} />`;
}

// ---- who may

function Door() {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const enter = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      if (await isRight(text.trim())) setToken(text.trim());
      else refused.value = true;
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  return html`<main class="door"><h1><img src="/dashboard/mark.svg" alt="" width="32" height="32" /> wakeful</h1>
    <form onSubmit=${enter}>
      <label>The operator's token <input type="password" autocomplete="off" autofocus value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <p class="dim"><code>wakeful token</code> prints it, in the folder of the fleet. It is kept for this tab only.</p>
      ${refused.value && !problem && html`<div class="fault" role="alert"><strong>That token was not accepted.</strong> It may have been changed: ask for it again.</div>`}
      <${Fault} problem=${problem} />
      <button class="main" disabled=${busy || !text.trim()}>${busy ? "asking…" : "Enter"}</button>
    </form></main>`;
}

const App = () => (token.value ? html`<${Shell} />` : html`<${Door} />`);

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
begin();
