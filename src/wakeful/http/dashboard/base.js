// The few words that every module speaks: elements as tagged templates, signals, hooks.
//
// Law: what comes from a fleet reaches the page as text nodes and attributes only; nothing here makes markup of a string.

import { Component, h, render, Fragment } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render, Fragment };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "./vendor/hooks.js";
export { signal, computed, effect, batch, untracked, useSignal, useComputed } from "./vendor/signals.js";

// An element is used once and never kept: it would hold the whole page in which it first stood, and through its rows every
// one after that. So htm is told that none is the same each time (`this[0]`), or it would keep those that are.
export const html = htm.bind(function made(...given) {
  this[0] = 3;
  return h(...given);
});

// What is drawn of the same values is not drawn again.
export function steady(Drawn) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return Object.keys({ ...this.props, ...next }).some((name) => this.props[name] !== next[name]);
    }
    render(given) {
      return h(Drawn, given);
    }
  };
}
