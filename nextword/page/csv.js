// Rows as a CSV file (RFC 4180) that a spreadsheet opens as data and never as formulas.

// A cell that begins with one of these is a formula for a spreadsheet; an apostrophe makes it text.
const FORMULA = /^[\s\u00a0\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

/** Return one cell; numbers stay numbers, null is empty. */
export function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /["\n\r,;\t]|^\s|\s$|^'/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** Return a whole file. */
export function csv(heads, rows) {
  return [heads, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Save a file from the page. */
export function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
