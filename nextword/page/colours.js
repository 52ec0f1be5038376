// Colours: Okabe and Ito's for things, one hue for surprise, two for a difference; page.css has the values.

const THINGS = 8;
export const MOST_BITS = 16; // as strong as it gets
export const MOST_DIFFERENCE = 6;

/** The class of the n-th model or run. */
export function thing(place) {
  return `c${place % THINGS}`;
}

/** How strong a surprise is shown, 0 to 1; a probability of 0 is as strong as it gets. */
export function heat(bits) {
  return bits === null ? 1 : Math.min(1, Math.max(0, bits / MOST_BITS));
}

/** How strong a difference is shown, -1 (the first model is better) to 1 (the second one is). */
export function difference(a, b) {
  if (a === null && b === null) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return Math.max(-1, Math.min(1, (a - b) / MOST_DIFFERENCE));
}

/** Put a strength on an element; the style sheet turns it into a colour for light and dark screens. */
export function paint(element, strength) {
  element.classList.toggle("cold", strength < 0);
  element.style.setProperty("--much", Math.abs(strength).toFixed(3));
}
