// Bars: words with their probabilities. Rows are kept and changed in place, so that the focus stays where it is.

import { el, put, shown } from "./dom.js";
import { percent } from "./numbers.js";

const END = "</s>";

/** Make a list of bars. `take(word)` is called for a bar that is clicked, `why(word)` for its question mark. */
export function bars({ take, why, label }) {
  const list = el("ol", { class: "bars", "aria-label": label });
  const rows = [];

  function row(place) {
    const word = el("bdi", { class: "word", dir: "auto" });
    const share = el("span", { class: "share" });
    const key = el("kbd", { "aria-hidden": "true" }, String(place + 1));
    const bar = el("button", { type: "button", class: "bar", onclick: (event) => take(made.text, event) }, key, word, " ", share);
    const reason = el("button", { type: "button", class: "why", title: "Why this word?", onclick: () => why(made.text) }, "?");
    const made = { item: el("li", {}, bar, reason), bar, word, share, reason, text: "" };
    return made;
  }

  /** Show words [{text, probability}]; `--most` above has what the longest bar stands for. `chosen`: whose reasons are open. */
  function show({ words, unit }, chosen) {
    while (rows.length < words.length) rows.push(row(rows.length));
    words.forEach(({ text, probability }, place) => {
      const each = rows[place];
      const name = text === END ? `end of the ${unit}` : visible(text);
      each.text = text;
      each.word.textContent = name;
      each.word.classList.toggle("end", text === END);
      each.share.textContent = percent(probability);
      each.bar.style.setProperty("--p", probability.toFixed(6));
      each.reason.setAttribute("aria-label", `Why ${name}?`);
      each.reason.setAttribute("aria-expanded", String(text === chosen));
    });
    const items = rows.slice(0, words.length).map((each) => each.item);
    if (items.length !== list.children.length) put(list, items);
  }

  return { list, show };
}

/** A token may begin with a space, end a line, or be nothing else; line ends and bare spaces are shown by their signs. */
export function visible(text) {
  const signed = text.replace(/\n/g, "⏎").replace(/\t/g, "→");
  if (text.trim() === "") return signed.replace(/ /g, "␣") || "∅";
  return shown(signed.replace(/^ +| +$/g, ""));
}
