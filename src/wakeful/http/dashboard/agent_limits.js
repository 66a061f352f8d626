// The limits of an agent in plain words, by what they are for; and where a slider leads from and to.

// [name, what it is called, what it does, slider]; a slider is {from, to, step, read(exact), write(number)}.
const seconds = (text) => {
  const parts = [...text.matchAll(/(\d+)([dhms])/g)];
  if (!parts.length || parts.map((part) => part[0]).join("") !== text.trim().toLowerCase()) return null;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * { d: 86400, h: 3600, m: 60, s: 1 }[unit], 0);
};
const written = (number) => {
  const parts = [[Math.floor(number / 3600), "h"], [Math.floor((number % 3600) / 60), "m"], [number % 60, "s"]];
  return parts.filter(([amount]) => amount).map(([amount, unit]) => `${amount}${unit}`).join("") || "0s";
};
const whole = (text) => (/^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : null);
const numbers = (from, to, step) => ({ from, to, step, read: whole, write: String });

export const GROUPS = [
  ["Being woken by other agents", [
    ["cooldown", "Cooldown", "the least time between two wakes by others", { from: 0, to: 3600, step: 30, read: seconds, write: written }],
    ["max_wakes_per_day", "Wakes a day", "how often others may wake it in a day", numbers(0, 100, 1)],
    ["max_wakes_per_pair", "Wakes a pair", "how often it and one other may wake each other in a day", numbers(0, 50, 1)],
    ["max_wakes_per_run", "Wakes a run", "how often one of its own runs may wake others"],
    ["max_chain", "Chain", "how many wakes away from its root a wake may be"],
  ]],
  ["Time", [
    ["max_minutes_per_day", "Minutes a day", "how long its runs may take together in a day", numbers(10, 1440, 10)],
    ["quiet_hours", "Quiet hours", "when nothing begins by itself: 22:00-06:00, Sat,Sun 00:00-24:00, or none"],
    ["burst", "Burst", "how many starts in how short a time are too many: 20/10m"],
    ["burst_pause", "Pause after a burst", "how long it is then held"],
  ]],
  ["Money", [
    ["budget_usd", "Dollars a day", "what its runs may cost in a day"],
    ["budget_tokens", "Tokens a day", "what its runs may use in a day"],
    ["run_usd", "Dollars a run", "what one run may cost before it is ended"],
    ["run_tokens", "Tokens a run", "what one run may use before it is ended"],
    ["reserve", "Reserve", "what is set aside for a run before it begins: 0.50, or 20000 tokens"],
  ]],
  ["When it fails", [
    ["max_failures", "Failures", "after how many in a row it is quarantined"],
    ["max_retries", "Retries of a task", "how often a task is tried again"],
    ["retry_base", "First wait", "how long the first try again waits; each one waits longer"],
    ["retry_jitter", "Jitter", "by what share of the wait it may vary: 0.1, or 10%"],
  ]],
];

const KNOWN = new Map(GROUPS.flatMap(([, limits]) => limits.map((limit) => [limit[0], limit])));
export const wordOf = (name) => (KNOWN.has(name) ? KNOWN.get(name)[1] : name.replaceAll("_", " "));

// Whatever the server knows that is not named above is there too, at the end.
export function grouped(settings) {
  const others = Object.keys(settings).filter((name) => !KNOWN.has(name)).map((name) => [name, wordOf(name), ""]);
  const told = GROUPS.map(([title, limits]) => [title, limits.filter(([name]) => name in settings)]);
  return [...told, ["Others", others]].filter(([, limits]) => limits.length > 0);
}
