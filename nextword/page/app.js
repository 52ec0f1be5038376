// The frame around the screens: which one is shown, the key, the size of letters, a server that is gone.

import { watch } from "./api.js";
import { el, put, say } from "./dom.js";
import { format, parse } from "./url.js";

const SIZE = "nextword-size"; // in localStorage: it belongs to the screen, not to what is shown
const TITLES = { next: "Next word", surprise: "Surprise", runs: "Runs" };
const main = document.getElementById("main");
let shown = null; // { screen, leave }

/** Write the state of a screen into the address, without a new entry in the history. */
function remember(screen, state) {
  const hash = format(screen, state);
  link(screen, hash);
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Let the link to a screen lead to what it shows now: whoever comes back finds it as it was. */
function link(screen, hash) {
  document.querySelector(`nav a[data-screen="${screen}"]`).href = hash;
}

async function show() {
  const { screen, state } = parse(location.hash);
  link(screen, format(screen, state));
  if (shown?.screen === screen && shown.update) {
    shown.update(state);
    return;
  }
  shown?.leave?.();
  shown = { screen };
  document.title = `${TITLES[screen]} – nextword`;
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.screen === screen) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  put(main, el("p", { class: "soft" }, "…"));
  const module = await import(`./${screen}.js`);
  if (shown.screen !== screen) return;
  put(main);
  shown = { screen, ...module.open(main, state, (changed) => remember(screen, changed)) };
}

// -- a server that is gone, and one that wants a key

const gone = document.getElementById("gone");

function askForKey(wasWrong) {
  const dialog = document.getElementById("key");
  const field = document.getElementById("key-field");
  document.getElementById("key-wrong").textContent = wasWrong ? "The server does not know this key." : "";
  field.value = "";
  if (!dialog.open) dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    document.getElementById("key-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close();
      resolve(field.value.trim());
    };
    dialog.oncancel = (event) => event.preventDefault(); // without a key there is nothing to show
  });
}

watch({
  gone: () => {
    gone.hidden = false;
    gone.textContent = "The server does not answer. The page asks again every two seconds; what you typed stays.";
  },
  back: () => {
    gone.hidden = true;
    gone.textContent = "";
    say("The server answers again.");
    shown?.again?.();
  },
  key: askForKey,
});

// -- the size of letters

const size = document.getElementById("size");

function setSize(isLarge) {
  document.documentElement.classList.toggle("large", isLarge);
  size.setAttribute("aria-pressed", String(isLarge));
}

function stored(name, value) {
  try { // a browser may forbid it
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

size.addEventListener("click", () => {
  const isLarge = size.getAttribute("aria-pressed") !== "true";
  stored(SIZE, isLarge ? "large" : "");
  setSize(isLarge);
});
setSize(stored(SIZE) === "large");

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the state
  main.focus();
});
addEventListener("hashchange", show);
show();
