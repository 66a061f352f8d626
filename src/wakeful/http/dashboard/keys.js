// The keyboard: a key alone does something as long as nobody is typing; `?` says which. They can be switched off.

import { html, signal, useEffect } from "./base.js";
import { Dialog } from "./parts.js";
import { askToPause } from "./pause.js";
import { go } from "./place.js";

const KEPT = "wakeful.keys";
const on = signal(localStorage.getItem(KEPT) !== "off");
const open = signal(false);
export const askForHelp = () => (open.value = true);

const GOES = { f: ["#/", "fleet"], t: ["#/timeline", "timeline"], k: ["#/tasks", "tasks"], l: ["#/dead", "dead letters"], d: ["#/decisions", "decisions"] };
const WORDS = [
  ["?", "this help"],
  ["/", "search"],
  ...Object.entries(GOES).map(([letter, [, word]]) => [`g ${letter}`, `go to ${word}`]),
  ["p", "pause the fleet (asks first)"],
  ["↑ ↓", "in the fleet: the row above, the row below"],
  ["Esc", "close what is open"],
];
// So long after `g` another letter belongs to it.
const BELONGS = 1500;
let went = 0;

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.target.closest && event.target.closest("input, textarea, select, [contenteditable]")) return;
  const { key } = event;
  if (!on.value && key !== "?") return;
  const goes = Date.now() - went < BELONGS && GOES[key];
  went = key === "g" ? Date.now() : 0;
  if (goes) go(goes[0]);
  else if (key === "?") open.value = true;
  else if (key === "p") askToPause("");
  else if (key === "/") {
    const field = document.querySelector('main input[type="search"]');
    if (!field) return;
    field.focus();
    field.select();
  } else return;
  event.preventDefault();
}

export function Keys() {
  useEffect(() => {
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  if (!open.value) return null;
  const choose = (event) => {
    on.value = event.target.checked;
    localStorage.setItem(KEPT, on.value ? "on" : "off");
  };
  return html`<${Dialog} title="Keys" close=${() => (open.value = false)}>
    <dl class="facts keys">${WORDS.map(([keys, word]) => html`<dt key=${keys}>${keys.split(" ").map((each) => html`<kbd>${each}</kbd> `)}</dt><dd>${word}</dd>`)}</dl>
    <footer><label class="choice grow"><input type="checkbox" checked=${on.value} onChange=${choose} /> single keys do something</label><button type="button" class="main" autofocus onClick=${() => (open.value = false)}>Close</button></footer>
  </${Dialog}>`;
}
