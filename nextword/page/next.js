// The screen "Next word": one text, and what every model expects after it, live as you type.

import { ask, sentence } from "./api.js";
import { bars } from "./bars.js";
import { thing } from "./colours.js";
import { el, put, say, words } from "./dom.js";
import { debounced, latest } from "./latest.js";
import { served } from "./models.js";
import { percent } from "./numbers.js";
import { joined, list } from "./url.js";
import { reasons } from "./why.js";

const TOP = 8;
const LETTERS = 20000; // that the server takes

/** Open the screen in an element; `remember` puts its state into the address. */
export function open(place, state, remember) {
  const cards = new Map();
  let hidden = new Set(list(state.hide));
  let why = state.why ? list(state.why) : null; // [model, word]
  let active = ""; // the model whose words the keys take

  const field = el("textarea", {
    id: "text", class: "text", rows: "2", dir: "auto", maxlength: String(LETTERS), spellcheck: "false",
    autocomplete: "off", autocapitalize: "off", placeholder: "Begin a sentence …", "aria-describedby": "keys",
    oninput: typed, onkeydown: pressed, ".value": state.text ?? "",
  });
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Models that are shown" });
  const grid = el("div", { class: "cards" });
  const problem = el("p", { class: "problem", role: "alert" });
  const panel = el("section", { class: "reasons", hidden: true });
  const arrow = el("kbd", {}, "→");
  place.append(
    el("h1", { class: "unseen" }, "Next word"),
    el("label", { class: "unseen", for: "text" }, "Text"),
    field,
    el("p", { id: "keys", class: "soft keys" }, arrow, " at the end takes the first word of the marked model, ",
      el("kbd", {}, "Alt"), " ", el("kbd", {}, "1"), "…", el("kbd", {}, "8"), " the others; or click one. ",
      el("kbd", {}, "?"), " says why."),
    chips, problem, grid, panel);

  const models = served(arrived, (error) => { problem.textContent = sentence(error); });
  const askAll = () => cards.forEach((card) => !hidden.has(card.name) && card.ask(field.value));
  grow();
  field.focus({ preventScroll: true });
  field.setSelectionRange(field.value.length, field.value.length);

  function arrived(found, training) {
    problem.textContent = found.length || training.length ? "" : "No language model is served yet.";
    const names = new Set(found.map((model) => model.id));
    for (const [name, card] of cards) {
      if (!names.has(name)) {
        card.element.remove();
        cards.delete(name);
      }
    }
    found.forEach((model, at) => {
      if (!cards.has(model.id)) cards.set(model.id, makeCard(model, at));
      cards.get(model.id).describe(model);
    });
    put(chips, [...cards.values()].map(chip), training.map((name) =>
      el("span", { class: "chip waiting", role: "status" }, words(name), " is being trained …")));
    chips.hidden = cards.size < 2 && !training.length;
    put(grid, [...cards.values()].map((card) => card.element));
    arrange();
    askAll();
  }

  function chip(card) {
    return el("button", {
      type: "button", class: `chip ${card.colour}`, "aria-pressed": String(!hidden.has(card.name)),
      onclick: (event) => {
        if (hidden.has(card.name)) hidden.delete(card.name);
        else hidden.add(card.name);
        event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(card.name)));
        arrange();
        keep();
        if (!hidden.has(card.name)) card.ask(field.value);
      },
    }, words(card.name));
  }

  /** Show the cards that are not hidden, and mark the one whose words the keys take. */
  function arrange() {
    const visible = [...cards.keys()].filter((name) => !hidden.has(name));
    if (!visible.includes(active)) active = visible[0] ?? "";
    cards.forEach((card) => {
      card.element.hidden = hidden.has(card.name);
      card.element.classList.toggle("active", card.name === active && visible.length > 1);
    });
    scale();
  }

  /** Put all bars on one scale, so that models can be compared. */
  function scale() {
    const shown = [...cards.values()].filter((card) => !hidden.has(card.name) && card.answer);
    const most = Math.max(0, ...shown.flatMap((card) => card.answer.words.map((word) => word.probability)));
    grid.style.setProperty("--most", String(most || 1));
  }

  function makeCard(model, at) {
    const colour = thing(at);
    const about = el("p", { class: "about soft" });
    const rest = el("p", { class: "rest soft late" }, "computing …"); // seen only where it takes a while
    const trouble = el("p", { class: "problem" });
    const shownBars = bars({
      label: `Next words of ${model.id}`,
      take: (word, event) => { activate(card); take(card, word, event); },
      why: (word) => { activate(card); toggle(card, word); },
    });
    const element = el("article", { class: `card ${colour}`, "aria-label": model.id, onfocusin: () => activate(card) },
      el("h2", {}, words(model.id)), about, shownBars.list, rest, trouble);
    const question = latest(
      (text) => ask("/api/next", { model: model.id, text, top: TOP }),
      (answer, text) => {
        Object.assign(card, { answer, text });
        trouble.textContent = "";
        element.classList.remove("stale");
        card.draw();
        scale();
        rest.classList.remove("late");
        put(rest, remainder(answer));
        if (why?.[0] === card.name && panel.hidden) explain(card, why[1]);
        if (card.name === active) announce(card);
      },
      (error) => {
        element.classList.add("stale");
        if (!card.answer) put(rest);
        trouble.textContent = sentence(error);
      });
    const card = {
      name: model.id, colour, element, answer: null, text: null, ask: question,
      describe: (newer) => { about.textContent = newer.about.replace("n-gram", "n\u2011gram"); },
      draw: () => card.answer && shownBars.show(card.answer, why?.[0] === card.name ? why[1] : null),
    };
    return card;
  }

  function activate(card) {
    if (active === card.name) return;
    active = card.name;
    arrange();
  }

  function remainder(answer) {
    if (!answer.words.length) return ["No word that it knows begins like this."];
    const parts = [`${answer.asks === "token" ? "other tokens" : "other words"} ${percent(answer.others)}`];
    if (answer.unknown > 0.00005) parts.push(`unknown words ${percent(answer.unknown)}`);
    return [parts.join(" · "), ...answer.notes.map((note) => el("span", { class: "note" }, note))];
  }

  const announce = debounced(700, (card) => {
    const first = card.answer.words.slice(0, 3).map((word) => `${word.text} ${percent(word.probability)}`);
    say(`${card.name}: ${first.join(", ")}`);
  });

  // -- typing and taking

  function typed() {
    askAll(); // first: the models work while the page is drawn
    closeWhy();
    grow();
    keep();
  }

  function pressed(event) {
    const isAtEnd = field.selectionStart === field.value.length && field.selectionEnd === field.value.length;
    const forward = isFromRight() ? "ArrowLeft" : "ArrowRight";
    const isPlain = !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.isComposing;
    const card = cards.get(active);
    if (!card?.answer) return;
    const number = /^Digit([1-8])$/.exec(event.code);
    const at = event.altKey && number ? Number(number[1]) - 1 : event.key === forward && !event.altKey && isAtEnd ? 0 : -1;
    if (at < 0 || !isPlain || card.text !== field.value || !card.answer.words[at]) return;
    event.preventDefault();
    take(card, card.answer.words[at].text, null);
  }

  /** Put a word behind the text: it completes what is typed, or begins after a space. */
  function take(card, word, event) {
    if (card.text !== field.value) return; // the bars are of an older text
    field.value = taken(field.value, word, card.answer);
    say(`${word} taken`);
    typed();
    const isMouse = event?.detail > 0 && matchMedia("(pointer: fine)").matches;
    if (isMouse) field.focus({ preventScroll: true });
    field.setSelectionRange(field.value.length, field.value.length);
  }

  // -- reasons

  function toggle(card, word) {
    const isOpen = why && why[0] === card.name && why[1] === word;
    closeWhy();
    if (!isOpen) {
      why = [card.name, word];
      explain(card, word);
      card.draw();
    }
    keep();
  }

  function closeWhy() {
    if (!why) return;
    panel.hidden = true;
    put(panel);
    const card = cards.get(why[0]);
    why = null;
    card?.draw();
  }

  async function explain(card, word) {
    const name = word === "</s>" ? `the end of the ${card.answer.unit}` : word;
    const close = el("button", { type: "button", class: "plain close", "aria-label": "Close", onclick: () => toggle(card, word) }, "×");
    const title = el("div", { class: "title" },
      el("h2", {}, "Why does ", words(card.name, { class: "name" }), " expect ", el("q", {}, words(name)), "?"), close);
    panel.className = `reasons ${card.colour}`;
    panel.setAttribute("aria-label", `Why ${name}`);
    panel.hidden = false;
    put(panel, title, el("p", { class: "soft" }, "Looking …"));
    const isWanted = () => why && why[0] === card.name && why[1] === word;
    try {
      const found = await ask("/api/why", { model: card.name, text: field.value, word });
      if (!isWanted()) return;
      put(panel, title, el("div", { class: "columns" }, reasons(found)));
      panel.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      say(`Reasons for ${name} are shown below`);
    } catch (error) {
      if (isWanted()) put(panel, title, el("p", { class: "problem" }, sentence(error)));
    }
  }

  // -- the rest

  function keep() {
    remember({ text: field.value, hide: joined([...hidden]), why: why ? joined(why) : "" });
  }

  function grow() {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + 2}px`;
    arrow.textContent = isFromRight() ? "←" : "→";
  }

  function isFromRight() {
    return getComputedStyle(field).direction === "rtl";
  }

  function update(changed) {
    hidden = new Set(list(changed.hide));
    if ((changed.text ?? "") !== field.value) field.value = changed.text ?? "";
    grow();
    closeWhy();
    why = changed.why ? list(changed.why) : null;
    put(chips, [...cards.values()].map(chip));
    arrange();
    askAll();
  }

  return { leave: () => models.stop(), update, again: () => { models.look(); askAll(); } };
}

/** Return the text after a word was taken. */
export function taken(text, word, { asks, part }) {
  if (word === "</s>") return text.replace(/ +$/, "") + "\n";
  if (asks === "token") return text + word;
  if (part && text.endsWith(part)) return `${text.slice(0, text.length - part.length)}${word} `;
  return `${text}${text === "" || /\s$/.test(text) ? "" : " "}${word} `;
}
