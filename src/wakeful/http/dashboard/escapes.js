// What a program printed, as plain text: escapes of terminals taken out, turned directions made visible.
//
// Laws:
// - What is left is lines of characters: no colour, no title, no cursor, no direction that turns what stands beside it.
// - A piece may end within an escape: what may go on is kept for the next piece, but never much of it.

// Sequences with parameters, strings up to their end, and the short ones; each also in its form of one byte.
// Where another one begins, a string is over: else a text of nothing but beginnings would be read to its end for each.
const ESCAPES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]/g;
const UNFINISHED = /(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*\x1b?|\x1b[ -/]*|\r)$/;
const LONGEST = 4096;
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

export function cleaned(text) {
  return text
    .replace(ESCAPES, "")
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, "")
    .replace(TURNS, (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase()}⟩`);
}

// One that is given a stream piece by piece.
export function cleaner() {
  let kept = "";
  return (piece, last = false) => {
    let text = kept + piece;
    const open = last ? null : UNFINISHED.exec(text.slice(-LONGEST));
    kept = open ? open[0] : "";
    if (kept) text = text.slice(0, -kept.length);
    return cleaned(text);
  };
}
