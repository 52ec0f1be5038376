// A text in colours: every token can be reached with the arrow keys, and chosen.

import { paint } from "./colours.js";
import { el, put, shown } from "./dom.js";

/**
 * Make a place for coloured tokens. `show([{text, strength, label}])` draws them; `choose(place)` is called for
 * the one that is clicked, or reached with Enter. Joined, their texts are the text.
 */
export function coloured({ label, choose }) {
  const box = el("div", { class: "coloured", dir: "auto", role: "listbox", "aria-label": label, tabindex: "0", "aria-orientation": "horizontal", onkeydown: pressed, onclick: clicked });
  let spans = [];
  let at = -1;

  function show(tokens, chosen = -1) {
    const pieces = [];
    spans = tokens.map(({ text, strength, label: name }, place) => {
      const letters = text.trimStart();
      const gap = text.slice(0, text.length - letters.length);
      const isBlank = letters === "";
      if (!isBlank && gap) pieces.push(gap); // the space before a word is not coloured
      const span = el("span", { class: isBlank ? "token blank" : "token", role: "option", id: `token-${place}`, "aria-selected": "false", "aria-label": name, title: name, "data-place": place },
        isBlank ? blank(text) : shown(letters));
      paint(span, strength);
      pieces.push(span);
      if (isBlank && text.includes("\n")) pieces.push("\n");
      return span;
    });
    put(box, pieces);
    at = -1;
    if (chosen >= 0 && chosen < spans.length) mark(chosen);
  }

  function mark(place) {
    spans[at]?.setAttribute("aria-selected", "false");
    at = place;
    const span = spans[at];
    if (!span) {
      box.removeAttribute("aria-activedescendant");
      return;
    }
    span.setAttribute("aria-selected", "true");
    box.setAttribute("aria-activedescendant", span.id);
    span.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function clicked(event) {
    const span = event.target.closest("[data-place]");
    if (!span) return;
    mark(Number(span.dataset.place));
    choose(at);
  }

  function pressed(event) {
    const isLeft = getComputedStyle(box).direction === "rtl";
    const steps = { ArrowRight: isLeft ? -1 : 1, ArrowLeft: isLeft ? 1 : -1, ArrowDown: 1, ArrowUp: -1 };
    const ends = { Home: 0, End: spans.length - 1 };
    const place = event.key in ends ? ends[event.key] : event.key in steps ? at + steps[event.key] : null;
    if (place === null || !spans.length) return;
    event.preventDefault();
    mark(Math.max(0, Math.min(spans.length - 1, place)));
    choose(at);
  }

  return { box, show, mark };
}

function blank(text) {
  return text === "" ? "∎" : text.replace(/\r/g, "").replace(/\n/g, "⏎").replace(/\t/g, "→");
}
