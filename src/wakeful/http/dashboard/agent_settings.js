// The limits of an agent: each with its value and where that comes from, changed while it lives.
//
// Laws:
// - What is saved is saved on top of what was seen, or not at all: the version goes along. If somebody else was faster, what they did
//   and what was typed are shown side by side, and whoever is here chooses.
// - What was typed stays typed: through news, through a mistake, through a look at another tab.
// - Whether a value is a value, the server says, in its own words.

import { html, useEffect, useRef, useState } from "./base.js";
import { ask, get } from "./api.js";
import { status, touch } from "./live.js";
import { Fault, note } from "./parts.js";
import { counted } from "./words.js";
import { path, useNews } from "./agent_parts.js";
import { grouped, wordOf } from "./agent_limits.js";

// Of each agent what was typed, and the settings that were seen then.
const kept = new Map();
const NOTHING = { typed: {}, seen: null };

export function Settings({ name }) {
  const [known, setKnown] = useState(null);
  const [{ typed, seen }, setDraft] = useState(kept.get(name) || NOTHING);
  const [problem, setProblem] = useState(null);
  const [late, setLate] = useState(false);
  const [busy, setBusy] = useState(false);
  const draft = (typed, seen) => {
    const next = { typed, seen: Object.keys(typed).length ? seen : null };
    kept.set(name, next);
    setDraft(next);
  };
  const learn = (settings) => setKnown((before) => (before && before.version === settings.version ? before : settings));
  const [lost, setLost] = useState(null);
  const load = () => get(path(name, "settings")).then((settings) => (setLost(null), learn(settings)), setLost);
  useEffect(() => void load(), [name]);
  useNews({ name, kinds: ["set", "declared", "removed"] }, load);

  const base = seen || known;
  const changed = known && seen ? differing(seen, known) : [];
  const contested = changed.filter((each) => each in typed);
  // What somebody else changed and nobody here typed at takes nothing from anybody.
  useEffect(() => {
    if (seen && known && seen.version !== known.version && contested.length === 0) draft(typed, known);
  });

  if (!known) return lost ? html`<${Fault} problem=${lost} again=${load} />` : html`<p class="loading">…</p>`;

  const type = (setting, text) => {
    const same = text === (known.settings[setting].value ?? "");
    const { [setting]: _, ...others } = typed;
    setProblem((before) => (before && before.setting === setting ? null : before));
    draft(same ? others : { ...others, [setting]: text }, seen || known);
  };
  const save = async (settings, version) => {
    setBusy(true);
    setProblem(null);
    try {
      const answer = await ask("PATCH", path(name, "settings"), { body: { settings }, headers: { "if-match": `"${version}"` } });
      setKnown(answer);
      // What was typed while it was saved is not saved.
      const latest = (kept.get(name) || NOTHING).typed;
      const left = Object.fromEntries(Object.entries(latest).filter(([each, text]) => !(each in settings) || text !== typed[each]));
      draft(left, answer);
      setLate(false);
      note(`saved: ${Object.keys(settings).map((each) => `${wordOf(each)} ${answer.settings[each].value ?? "no limit"}`).join(", ")}. It holds from now on.`);
      touch(name);
    } catch (error) {
      if (error.status === 412) {
        setLate(true);
        await load();
      } else setProblem(placed(error, settings));
    }
    setBusy(false);
  };
  const submit = (event) => {
    event.preventDefault();
    if (!busy && count && !contested.length) save(Object.fromEntries(Object.entries(typed).map(([each, text]) => [each, text.trim() || null])), base.version);
  };
  // One that was chosen about is seen as it is now; after the last one all is.
  const chosen = (typed, setting) => {
    if (contested.length === 1) setLate(false);
    draft(typed, contested.length > 1 ? { ...seen, settings: { ...seen.settings, [setting]: known.settings[setting] } } : known);
  };
  const keep = (setting) => chosen(typed, setting);
  const take = (setting) => {
    const { [setting]: _, ...others } = typed;
    chosen(others, setting);
  };
  const count = Object.keys(typed).length;
  return html`<form class="agent-settings" onSubmit=${submit} aria-label=${`limits of ${name}`} novalidate>
    <p class="dim">Changes hold at once, without a restart, and stay until they are taken back. The nearest wins: default, fleet, agent, override.</p>
    ${(late || contested.length > 0) && html`<${Conflict} name=${name} seen=${seen} known=${known} typed=${typed} contested=${contested} late=${late} take=${take} keep=${keep} dismiss=${() => setLate(false)} />`}
    <div class="agent-groups">${grouped(known.settings).map(([title, limits]) => html`<fieldset key=${title} class="sheet"><legend>${title}</legend>
      ${limits.map(([setting, word, does, slider]) => html`<${Limit} key=${setting} setting=${setting} word=${word} does=${does} slider=${slider} told=${known.settings[setting]} typed=${typed[setting]} type=${type} problem=${problem && problem.setting === setting ? problem : null} reset=${() => save({ [setting]: null }, known.version)} busy=${busy || contested.length > 0} />`)}
      ${title === "Time" && html`<${Places} />`}</fieldset>`)}</div>
    <${Fault} problem=${problem && !problem.setting ? problem : null} />
    <div class=${`agent-save${count ? " is-there" : ""}`}>
      <button class="main" disabled=${!count || busy || contested.length > 0}>${busy ? "saving…" : count ? `Save ${counted(count, "change")}` : "Nothing is changed"}</button>
      ${count > 0 && html`<button type="button" onClick=${() => (setProblem(null), setLate(false), draft({}, null))}>Discard</button>`}
      ${contested.length > 0 && html`<span>first choose above</span>`}
    </div>
  </form>`;
}

// A mistake stands beside the limit that it is about.
function placed(error, settings) {
  const setting = (/^(\w+): /.exec(error.message) || [])[1];
  if (setting in settings) error.setting = setting;
  return error;
}

const differing = (one, other) => Object.keys(other.settings).filter((each) => one.settings[each]?.value !== other.settings[each].value || one.settings[each]?.origin !== other.settings[each].origin);

// ---- one limit

function Limit({ setting, word, does, slider, told, typed, type, problem, reset, busy }) {
  const ref = useRef(null);
  const text = typed ?? told.value ?? "";
  const dirty = typed !== undefined;
  useEffect(() => void (problem && ref.current.focus()), [problem]);
  const at = slider ? slider.read(text) : null;
  const last = useRef(slider ? slider.from : 0);
  if (at !== null) last.current = at;
  const id = `limit-${setting}`;
  return html`<div class=${`agent-limit${dirty ? " is-typed" : ""}${told.origin === "override" ? " is-override" : ""}`}>
    <div class="agent-limit-words"><label for=${id}>${word}</label><span class="dim" id=${`${id}-does`}>${does}</span></div>
    <div class="agent-limit-value">
      <input ref=${ref} id=${id} name=${setting} autocomplete="off" spellcheck=${false} value=${text} placeholder="no limit" aria-describedby=${`${id}-does ${id}-origin${problem ? ` ${id}-problem` : ""}`} aria-invalid=${problem ? "true" : undefined} onInput=${(event) => type(setting, event.target.value)} />
      ${slider && html`<input type="range" aria-label=${`${word}, slider`} min=${slider.from} max=${slider.to} step=${slider.step} value=${last.current} aria-valuetext=${text} onInput=${(event) => type(setting, slider.write(Number(event.target.value)))} />`}
    </div>
    <div class="agent-limit-origin" id=${`${id}-origin`}>
      <${Origin} told=${told} />${dirty && html` <span class="agent-typed">not saved</span>`}
      ${told.origin === "override" && html` <button type="button" class="quiet" aria-label=${`Reset ${word} to ${shown(told.replaces)}`} disabled=${busy} onClick=${reset}>reset</button>`}
    </div>
    ${problem && html`<div class="agent-limit-problem" id=${`${id}-problem`}><${Fault} problem=${problem} /></div>`}
  </div>`;
}

const shown = (told) => (told ? told.value ?? "no limit" : "what is declared");
const WHENCE = { default: "default", fleet: "fleet file, for all", agent: "fleet file, for it", override: "changed here" };

function Origin({ told }) {
  return html`<span class=${`agent-origin is-${told.origin}`}>${told.origin}</span><span class="dim"> ${told.origin === "override" && told.replaces ? `instead of ${shown(told.replaces)} (${told.replaces.origin})` : told.origin === "default" ? "" : WHENCE[told.origin]}</span>`;
}

// How many may run at a time is the fleet's own, and read from its file.
function Places() {
  const { sessions, workers } = status.value ? status.value.fleet : {};
  if (!sessions) return null;
  return html`<p class="dim agent-places">At a time: ${sessions.of} sessions (${sessions.taken} taken) and ${workers.of} workers (${workers.taken} taken) of the whole fleet. SESSIONS and WORKERS in the fleet file say how many; it is read again when it changes.</p>`;
}

// ---- somebody was faster

function Conflict({ name, seen, known, typed, contested, late, take, keep, dismiss }) {
  const ref = useRef(null);
  useEffect(() => void ref.current.scrollIntoView({ block: "nearest" }), []);
  const told = (settings, each) => settings && settings.settings[each] ? `${settings.settings[each].value ?? "no limit"} (${settings.settings[each].origin})` : "–";
  if (!contested.length) {
    return html`<div ref=${ref} class="fault" role="alert"><strong>Nothing was saved: the limits of ${name} were changed meanwhile.</strong> <span>What was changed is not what you typed, and is shown below as it is now. Save again if you still want yours.</span> <button type="button" class="quiet" onClick=${dismiss}>I see</button></div>`;
  }
  return html`<div ref=${ref} class="fault agent-conflict" role="alert">
    <strong>${late ? "Nothing was saved: somebody" : "Somebody"} else has changed ${counted(contested.length, "limit")} that you are changing.</strong>
    <div class="scroll-x"><table aria-label="changed meanwhile"><thead><tr><th scope="col">limit</th><th scope="col">you saw</th><th scope="col">it is now</th><th scope="col">you typed</th><th scope="col">what shall hold?</th></tr></thead>
      <tbody>${contested.map((each) => html`<tr key=${each}><th scope="row">${wordOf(each)}</th><td>${told(seen, each)}</td><td><strong>${told(known, each)}</strong></td><td><bdi>${typed[each] || "as declared"}</bdi></td>
        <td><button type="button" aria-label=${`Keep theirs: ${wordOf(each)} ${known.settings[each].value ?? "no limit"}`} onClick=${() => take(each)}>theirs</button> <button type="button" aria-label=${`Keep mine: ${wordOf(each)} ${typed[each] || "as declared"}`} onClick=${() => keep(each)}>mine, to be saved</button></td></tr>`)}</tbody></table></div></div>`;
}
