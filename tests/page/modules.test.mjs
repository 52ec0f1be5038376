// Facts about the modules that need no browser; test_modules.py runs this file with node.

import assert from "node:assert/strict";
import test from "node:test";

const folder = process.env.NEXTWORD_PAGE;
const load = (name) => import(`${folder}/${name}`);
const { visible } = await load("bars.js");
const { cell, csv } = await load("csv.js");
const { difference, heat, thing } = await load("colours.js");
const { format, joined, list, parse } = await load("url.js");
const { bits, count, duration, percent, short, ticks } = await load("numbers.js");
const { debounced, latest } = await load("latest.js");
const { apart, range } = await load("curves.js");
const { shown } = await load("dom.js");
const { split } = await load("lines.js");
const { taken } = await load("next.js");

test("an address holds the state, whatever letters it has", () => {
  const state = { text: "a&b=c #x? नमस्ते 世界\nتحية", a: "run,1", why: joined(["x,y", "z%"]) };
  const { screen, state: found } = parse(format("surprise", state));
  assert.equal(screen, "surprise");
  assert.deepEqual(found, state);
  assert.deepEqual(list(found.why), ["x,y", "z%"]);
});

test("an unknown screen is the first one, and what is empty is left out", () => {
  assert.deepEqual(parse("#nothing?text=a"), { screen: "next", state: { text: "a" } });
  assert.equal(format("runs", { x: "", y: null, run: "a" }), "#runs?run=a");
  assert.equal(format("runs", {}), "#runs");
});

test("tokens that differ in what cannot be seen look different", () => {
  assert.deepEqual([" and", ".", ".\n\n", "\n", "\n ", " ", "\t", ""].map(visible), ["and", ".", ".⏎⏎", "⏎", "⏎␣", "␣", "→", "∅"]);
});

test("a spreadsheet never gets a formula", () => {
  for (const text of ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "＝1", "\u00a0=1"]) {
    assert.match(cell(text), /^"?'/, JSON.stringify(text));
  }
});

test("cells are quoted as in RFC 4180, and numbers stay numbers", () => {
  assert.equal(cell('say "hi", now'), '"say ""hi"", now"');
  assert.equal(cell("plain"), "plain");
  assert.equal(cell(-1.5), "-1.5");
  assert.equal(cell(Infinity), "");
  assert.equal(cell(null), "");
  assert.equal(csv(["a", "b"], [[1, "x\ny"]]), 'a,b\r\n1,"x\ny"\r\n');
});

test("surprise and difference are strong where they are large", () => {
  assert.equal(heat(0), 0);
  assert.equal(heat(null), 1);
  assert.equal(heat(1000), 1);
  assert.equal(difference(3, 3), 0);
  assert.equal(difference(null, 3), 1);
  assert.equal(difference(0, 100), -1);
  assert.equal(thing(9), "c1");
});

test("numbers read as people write them", () => {
  assert.deepEqual([0, 0.5, 0.0412, 0.0004, 0.000001, 1].map(percent).map((text) => text.replaceAll("\u00a0", " ")), ["0 %", "50 %", "4.1 %", "0.04 %", "< 0.001 %", "100 %"]);
  assert.deepEqual([500_000, 1_230_000, 0.25, 999].map(short), ["500 k", "1.23 M", "0.25", "999"]);
  assert.deepEqual([0.5, 24, 187, 7500].map(duration), ["0.5 s", "24 s", "3:07 min", "2:05 h"]);
  assert.equal(bits(null), "∞");
  assert.equal(count(1234.4), "1,234");
  assert.deepEqual(ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]);
});

test("only the newest question is answered, one at a time", async () => {
  const asked = [];
  const got = [];
  let open;
  const ask = latest((question) => {
    asked.push(question);
    return new Promise((resolve) => { open = () => resolve(question); });
  }, (answer) => got.push(answer), () => {});
  ask("a");
  ask("b");
  ask("c");
  assert.deepEqual(asked, ["a"]);
  open();
  await new Promise(setImmediate);
  assert.deepEqual(asked, ["a", "c"]);
  assert.deepEqual(got, []);
  open();
  await new Promise(setImmediate);
  assert.deepEqual(got, ["c"]);
});

test("a failure of an old question is not shown, that of the newest is", async () => {
  const failed = [];
  const ask = latest(async (question) => { throw new Error(question); }, () => {}, (error) => failed.push(error.message));
  ask("a");
  ask("b");
  await new Promise(setImmediate);
  assert.deepEqual(failed, ["b"]);
});

test("debounced waits for a pause", async () => {
  const called = [];
  const call = debounced(5, (value) => called.push(value));
  call(1);
  call(2);
  await new Promise((resolve) => setTimeout(resolve, 40));
  assert.deepEqual(called, [2]);
});

test("controls and overrides are shown as escapes, letters of every script as they are", () => {
  assert.equal(shown("a\u202eb\u0007c"), "a\\u202eb\\x07c");
  assert.equal(shown("नमस्ते 世界 مرحبا 🙂 می‌خواهم"), "नमस्ते 世界 مرحبا 🙂 می‌خواهم");
  assert.equal(shown("\ud800x"), "\\ud800x");
});

test("a word that is taken completes or follows the text", () => {
  assert.equal(taken("the ca", "cat", { asks: "completion", part: "ca" }), "the cat ");
  assert.equal(taken("the", "cat", { asks: "word", part: "" }), "the cat ");
  assert.equal(taken("the ", "cat", { asks: "word", part: "" }), "the cat ");
  assert.equal(taken("", "cat", { asks: "word", part: "" }), "cat ");
  assert.equal(taken("人人", "生", { asks: "token", part: "" }), "人人生");
  assert.equal(taken("the cat ", "</s>", { asks: "word", part: "" }), "the cat\n");
});

test("lines end at newlines only, and the last one needs none", () => {
  assert.deepEqual(split("a\r\nb\u2028c\n\nd"), ["a", "b\u2028c", "", "d"]);
  assert.deepEqual(split("a\n"), ["a"]);
  assert.deepEqual(split(""), []);
});

test("the range of a plot leaves out the first steep values", () => {
  const values = [100, ...Array.from({ length: 99 }, (_, at) => 2 + at / 100)];
  const [low, high] = range(values);
  assert.ok(low < 2 && high < 4);
  assert.ok(range([1])[1] > range([1])[0]);
});

test("names at the ends of lines do not lie upon each other", () => {
  const found = apart([{ y: 100 }, { y: 101 }, { y: 99 }, { y: 315 }, { y: 315 }]).map(({ y }) => y);
  for (let at = 1; at < found.length; at += 1) assert.ok(found[at] - found[at - 1] >= 16 - 1e-9);
});
