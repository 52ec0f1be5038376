"""Pages under their former name: they are in `drawing.page`, which probes and evaluations share."""

from nextword.drawing.page import Cell, Page, Table, shown

__all__ = ["Cell", "Page", "Table", "shown"]
