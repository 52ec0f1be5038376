// A file, line by line: scored in pieces, in a table that sorts, with a CSV file to take away.

import { ask, sentence } from "./api.js";
import { csv, save } from "./csv.js";
import { el, put, say, words } from "./dom.js";
import { bits, count } from "./numbers.js";

const LINES = 200; // asked for at a time
const LETTERS = 200_000; // of them at most: a request has a limit
const LONGEST = 100_000; // letters of a line
const PAGE = 100; // rows that are shown, and more on request
const FILE = 64 << 20; // bytes

/** Make the part of the screen that takes files; `models()` gives the one or two models to score with. */
export function lines(models) {
  const input = el("input", { type: "file", class: "unseen", tabindex: "-1", "aria-label": "Text file", accept: ".txt,.text,.csv,.tsv,.md,text/*", onchange: () => take(input.files[0]) });
  const button = el("button", { type: "button", onclick: () => input.click() }, "Choose a file");
  const drop = el("div", { class: "drop" }, el("p", {}, "Drop a text file here to score it line by line, or "), button, input);
  const place = el("div");
  let job = 0; // the newest file; an older one stops

  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });

  async function take(file) {
    input.value = "";
    if (!file) return;
    const mine = ++job;
    const chosen = models();
    const status = el("p", { role: "status", class: "soft" });
    const bar = el("progress", { max: "1", value: "0", "aria-label": "Lines scored" });
    const title = el("h2", {}, words(file.name));
    put(place, title, bar, status);
    try {
      if (!chosen.length) throw new Error("choose a model first");
      if (file.size > FILE) throw new Error(`the file has ${count(file.size)} bytes, and the page takes ${count(FILE)}; use nextword score`);
      const texts = split(await file.text());
      if (!texts.length) throw new Error("the file has no lines");
      const rows = texts.map((text, at) => ({ line: at + 1, text, found: [] }));
      const table = makeTable(rows, chosen, file.name);
      for (let at = 0; at < rows.length;) {
        const part = piece(rows, at);
        const answers = await Promise.all(chosen.map((model) =>
          ask("/api/lines", { model, lines: part.map((row) => row.text.slice(0, LONGEST)) })));
        if (mine !== job) return;
        part.forEach((row, n) => { row.found = answers.map((answer) => answer.lines[n]); });
        at += part.length;
        bar.value = at / rows.length;
        status.textContent = `${count(at)} of ${count(rows.length)} lines`;
        table.show(at);
        if (!table.element.isConnected) place.append(table.element);
      }
      bar.remove();
      status.textContent = `${count(rows.length)} lines`;
      table.done();
      say(`${file.name}: ${count(rows.length)} lines scored`);
    } catch (error) {
      if (mine !== job) return;
      bar.remove();
      status.className = "problem";
      status.textContent = sentence(error);
    }
  }

  return el("section", { "aria-label": "A file line by line" }, drop, place);
}

/** Split a text into lines, as the server does: at newlines only. */
export function split(text) {
  const found = text.split("\n").map((line) => line.replace(/\r$/, ""));
  if (found[found.length - 1] === "") found.pop();
  return found;
}

function piece(rows, at) {
  const part = [];
  let letters = 0;
  while (part.length < LINES && at + part.length < rows.length && (letters < LETTERS || !part.length)) {
    letters += Math.min(LONGEST, rows[at + part.length].text.length);
    if (letters > LETTERS && part.length) break;
    part.push(rows[at + part.length]);
  }
  return part;
}

function makeTable(rows, models, file) {
  const columns = [
    { name: "line", value: (row) => row.line, show: (row) => count(row.line) },
    ...models.map((model, at) => ({
      name: models.length > 1 ? `bits per byte, ${"AB"[at]}` : "bits per byte",
      value: (row) => row.found[at]?.bits_per_byte ?? (row.found[at]?.tokens ? Infinity : null),
      show: (row) => row.found[at]?.tokens ? bits(row.found[at].bits_per_byte, 2) : "–",
    })),
    ...(models.length > 1 ? [{
      name: "A − B",
      value: (row) => row.found.every((found) => found?.bits_per_byte !== null && found?.tokens) ? row.found[0].bits_per_byte - row.found[1].bits_per_byte : null,
      show: (row) => row.found.every((found) => found?.bits_per_byte !== null && found?.tokens) ? signed(row.found[0].bits_per_byte - row.found[1].bits_per_byte) : "–",
    }] : []),
    { name: "tokens", value: (row) => row.found[0]?.tokens ?? null, show: (row) => count(row.found[0]?.tokens) },
    { name: "unknown", value: (row) => row.found[0]?.unknown ?? null, show: (row) => count(row.found[0]?.unknown) },
    { name: "text", value: (row) => row.text, show: (row) => row.text, isText: true },
  ];
  let sorted = { column: 0, falls: false };
  let ready = 0;
  let most = PAGE;
  const heads = columns.map((column, at) => el("th", { scope: "col", class: column.isText ? null : "n" },
    el("button", { type: "button", class: "sort", onclick: () => sort(at) }, column.name)));
  const body = el("tbody");
  const more = el("button", { type: "button", onclick: () => { most += 10 * PAGE; draw(); } });
  const download = el("button", { type: "button", class: "strong", onclick: () => save(`${file.replace(/\.[^.]*$/, "")}-surprise.csv`, csv(columns.map((column) => named(column.name, models)), ordered().map((row) => columns.map((column) => column.value(row))))) }, "Download CSV");
  const element = el("div", {},
    el("p", { class: "tools" }, download),
    el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Lines" },
      el("table", { class: "lines" }, el("thead", {}, el("tr", {}, heads)), body)),
    more);

  function sort(column) {
    const isSame = sorted.column === column;
    sorted = { column, falls: isSame ? !sorted.falls : column !== 0 && !columns[column].isText };
    draw();
    say(`Sorted by ${columns[column].name}, ${sorted.falls ? "largest" : "smallest"} first`);
  }

  function ordered() {
    const { value } = columns[sorted.column];
    const sign = sorted.falls ? -1 : 1;
    return rows.slice(0, ready).sort((a, b) => sign * compare(value(a), value(b), sign) || a.line - b.line);
  }

  function draw() {
    heads.forEach((head, at) => head.setAttribute("aria-sort",
      at !== sorted.column ? "none" : sorted.falls ? "descending" : "ascending"));
    put(body, ordered().slice(0, most).map((row) => el("tr", {}, columns.map((column) => column.isText
      ? el("td", { dir: "auto" }, words(column.show(row).slice(0, 2000)))
      : el("td", { class: "n" }, column.show(row))))));
    more.hidden = ready <= most;
    more.textContent = `Show more of ${count(ready)} lines`;
  }

  download.hidden = true;
  return { element, show: (count_) => { ready = count_; draw(); }, done: () => { download.hidden = false; } };
}

function named(name, models) {
  return name.replace(/, A$/, `, ${models[0]}`).replace(/, B$/, `, ${models[1]}`);
}

/** Compare two values; what is missing comes last in either order. */
function compare(a, b, sign) {
  if (a === null || b === null) return a === b ? 0 : (a === null ? 1 : -1) * sign;
  return typeof a === "string" ? a.localeCompare(b) : a - b || 0;
}

function signed(value) {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)}`;
}
