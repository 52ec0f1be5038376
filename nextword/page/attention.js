// What a Transformer looks at: every head as a row on a canvas, one of them on the tokens themselves.

import { paint } from "./colours.js";
import { el, put, words } from "./dom.js";
import { percent } from "./numbers.js";

const ROW = 9; // pixels

/** Show {tokens, weights[layer][head][token]}. */
export function attention({ tokens, weights }) {
  const heads = weights.flatMap((layer, l) => layer.map((row, h) => ({ name: `layer ${l + 1}, head ${h + 1}`, row })));
  const means = weights.map((layer, l) => ({ name: `layer ${l + 1}, mean of its heads`, row: mean(layer) }));
  const every = weights[0].length > 1 ? [...means, ...heads] : heads;
  const text = el("p", { class: "coloured" });
  const most = el("p", { class: "soft" });
  const select = el("select", { "aria-label": "Layer and head", onchange: () => show(every[select.selectedIndex]) },
    every.map(({ name }) => el("option", {}, name)));
  select.selectedIndex = weights[0].length > 1 ? means.length - 1 : every.length - 1;

  function show({ row }) {
    put(text, tokens.map((token, place) => {
      const span = words(token, { class: "token", title: percent(row[place]) });
      paint(span, Math.sqrt(row[place])); // most weights are small
      return [span, " "];
    }));
    const best = row.indexOf(Math.max(...row));
    put(most, "Most at ", words(tokens[best]), `: ${percent(row[best])}.`);
  }

  const canvas = draw(heads.map(({ row }) => row));
  canvas.addEventListener("click", (event) => {
    const place = Math.floor((event.offsetY / canvas.clientHeight) * heads.length);
    select.selectedIndex = every.length - heads.length + Math.min(heads.length - 1, Math.max(0, place));
    show(every[select.selectedIndex]);
  });
  show(every[select.selectedIndex]);
  return el("section", {},
    el("h3", {}, "What it looks at"),
    el("p", { class: "soft" }, "The share of attention that the last token gives to each token before it."),
    el("p", {}, select), text, most,
    heads.length > 1 ? el("figure", {}, canvas,
      el("figcaption", {}, "Every head is a row, every token a column; click a row to see it on the text.")) : null);
}

function mean(rows) {
  return rows[0].map((_, place) => rows.reduce((sum, row) => sum + row[place], 0) / rows.length);
}

/** Draw rows of shares: one pixel each, enlarged by the style sheet without smoothing. */
function draw(rows) {
  const canvas = el("canvas", { class: "heads", width: rows[0].length, height: rows.length, "aria-hidden": "true" });
  canvas.style.height = `${rows.length * ROW}px`;
  const context = canvas.getContext("2d");
  const image = context.createImageData(rows[0].length, rows.length);
  rows.flat().forEach((share, place) => image.data.set([213, 94, 0, Math.round(255 * Math.sqrt(share))], 4 * place));
  context.putImageData(image, 0, 0);
  return canvas;
}
