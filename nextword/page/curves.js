// Learning curves as SVG: one line for each run, its name at its end, a point for a run that has only one value.

import { el, svg, shown } from "./dom.js";
import { duration, short, ticks } from "./numbers.js";

const WIDTH = 760;
const HEIGHT = 360;
const LEFT = 56;
const RIGHT = 150; // for the names
const TOP = 14;
const BOTTOM = 44;
const BETWEEN = 16; // pixels between two names

/**
 * Draw lines [{name, colour, points: [[x, y], …], isLive}]; `axis` is "seconds" or "tokens".
 * Returns an SVG element with a description for those who do not see it.
 */
export function curves(lines, axis, what) {
  const points = lines.flatMap((line) => line.points);
  if (!points.length) return el("p", { class: "soft" }, "There is nothing to draw yet.");
  const right = Math.max(...points.map(([x]) => x), 1e-9);
  const [low, high] = range(points.map(([, y]) => y));
  const across = (x) => LEFT + (x / right) * (WIDTH - LEFT - RIGHT);
  const down = (y) => TOP + ((high - y) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "curves",
    "aria-label": `${what} over ${axis}: ${lines.filter((line) => line.points.length).map((line) => `${line.name} ends at ${line.points[line.points.length - 1][1].toFixed(3)}`).join(", ")}` });
  for (const value of ticks(low, high)) {
    picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: down(value), y2: down(value) }),
      svg("text", { x: LEFT - 8, y: down(value) + 4, "text-anchor": "end", class: "label" }, String(value)));
  }
  for (const value of ticks(0, right)) {
    picture.append(svg("line", { class: "axis", x1: across(value), x2: across(value), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5 }),
      svg("text", { x: across(value), y: HEIGHT - BOTTOM + 19, "text-anchor": "middle", class: "label" }, axis === "seconds" ? time(value) : short(value)));
  }
  picture.append(svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
    svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle", class: "label" },
      axis === "seconds" ? "time" : "tokens"));
  const drawn = lines.filter((line) => line.points.length);
  for (const line of drawn) {
    const path = line.points.map(([x, y], place) => `${place ? "L" : "M"}${across(x).toFixed(1)} ${down(clamp(y, low, high)).toFixed(1)}`).join("");
    const [x, y] = line.points[line.points.length - 1];
    picture.append(svg("g", { class: line.colour },
      svg("path", { class: "line", d: path }, svg("title", {}, shown(line.name))),
      svg("circle", { class: line.isLive ? "dot live" : "dot", cx: across(x), cy: down(clamp(y, low, high)), r: line.points.length > 1 ? 3.5 : 5 })));
  }
  for (const { line, y } of apart(drawn.map((line) => ({ line, y: down(clamp(line.points[line.points.length - 1][1], low, high)) })))) {
    const name = shown(line.name);
    const [x, last] = line.points[line.points.length - 1];
    picture.append(
      svg("path", { class: "leader", d: `M${across(x) + 6} ${down(clamp(last, low, high))}L${WIDTH - RIGHT + 6} ${y}` }),
      svg("text", { class: `name ${line.colour}`, x: WIDTH - RIGHT + 10, y: y + 4 },
      name.length > 20 ? `${name.slice(0, 19)}…` : name, svg("title", {}, name)));
  }
  return picture;
}

/** Return a range that leaves out the first few steep values: what is of interest comes later. */
export function range(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const low = sorted[0];
  const high = sorted[Math.floor(0.97 * (sorted.length - 1))];
  const pad = 0.05 * (high - low) || Math.max(0.5, Math.abs(low) * 0.1);
  return [Math.max(low - pad, low >= 0 ? 0 : -Infinity), high + pad];
}

/** Move names apart that would lie upon each other. */
export function apart(names) {
  const sorted = [...names].sort((a, b) => a.y - b.y);
  for (let at = 1; at < sorted.length; at += 1) sorted[at].y = Math.max(sorted[at].y, sorted[at - 1].y + BETWEEN);
  const below = HEIGHT - BOTTOM;
  for (let at = sorted.length - 1, most = below; at >= 0; at -= 1, most = sorted[at + 1].y - BETWEEN) {
    sorted[at].y = Math.min(sorted[at].y, most);
  }
  return sorted;
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

function time(seconds) {
  return seconds === 0 ? "0" : duration(seconds);
}
