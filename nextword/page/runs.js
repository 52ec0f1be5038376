// The screen "Runs": every run of the folder, its curve while it learns, what it writes, and the time that is left.

import { ask, get, sentence } from "./api.js";
import { thing } from "./colours.js";
import { curves } from "./curves.js";
import { choice, choose, el, put, say, words } from "./dom.js";
import { count, duration, short } from "./numbers.js";
import { joined, list } from "./url.js";

const OFTEN = 1000; // milliseconds between two looks while a run is being trained
const SELDOM = 4000;
const MEASURES = {
  valid_bits_per_byte: "held-out bits per byte", valid_nll: "held-out nats per token", loss: "training loss, nats",
  valid_accuracy: "held-out accuracy", valid_f1: "held-out F1",
};
const STATES = { finished: "finished", running: "training", unfinished: "stopped; can be resumed", damaged: "damaged" };

/** Open the screen in an element; `remember` puts its state into the address. */
export function open(place, state, remember) {
  let axis = state.x === "tokens" ? "tokens" : "seconds";
  let measure = state.y in MEASURES ? state.y : "";
  let hidden = new Set(list(state.hide));
  let details = state.run ?? "";
  let runs = [];
  let tag = null;
  let timer = 0;
  let stopped = false;
  const samples = new Map(); // run → text, once it has been asked for

  const axes = choice("Over", [["seconds", "over time"], ["tokens", "over tokens"]], axis, (value) => {
    axis = value;
    draw();
    keep();
  });
  const measures = el("select", { "aria-label": "What is drawn", onchange: () => { measure = measures.value; draw(); keep(); } });
  const status = el("p", { class: "soft", role: "status" });
  const figure = el("figure", { class: "plot" });
  const body = el("tbody");
  const table = el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Runs" }, el("table", { class: "runs" },
    el("thead", {}, el("tr", {}, ["", "run", "state", "model", "tokens", "time", "result"].map((name, at) =>
      el("th", { scope: "col", class: at > 3 ? "n" : null }, name || el("span", { class: "unseen" }, "shown"))))), body));
  const panel = el("section", { class: "details", hidden: true });
  place.append(el("h1", { class: "unseen" }, "Runs"), el("div", { class: "tools" }, axes, measures), status, figure, table, panel);
  look();
  document.addEventListener("visibilitychange", woken);

  function woken() {
    if (!document.hidden && !stopped) look();
  }

  async function look() {
    clearTimeout(timer);
    try {
      const found = await get("/api/runs", tag);
      if (stopped) return;
      if (found.value) {
        tag = found.tag;
        take(found.value);
      }
    } catch (error) {
      if (!stopped) status.textContent = sentence(error);
    }
    const isLive = runs.some((run) => run.state === "running");
    if (!stopped && !document.hidden) timer = setTimeout(look, isLive ? OFTEN : SELDOM);
  }

  function take({ runs: newer, folders }) {
    const done = newer.filter((run) => run.state === "finished" && runs.some((old) => old.name === run.name && old.state === "running"));
    runs = newer;
    const live = runs.filter((run) => run.state === "running").length;
    const where = [...new Set(folders)].join(", ");
    status.textContent = runs.length
      ? `${count(runs.length)} run${runs.length > 1 ? "s" : ""} in ${where}${live ? `, ${live} being trained` : ""}`
      : `There is no run in ${where} yet; train one with: nextword train DATA`;
    done.forEach((run) => say(`${run.name} is finished`));
    draw();
  }

  function draw() {
    choose(axes, axis);
    const known = Object.keys(MEASURES).filter((name) => runs.some((run) => run.curves[name]));
    const chosen = known.includes(measure) ? measure : known[0] ?? "";
    put(measures, known.map((name) => el("option", { value: name, selected: name === chosen }, MEASURES[name])));
    measures.hidden = axes.hidden = !known.length;
    table.hidden = !runs.length;
    put(figure, known.length ? curves(lines(chosen), axis, MEASURES[chosen]) : null);
    const focus = document.activeElement?.dataset?.run;
    const kind = document.activeElement?.dataset?.kind;
    put(body, runs.map(row));
    if (focus) body.querySelector(`[data-kind="${kind}"][data-run="${CSS.escape(focus)}"]`)?.focus();
    drawDetails();
  }

  function lines(name) {
    const at = axis === "seconds" ? 0 : 1;
    return runs.filter((run) => !hidden.has(run.name)).map((run) => ({
      name: run.name, colour: thing(run.place), isLive: run.state === "running",
      points: (run.curves[name] ?? []).map((point) => [point[at], point[2]]),
    }));
  }

  function row(run) {
    const has = Object.keys(run.curves).length > 0;
    return el("tr", { class: thing(run.place) },
      el("td", {}, has ? el("input", { type: "checkbox", ".checked": !hidden.has(run.name), "aria-label": `Draw ${run.name}`, "data-run": run.name, "data-kind": "box",
        onchange: (event) => {
          if (event.currentTarget.checked) hidden.delete(run.name);
          else hidden.add(run.name);
          draw();
          keep();
        } }) : null),
      el("td", {}, el("button", { type: "button", class: "plain name", "aria-expanded": String(details === run.name), "data-run": run.name, "data-kind": "name",
        onclick: () => { details = details === run.name ? "" : run.name; draw(); keep(); } }, words(run.name)),
        run.served ? el("span", { class: "tag" }, "served") : null),
      el("td", {}, progress(run)),
      el("td", {}, words(run.model), run.tokenizer ? [" · ", words(run.tokenizer)] : null),
      el("td", { class: "n" }, short(run.tokens)),
      el("td", { class: "n" }, duration(run.seconds)),
      el("td", { class: "n" }, best(run)));
  }

  function progress(run) {
    if (run.state === "damaged") return el("span", { class: "problem" }, "damaged");
    if (run.state !== "running") return el("span", { class: "soft" }, STATES[run.state]);
    const [done, expected] = run.steps ?? [0, null];
    const share = expected ? done / expected : null;
    return el("span", { class: "progress" },
      el("progress", { max: "1", ".value": share ?? undefined, "aria-label": `Progress of ${run.name}` }),
      el("span", {}, run.seconds_left !== null && run.seconds_left !== undefined ? `${duration(run.seconds_left)} left` : "begins …"));
  }

  // -- one run

  function drawDetails() {
    const run = runs.find((each) => each.name === details);
    panel.hidden = !run;
    if (!run) return;
    const others = runs.filter((each) => each.name !== run.name && each.settings);
    const differs = ([name, value]) => others.some((each) => name in each.settings && each.settings[name] !== value);
    const settings = Object.entries(run.settings).sort((a, b) => differs(b) - differs(a)); // what differs comes first
    put(panel,
      el("h2", {}, words(run.name)),
      run.problem ? el("p", { class: "problem" }, `${run.problem}.`) : null,
      run.command ? el("p", {}, el("code", {}, words(run.command))) : null,
      sample(run),
      learned(run),
      el("h3", {}, "Settings"),
      others.length ? el("p", { class: "soft" }, "Bold: not the same in every run here.") : null,
      el("div", { class: "settings" }, settings.map(([name, value]) =>
        el("div", {}, el("span", { class: "soft" }, name), " ", el(differs([name, value]) ? "b" : "span", {}, words(value))))));
  }

  function sample(run) {
    if (!run.served || run.task !== "lm") return null;
    const known = samples.get(run.name);
    const write = el("button", { type: "button", "data-run": run.name, "data-kind": "sample", onclick: async () => {
      samples.set(run.name, { text: "…", seed: (known?.seed ?? 0) + 1 });
      drawDetails();
      samples.set(run.name, { ...(await written(run, samples.get(run.name).seed)), seed: samples.get(run.name).seed });
      drawDetails();
      panel.querySelector("[data-kind=sample]")?.focus();
    } }, known ? "Another sample" : "Write a sample");
    return [
      el("h3", {}, "Sample"),
      known ? el("blockquote", { dir: "auto", class: known.isProblem ? "problem" : null, "aria-live": "polite" }, words(known.text)) : null,
      el("p", {}, write),
    ];
  }

  /** What the network wrote while it learned, the latest first: always with the same random numbers. */
  function learned(run) {
    if (!run.samples.length) return null;
    return [
      el("h3", {}, "What it wrote while it learned"),
      el("ol", { class: "samples" }, run.samples.map((each) => el("li", {},
        el("span", { class: "soft" }, `step ${count(each.step ?? 0)}, ${duration(each.seconds)}`),
        el("blockquote", { dir: "auto" }, words(each.text))))),
    ];
  }

  async function written(run, seed) {
    try {
      const found = await ask("/v1/completions", { model: run.name, prompt: "", max_tokens: 60, seed, temperature: 1 });
      return { text: found.choices[0].text.trim() || "It ended at once." };
    } catch (error) {
      return { text: sentence(error), isProblem: true };
    }
  }

  function keep() {
    remember({ x: axis === "tokens" ? "tokens" : "", y: measure, hide: joined([...hidden]), run: details });
  }

  function update(changed) {
    axis = changed.x === "tokens" ? "tokens" : "seconds";
    measure = changed.y in MEASURES ? changed.y : "";
    hidden = new Set(list(changed.hide));
    details = changed.run ?? "";
    draw();
  }

  function leave() {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", woken);
  }

  return { leave, update, again: look };
}

/** Return the best held-out value of a run in words. */
function best(run) {
  const pick = (name, choose_) => run.curves[name] ? choose_(...run.curves[name].map((point) => point[2])) : null;
  const found = pick("valid_bits_per_byte", Math.min);
  if (found !== null) return `${found.toFixed(3)} bits/byte`;
  const accuracy = pick("valid_accuracy", Math.max);
  if (accuracy !== null) return `${(100 * accuracy).toFixed(1)} %`;
  const loss = pick("loss", Math.min);
  return loss === null ? "–" : `${loss.toFixed(3)} nats`;
}
