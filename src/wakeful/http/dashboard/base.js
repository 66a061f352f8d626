// The few words that every module speaks: elements as tagged templates, signals, hooks.
//
// Law: what comes from a fleet reaches the page as text nodes and attributes only; nothing here makes markup of a string.

import { h, render, Fragment } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render, Fragment };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "./vendor/hooks.js";
export { signal, computed, effect, batch, untracked, useSignal, useComputed } from "./vendor/signals.js";
export const html = htm.bind(h);
