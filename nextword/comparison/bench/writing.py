"""The files of a bench: the table as CSV, Markdown and LaTeX, and the page with pictures."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from nextword.comparison.bench.report import page
from nextword.comparison.bench.standing import Standing
from nextword.drawing.page import Table, shown
from nextword.system.disk import write_file

REPORT = "report.html"
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "<": "$<$",
}  # fmt: skip


def write(standing: Standing, out: Path) -> list[Path]:
    """Write every form; the page is the first."""
    table = standing.table()
    return [
        page(standing).save(out / REPORT),
        write_file(out / "table.csv", as_csv(table)),
        write_file(out / "table.md", as_markdown(standing)),
        write_file(out / "table.tex", as_latex(table)),
    ]


def as_csv(table: Table) -> str:
    """Return the table as RFC 4180 has it."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.columns, *(map(shown, row) for row in table.rows)])
    return file.getvalue()


def as_markdown(standing: Standing) -> str:
    """Return the table and what it says, for a README."""
    table = standing.table()
    lines = [_line(table.columns), _line(["---"] * len(table.columns))]
    lines += [_line([shown(cell) for cell in row]) for row in table.rows]
    notes = [f"{standing.about[0].upper()}{standing.about[1:]}.", f"Trained: {standing.counts}."]
    notes += [standing.precisions] if standing.precisions else []
    notes += [f"{title}: {why}." for title, why in standing.missing]
    notes += [str(standing.agreement)] if standing.agreement else []
    return "\n".join(lines) + "\n\n" + "\n\n".join(notes) + "\n"


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_latex(table: Table) -> str:
    """Return a tabular; it needs no package."""
    kind = "l" + "r" * (len(table.columns) - 2) + "l"
    rows = [table.columns, *([shown(cell) for cell in row] for row in table.rows)]
    lines = [" & ".join("".join(_SPECIAL.get(c, c) for c in cell) for cell in row) + r" \\" for row in rows]
    body = "\n".join([lines[0], r"\hline", *lines[1:]])
    return f"\\begin{{tabular}}{{{kind}}}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"
