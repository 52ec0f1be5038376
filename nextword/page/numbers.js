// Numbers as people read them.

/** A probability: 32 %, 4.1 %, 0.03 %; the space before the sign does not break. */
export function percent(p) {
  const value = 100 * p;
  if (value >= 99.95) return "100\u00a0%";
  if (value === 0) return "0\u00a0%";
  const digits = value >= 9.95 ? 0 : value >= 0.995 ? 1 : value >= 0.01 ? 2 : 3;
  return value < 0.001 ? "<\u00a00.001\u00a0%" : `${value.toFixed(digits)}\u00a0%`;
}

/** A number of bits; null is what JSON has for infinity. */
export function bits(value, digits = 1) {
  return value === null || value === undefined ? "∞" : value.toFixed(digits);
}

/** A count with commas. */
export function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
}

/** A large number in few letters: 1.2 M. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${+(value / size).toPrecision(3)} ${unit}`;
  }
  return String(+value.toPrecision(3));
}

/** A duration: 24 s, 3:07 min, 2:05 h. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return seconds < 9.95 ? `${+seconds.toFixed(1)} s` : `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
}

/** Steps of 1, 2 or 5 that divide a range into about this many parts. */
export function ticks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(+at.toPrecision(12));
  return found;
}
