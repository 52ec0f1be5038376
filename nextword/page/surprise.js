// The screen "Surprise": a text coloured by -log p, by one model, by another, or by their difference.

import { ask, sentence } from "./api.js";
import { visible } from "./bars.js";
import { coloured } from "./coloured.js";
import { difference, heat, MOST_BITS, MOST_DIFFERENCE } from "./colours.js";
import { choice, choose, el, put, say, words } from "./dom.js";
import { debounced, latest } from "./latest.js";
import { lines } from "./lines.js";
import { served } from "./models.js";
import { bits, count, percent, short } from "./numbers.js";

const WAIT = 150; // milliseconds after a key
const LETTERS = 20000;

/** Open the screen in an element; `remember` puts its state into the address. */
export function open(place, state, remember) {
  const sides = { a: null, b: null }; // the newest answers
  let view = state.view ?? "";
  let at = Number(state.at ?? -1); // the token that is chosen
  let wantedNames = { a: state.a ?? "", b: state.b ?? "" };
  let note = ""; // what stays to be said after an answer

  const field = el("textarea", {
    id: "text", class: "text", rows: "4", dir: "auto", maxlength: String(LETTERS), spellcheck: "false",
    placeholder: "Write or paste a text …", oninput: typed, ".value": state.text ?? "",
  });
  const selects = { a: select("a", "Model A"), b: select("b", "Model B") };
  const views = choice("Colours", [["a", "A"], ["b", "B"], ["difference", "A − B"]], "a", (chosen) => {
    view = chosen;
    at = -1;
    draw();
    keep();
  });
  const problem = el("p", { class: "problem", role: "alert" });
  const hint = el("p", { class: "soft" }, "Every token gets the colour of its surprise, −log₂ p. Choose one to see what the model ",
    "expected instead; choose a second model to see where the two differ.");
  const totals = el("div", { class: "totals" });
  const legend = el("p", { class: "scale soft" });
  const panel = el("aside", { class: "reasons", "aria-label": "The chosen token", hidden: true });
  const text = coloured({ label: "The text, token by token", choose: chosen });
  const result = el("div", { hidden: true }, totals, legend, el("div", { class: "beside" }, text.box, panel));
  place.append(
    el("h1", { class: "unseen" }, "Surprise"),
    el("label", { class: "unseen", for: "text" }, "Text"),
    field,
    el("div", { class: "tools" },
      el("label", {}, "Model A ", selects.a), el("label", {}, "Model B ", selects.b), views),
    problem, hint, result, lines(() => names()));

  const ask2 = { a: question("a"), b: question("b") };
  const askBoth = debounced(WAIT, () => { refresh("a"); refresh("b"); });
  const models = served(arrived, (error) => { problem.textContent = sentence(error); });
  grow();
  if (!field.value) field.focus({ preventScroll: true });

  function select(side, label) {
    return el("select", { "aria-label": label, onchange: () => {
      wantedNames[side] = selects[side].value;
      note = "";
      sides[side] = null;
      if (side === "b") view = selects.b.value ? "difference" : "a";
      at = -1;
      refresh(side);
      draw();
      keep();
    } });
  }

  function arrived(found, training) {
    const known = found.map((model) => model.id);
    put(selects.a, known.map(option));
    put(selects.b, el("option", { value: "" }, "none"), known.map(option));
    selects.a.value = known.includes(wantedNames.a) ? wantedNames.a : known[0] ?? "";
    selects.b.value = known.includes(wantedNames.b) ? wantedNames.b : "";
    const lost = ["a", "b"].find((side) => wantedNames[side] && !known.includes(wantedNames[side]));
    const missing = training.length ? "The first model is being trained …" : "No language model is served yet.";
    note = !known.length ? missing : lost ? `This link names a model that is not served: ${wantedNames[lost]}.` : "";
    problem.textContent = note;
    refresh("a");
    refresh("b");
  }

  function option(name) {
    return el("option", { value: name }, name);
  }

  function names() {
    return [selects.a.value, selects.b.value].filter((name) => name);
  }

  function typed() {
    at = -1;
    panel.hidden = true;
    grow();
    keep();
    askBoth();
  }

  function question(side) {
    return latest(
      ({ model, text: asked }) => ask("/api/surprise", { model, text: asked }),
      (answer, asked) => {
        if (asked.model !== selects[side].value || asked.text !== field.value) return;
        sides[side] = answer;
        problem.textContent = note;
        draw();
      },
      (error) => {
        sides[side] = null;
        problem.textContent = sentence(error);
        draw();
      });
  }

  function refresh(side) {
    const model = selects[side].value;
    if (!model || !field.value) {
      sides[side] = null;
      draw();
      return;
    }
    ask2[side]({ model, text: field.value });
  }

  /** Return what is shown now: the difference needs both answers. */
  function shownView() {
    if (!selects.b.value) return "a";
    if (view === "b" || view === "a") return view;
    return "difference";
  }

  function draw() {
    const now = shownView();
    views.hidden = !selects.b.value;
    choose(views, now);
    const isReady = now === "difference" ? sides.a && sides.b : sides[now];
    result.hidden = !isReady;
    hint.hidden = field.value !== "";
    if (!isReady) return;
    put(totals, ["a", "b"].filter((side) => sides[side]).map((side) => total(side)));
    put(legend, scale(now));
    text.show(tokens(now), at);
    if (at >= 0) chosen(at);
    else panel.hidden = true;
  }

  function tokens(now) {
    if (now !== "difference") {
      return sides[now].tokens.map((token) => ({
        text: token.text, strength: heat(token.bits), label: `${name(token)}: ${bits(token.bits)} bits${token.known ? "" : ", unknown"}`,
      }));
    }
    const other = sides.b.words;
    return sides.a.words.map((word, n) => ({
      text: word.text, strength: difference(word.bits, other[n]?.bits ?? null),
      label: `${name(word)}: ${bits(word.bits)} bits by A, ${bits(other[n]?.bits)} by B`,
    }));
  }

  function name(token) {
    return token.text === "" ? "end of the text" : visible(token.text);
  }

  function total(side) {
    const found = sides[side];
    const facts = [
      [bits(found.bits_per_byte, 3), "bits per byte"],
      [found.perplexity === null ? "∞" : found.perplexity >= 1000 ? count(found.perplexity) : found.perplexity.toFixed(1), "perplexity"],
      [count(found.predictions), "tokens"],
      ...(found.unknown ? [[count(found.unknown), "unknown"]] : []),
    ];
    return el("div", { class: "total" },
      el("p", { class: "who" }, selects.b.value ? `${side.toUpperCase()}: ` : "", words(found.model)),
      el("dl", {}, facts.map(([value, what]) => el("div", {}, el("dt", {}, what), el("dd", {}, value)))));
  }

  function scale(now) {
    if (now !== "difference") {
      return ["0 ", el("span", { class: "ramp", "aria-hidden": "true" }), ` ${MOST_BITS} bits and more: the stronger, the more surprising`];
    }
    return [`A knows better by ${MOST_DIFFERENCE} bits `, el("span", { class: "ramp two", "aria-hidden": "true" }), " B does; word by word"];
  }

  // -- the chosen token

  async function chosen(number) {
    at = number;
    keep();
    panel.hidden = false;
    const now = shownView();
    if (now === "difference") {
      put(panel, twoSided(number));
      return;
    }
    const token = sides[now].tokens[number];
    if (!token) return;
    const model = selects[now].value;
    put(panel, heading(token), el("p", { class: "soft" }, "Looking …"));
    try {
      const found = await ask("/api/alternatives", { model, text: field.value, number: token.number, top: 8 });
      if (at !== number || shownView() !== now) return;
      put(panel, heading(token), alternatives(found, token));
      say(`${name(token)}: ${bits(token.bits)} bits, rank ${found.rank}`);
    } catch (error) {
      if (at === number) put(panel, heading(token), el("p", { class: "problem" }, sentence(error)));
    }
  }

  function heading(token) {
    const close = el("button", { type: "button", class: "plain close", "aria-label": "Close", onclick: () => {
      at = -1;
      text.mark(-1);
      panel.hidden = true;
      keep();
    } }, "×");
    return el("div", { class: "title" }, el("h2", {}, words(name(token))), close);
  }

  function alternatives(found, token) {
    const most = Math.max(found.probability, ...found.likely.map(([, p]) => p));
    const about = `${bits(token.bits)} bits: ${percent(2 ** -(token.bits ?? Infinity))}. `;
    const part = token.parts > 1 ? `It is ${token.parts} tokens together; these are alternatives of the first. ` : "";
    const rank = found.rank === 1 ? "It was the most likely." : `${count(found.rank - 1)} other${found.rank > 2 ? "s were" : " was"} more likely.`;
    return [
      el("p", {}, about, token.known ? "" : "The model does not know this word. ", part, rank),
      el("h3", {}, "What the model expected"),
      el("ol", { class: "bars still" }, found.likely.map(([word, p]) => {
        const bar = el("span", { class: "bar" }, el("bdi", { class: "word", dir: "auto" }, word === "</s>" ? "the end" : visible(word)), el("span", { class: "share" }, percent(p)));
        bar.style.setProperty("--share", (p / most).toFixed(4));
        return el("li", { class: word === found.text ? "itself" : null }, bar);
      })),
    ];
  }

  function twoSided(number) {
    const [a, b] = [sides.a.words[number], sides.b.words[number]];
    if (!a || !b) return [];
    const by = a.bits === null || b.bits === null ? null : a.bits - b.bits;
    const verdict = by === null ? "One of them thinks it is impossible."
      : Math.abs(by) < 0.05 ? "Both expect it alike."
        : `${by < 0 ? "A" : "B"} expects it ${short(2 ** Math.abs(by))} times more.`;
    return [
      heading(a),
      el("table", {}, el("tbody", {}, [["A", a, sides.a.model], ["B", b, sides.b.model]].map(([side, word, model]) =>
        el("tr", {}, el("th", { scope: "row" }, `${side}: `, words(model)), el("td", { class: "n" }, `${bits(word.bits)} bits`))))),
      el("p", {}, verdict),
      el("p", { class: "soft" }, "For alternatives, colour the text by A or by B."),
    ];
  }

  // -- the rest

  function keep() {
    remember({ text: field.value, a: selects.a.value || wantedNames.a, b: selects.b.value || wantedNames.b, view: selects.b.value ? shownView() : "", at: at >= 0 ? at : "" });
  }

  function grow() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, 0.4 * innerHeight)}px`;
  }

  function update(changed) {
    view = changed.view ?? "";
    at = Number(changed.at ?? -1);
    wantedNames = { a: changed.a ?? "", b: changed.b ?? "" };
    if ((changed.text ?? "") !== field.value) field.value = changed.text ?? "";
    grow();
    if (wantedNames.a) selects.a.value = wantedNames.a;
    selects.b.value = wantedNames.b;
    refresh("a");
    refresh("b");
    draw();
  }

  return { leave: () => models.stop(), update, again: () => { models.look(); askBoth(); } };
}
