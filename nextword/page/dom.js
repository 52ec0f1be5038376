// Elements of the page. Text only ever becomes text: there is no way from a string to HTML here.

/** Make an element: attributes, listeners (`onclick`), properties (`.value`), then children. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith(".")) element[name.slice(1)] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...there(children));
  return element;
}

function there(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined);
}

/** Replace the children of an element. */
export function put(element, ...children) {
  element.replaceChildren(...there(children));
  return element;
}

/** Words in any script: their own direction, apart from what stands around them. */
export function words(text, attributes = {}) {
  return el("bdi", { dir: "auto", ...attributes }, shown(text));
}

// Controls and bidirectional overrides would change what stands around them; they are shown as escapes.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/g;
const PAIR = /[\ud800-\udbff][\udc00-\udfff]/;

/** Return a text with every unsafe character as its escape, such as \u202e. */
export function shown(text) {
  return Array.from(text, (letter) => (PAIR.test(letter) ? letter : letter.replace(UNSAFE, escaped))).join("");
}

function escaped(letter) {
  const code = letter.charCodeAt(0).toString(16);
  return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
}

/** Say something to those who listen instead of looking. */
export function say(text) {
  const place = document.getElementById("said");
  if (place && place.textContent !== text) place.textContent = text;
}

/** Make buttons of which one is chosen: [["seconds", "seconds"], …]. */
export function choice(label, options, chosen, choose) {
  const group = el("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const buttons = options.map(([value, text], place) =>
    el("button", {
      type: "button", role: "radio", "aria-checked": String(value === chosen),
      tabindex: value === chosen ? "0" : "-1", "data-value": value,
      onclick: () => choose(value),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = options[(place + step + options.length) % options.length][0];
        choose(next);
        group.querySelector(`[data-value="${CSS.escape(next)}"]`)?.focus();
      },
    }, text));
  group.append(...buttons);
  return group;
}

/** Mark another button of a `choice` as chosen. */
export function choose(group, chosen) {
  for (const button of group.children) {
    const is = button.dataset.value === chosen;
    button.setAttribute("aria-checked", String(is));
    button.tabIndex = is ? 0 : -1;
  }
}
