// How the page asks: the token, one request, and a stream that can be resumed.
//
// Laws:
// - The token comes in the fragment of the address, which no server is told, is taken out of it at once, and is kept for
//   this tab only. It is sent in a header and never in an address.
// - Every error is a Problem in the words of the server: what was found, and what to do. Whoever is not answered for long
//   is told so: a request that never ends would keep its page from ever asking again.

import { signal } from "./base.js";

const KEPT = "wakeful.token";

export const token = signal(take() || sessionStorage.getItem(KEPT) || "");
export const refused = signal(false);
// How far the server's clock is ahead of this one, in milliseconds; small differences are the network's.
export const ahead = signal(0);

function take() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", location.pathname + "#/");
  try {
    sessionStorage.setItem(KEPT, decodeURIComponent(found[1]));
  } catch {
    return "";
  }
  return sessionStorage.getItem(KEPT);
}

// An address with another token, typed where this page is open, loads nothing anew.
window.addEventListener("hashchange", () => {
  const text = take();
  if (text) setToken(text);
});

export function setToken(text) {
  sessionStorage.setItem(KEPT, text);
  refused.value = false;
  token.value = text;
}

// What we have is no longer good.
function dropToken() {
  sessionStorage.removeItem(KEPT);
  refused.value = true;
  token.value = "";
}

export class Problem extends Error {
  constructor(status, detail, remedy = "", told = {}) {
    super(detail);
    this.status = status;
    this.remedy = remedy;
    this.told = told;
  }
}

export const AWAY = 0;
// Longer than any answer takes: a pause that ends what runs waits for that.
const LONGEST = 60_000;

function headers(more) {
  return { authorization: `Bearer ${token.value}`, ...more };
}

function target(path, query = {}) {
  const said = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(said.map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : value]));
  return said.length ? `${path}?${text}` : path;
}

async function problem(answer, sent) {
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401 && sent === token.value) dropToken();
  return new Problem(answer.status, told.detail || told.title || `the server answered ${answer.status}`, told.remedy, told);
}

// Whether the server knows this token; a Problem where it cannot be asked.
export async function isRight(text) {
  if (!/^[\x21-\x7e]+$/.test(text)) return false;
  const answer = await send("/v1/events?limit=1", { headers: { authorization: `Bearer ${text}` } });
  if (!answer.ok && answer.status !== 401) throw await problem(answer, text);
  await answer.text();
  return answer.ok;
}

async function send(path, options) {
  try {
    return await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(AWAY, "the engine does not answer", "wakeful up starts one");
  }
}

// The server tells whole seconds: what differs by less is the same, so that no duration runs to and fro.
function compare(date) {
  const found = date + 500 - Date.now();
  if (Math.abs(found - ahead.peek()) > 1500) ahead.value = Math.abs(found) > 3000 ? found : 0;
}

// The answer of one request; `answered` is given the response too, for its headers.
export async function ask(method, path, { query, body, headers: more = {}, signal: cut, answered } = {}) {
  const content = body === undefined ? {} : { "content-type": "application/json" };
  const sent = token.value;
  const late = AbortSignal.timeout(LONGEST);
  const answer = await send(target(path, query), {
    method,
    headers: headers({ ...content, ...more }),
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: cut && AbortSignal.any ? AbortSignal.any([cut, late]) : cut || late,
  });
  compare(Date.parse(answer.headers.get("date") || ""));
  if (!answer.ok) throw await problem(answer, sent);
  if (answered) answered(answer);
  return answer.status === 204 ? null : answer.json();
}

export const get = (path, query, more) => ask("GET", path, { query, ...more });
// Each creating call has a key of its own, so that one that is tried again is not done twice.
export const post = (path, body = {}, more) => ask("POST", path, { body, ...more });

export function key() {
  return crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-");
}

// Server-sent events, one at a time, as {event, id, data}; the bearer's header is why this is no EventSource.
// `comment` is called for every sign of life.
export async function* events(path, { query, last, signal: cut, alive = () => {} } = {}) {
  const more = last ? { "last-event-id": String(last) } : {};
  const sent = token.value;
  const answer = await send(target(path, query), { headers: headers({ accept: "text/event-stream", ...more }), signal: cut });
  if (!answer.ok) throw await problem(answer, sent);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      kept += value;
      const blocks = kept.split("\n\n");
      kept = blocks.pop();
      for (const block of blocks) {
        const found = parse(block);
        if (found) yield found;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(block) {
  const found = { event: "message", id: null, data: null };
  const data = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*): ?(.*)$/.exec(line) || [];
    if (name === "event") found.event = value;
    else if (name === "id") found.id = value;
    else if (name === "data") data.push(value);
  }
  if (!data.length && found.id === null) return null;
  found.data = data.length ? JSON.parse(data.join("\n")) : null;
  return found;
}
