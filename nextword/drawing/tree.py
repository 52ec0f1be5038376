"""A search tree drawn from left to right: every hypothesis that was kept, and the path of the best one.

[MAUSAM "Neural Language Model: Greedy Decoding": the K best continue side by side]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nextword.drawing.elements import frame, shortened, width_of, words

_ROW = 27.0
_GAP = 26.0
_LONGEST = 90.0


@dataclass(frozen=True)
class Node:
    """One token of a hypothesis: what it continues, and how likely it is."""

    parent: int  # index of the node it continues; -1: the prompt
    text: str
    label: str  # small label beside the token
    is_best: bool = False  # on the path of the best hypothesis
    is_end: bool = False  # a hypothesis ends here


def tree(nodes: Sequence[Node], prompt: str, title: str, steps: str) -> str:
    """Draw all tokens in columns by step; parents are centred on their children."""
    depths = _depths(nodes)
    count = max(depths, default=0) + 1
    heights = _heights(nodes)
    start = 16 + max(1.2 * width_of(shortened(prompt, 150)), 20) + _GAP
    widths = [
        max((_width(node) for node, depth in zip(nodes, depths, strict=True) if depth == step), default=0.0)
        for step in range(count)
    ]
    lefts = [start + sum(widths[:step]) + _GAP * step for step in range(count)]
    top = 34.0
    roots = [heights[i] for i, node in enumerate(nodes) if node.parent < 0]
    middle = sum(roots) / len(roots) if roots else 0.0
    parts = [words(12, top + middle * _ROW + 4, shortened(prompt, 150), "start", "value")]
    for place, (node, depth) in enumerate(zip(nodes, depths, strict=True)):
        x, y = lefts[depth], top + heights[place] * _ROW
        if node.parent < 0:
            from_x, from_y = start - _GAP + 4, top + middle * _ROW
        else:
            from_x = lefts[depth - 1] + _width(nodes[node.parent]) + 2
            from_y = top + heights[node.parent] * _ROW
        parts.append(_edge(from_x, from_y, x - 4, y, node.is_best))
        parts.append(words(x, y + 4, shown(node), "start", "value" if node.is_best else "tick"))
        parts.append(words(x, y + 15, node.label, "start", "small"))
    parts += [words(lefts[step], 14, str(step + 1), "start", "label") for step in range(count)]
    parts.append(words(12, 14, steps, "start", "label"))
    width = (lefts[-1] + widths[-1] if lefts else start) + 20
    bottom = top + (max(heights, default=0.0) + 1) * _ROW
    parts.append(_legend(bottom + 8))
    return frame("".join(parts), title, max(720, width), bottom + 24)


def shown(node: Node) -> str:
    """Return a token as shown in the tree; a finished hypothesis ends with a square."""
    text = node.text.replace("\n", "⏎").strip(" ") or "␣"
    return shortened(text, _LONGEST) + (" ∎" if node.is_end else "")


def _width(node: Node) -> float:
    return max(width_of(shown(node)) * (1.08 if node.is_best else 1.0), 5.2 * len(node.label))


def _edge(x: float, y: float, to_x: float, to_y: float, is_best: bool) -> str:
    style = "stroke:var(--c1);stroke-width:2.4" if is_best else "stroke:var(--soft);stroke-width:1"
    return f'<path class="line" style="{style}" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'


def _legend(y: float) -> str:
    return (
        _edge(12, y, 36, y, True) + words(42, y + 4, "the best finished text")
        + _edge(200, y, 224, y, False) + words(230, y + 4, "kept for a while, then dropped")
        + words(440, y + 4, "∎ a text ends here")
    )  # fmt: skip


def _depths(nodes: Sequence[Node]) -> list[int]:
    """Return how many tokens precede each; parents come before their children."""
    found: list[int] = []
    for node in nodes:
        found.append(0 if node.parent < 0 else found[node.parent] + 1)
    return found


def _heights(nodes: Sequence[Node]) -> list[float]:
    """Return a row for every leaf, from the top; a branching node is centred on its branches."""
    children: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(place)
    heights = [0.0] * len(nodes)
    rows = 0
    waiting = [(place, False) for place in reversed(children.get(-1, []))]
    while waiting:
        place, is_done = waiting.pop()
        own = children.get(place, [])
        if not own:
            heights[place], rows = float(rows), rows + 1
        elif is_done:
            heights[place] = sum(heights[child] for child in own) / len(own)
        else:
            waiting += [(place, True), *((child, False) for child in reversed(own))]
    return heights
