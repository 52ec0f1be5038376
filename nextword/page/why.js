// Why a model expects a word: counts and backoff, members and neighbours, attention, the words that mattered.

import { attention } from "./attention.js";
import { visible } from "./bars.js";
import { el, words } from "./dom.js";
import { count, percent } from "./numbers.js";

/** Make what is shown under the bars for an answer of /api/why. */
export function reasons(found) {
  const parts = [
    ...found.tokens.map((token) => token.levels.length ? levels(token, found) : null),
    ...found.tokens.map((token) => token.said.length ? members(token) : null),
    found.looked_at ? attention(found.looked_at) : null,
    found.left_out.length ? leftOut(found) : null,
  ].filter((part) => part !== null);
  if (!parts.length) {
    parts.push(el("p", {}, `It is the first word, so this ${found.model} has nothing before it to look at.`));
  }
  return parts;
}

/** The contexts that an n-gram model tried, the longest first, and the product that they give. */
function levels(token, found) {
  const chain = token.levels;
  const last = chain[chain.length - 1];
  const weights = chain.filter((level) => level.weight !== null).map((level) => level.weight);
  const product = [...weights, last.probability].map(number).join(" × ");
  return el("section", {},
    found.tokens.length > 1 ? el("h3", {}, "Counts for ", words(visible(token.text))) : el("h3", {}, "Counts"),
    el("p", {}, sentence(last, chain.length - 1, token.text)),
    el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Contexts that were tried" },
      el("table", {},
        el("thead", {}, el("tr", {}, ["after", "seen", "with this word", "gives"].map((name, place) =>
          el("th", { scope: "col", class: place ? "n" : null }, name)))),
        el("tbody", {}, chain.map((level) => el("tr", { class: level === last ? "used" : null },
          el("td", {}, level.order === 1 ? el("span", { class: "soft" }, "nothing") : words(level.context)),
          el("td", { class: "n" }, level.order === 1 ? "–" : level.is_seen ? times(level.total, level.kinds) : "never"),
          el("td", { class: "n" }, level.order === 1 || !level.is_seen ? "–" : level.count === null ? "yes" : count(level.count)),
          el("td", { class: "n" }, level.probability !== null ? `p = ${number(level.probability)}`
            : level.weight !== null ? `× ${number(level.weight)}` : "")))))),
    weights.length ? el("p", { class: "sum" }, `p = ${product} = ${number(token.probability)}`) : null,
    found.is_adjusted ? el("p", { class: "soft" },
      "Kneser-Ney: below the longest context a count is of the different words before it.") : null);
}

function sentence(level, tried, text) {
  if (level.order === 1) {
    return tried ? ["No context before it was seen with ", words(visible(text)), "; its own frequency decides."]
      : ["Its own frequency decides."];
  }
  const after = ["after ", el("q", {}, words(level.context))];
  const seen = level.count === null ? ["Seen ", ...after]
    : [`Seen ${count(level.count)} of ${count(level.total)} times `, ...after];
  return [...seen, tried ? `; ${tried} longer context${tried > 1 ? "s were" : " was"} backed off from.` : "."];
}

function times(total, kinds) {
  return total === null ? `with ${count(kinds)} word${kinds === 1 ? "" : "s"}` : count(total);
}

/** What each member of a mixture adds, and where it has seen the word. */
function members(token) {
  return el("section", {},
    el("h3", {}, "Whose probability it is"),
    el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Members" },
      el("table", {},
        el("thead", {}, el("tr", {}, ["member", "weight", "its p", "adds"].map((name, place) =>
          el("th", { scope: "col", class: place ? "n" : null }, name)))),
        el("tbody", {}, token.said.flatMap((said) => [
          el("tr", {}, el("td", {}, words(said.name)), el("td", { class: "n" }, said.weight.toFixed(2)),
            el("td", { class: "n" }, number(said.probability)), el("td", { class: "n" }, number(said.share))),
          ...said.seen.map((seen) => el("tr", { class: "seen" }, el("td", { colspan: "4" }, place(seen)))),
        ])))));
}

function place(seen) {
  const context = el("q", {}, words(seen.context));
  if (seen.back !== null) return [`${percent(seen.weight)} from `, context, `, ${count(seen.back)} tokens ago`];
  if (seen.place !== null) return [`${percent(seen.weight)} from a neighbour: `, context, `, token ${count(seen.place)} of the stored text`];
  return [`${percent(seen.weight)} of the ${count(seen.count ?? 0)} times that the text has `, context];
}

/** How much more the word would surprise without each of the words before it. */
function leftOut(found) {
  const most = Math.max(0.5, ...found.left_out.map(([, bits]) => Math.abs(bits)));
  return el("section", {},
    el("h3", {}, "Which words mattered"),
    el("p", { class: "soft" }, "Leave one word out, and the surprise changes by so many bits: to the right, the word helped."),
    el("ul", { class: "helped" }, found.left_out.map(([word, bits]) => {
      const bar = el("span", { class: bits < 0 ? "stick less" : "stick" });
      bar.style.setProperty("--share", (Math.abs(bits) / most).toFixed(3));
      return el("li", {}, words(word, { class: "word" }), el("span", { class: "track" }, bar),
        el("span", { class: "share" }, `${bits > 0 ? "+" : bits < 0 ? "−" : ""}${Math.abs(bits).toFixed(2)}`));
    })));
}

function number(value) {
  if (value === 0 || value >= 0.0995) return value.toFixed(3);
  return value >= 0.0001 ? value.toPrecision(2) : value.toExponential(1).replace("e-", "e−");
}
