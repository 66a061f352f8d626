// Where you are: the fragment of the address, as a path and what is asked of it behind a question mark.
//
// Laws: what is looked for stands in the address and nowhere else, so that it survives a reload, can be sent to somebody,
// and comes back with the browser's own button; and with it how far down one was.

import { signal } from "./base.js";

export const place = signal(read());

function read() {
  const [path, query = ""] = (location.hash.slice(1) || "/").split("?");
  return { path: path.startsWith("/") ? path : "/", query: new URLSearchParams(query) };
}

window.addEventListener("hashchange", () => {
  const next = read();
  // Within the same page nothing is drawn anew, and nobody says that it has been.
  restoring = next.path !== place.peek().path;
  entry = known();
  place.value = next;
});

// Says in the address what is looked for, without a step in the history for every key that is pressed.
export function keep(query) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  history.replaceState(history.state, "", `#${place.peek().path}${text ? `?${text}` : ""}`);
  place.value = read();
}

export const go = (hash) => (location.hash = hash);

// ---- how far down

history.scrollRestoration = "manual";
const depths = new Map();
let entry = known();

// The entry of the history that we are at; one that was never seen is new, and begins at the top.
function known() {
  const number = history.state && history.state.entry;
  if (number) return number;
  const fresh = Date.now();
  history.replaceState({ entry: fresh }, "");
  return fresh;
}

let restoring = false;
window.addEventListener("scroll", () => restoring || depths.set(entry, window.scrollY), { passive: true });

// Called when what is at this place has been drawn.
export function settle() {
  restoring = true;
  window.scrollTo(0, depths.get(entry) || 0);
  requestAnimationFrame(() => (restoring = false));
}
