// The state of the page, in the part of the address that never leaves the browser: #next?text=We+must
// So a link shows the same thing, and the back button works.

export const SCREENS = ["next", "surprise", "runs"];

/** Read an address's hash; an unknown screen is the first one. */
export function parse(hash) {
  const [name, query = ""] = split(hash.replace(/^#/, ""));
  const screen = SCREENS.includes(name) ? name : SCREENS[0];
  return { screen, state: Object.fromEntries(new URLSearchParams(query)) };
}

/** Write the hash of a screen and its state; what is empty is left out. */
export function format(screen, state) {
  const kept = Object.entries(state).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  return `#${screen}${query ? `?${query}` : ""}`;
}

/** Read a list of names; a name may hold a comma, which is escaped. */
export function list(value) {
  return value ? value.split(",").map((each) => decodeURIComponent(each)) : [];
}

/** Write a list of names. */
export function joined(names) {
  return names.map((name) => encodeURIComponent(name)).join(",");
}

function split(text) {
  const place = text.indexOf("?");
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}
