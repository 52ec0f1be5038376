"""The progress of a filter on disk: whole steps only, and damage costs nothing but time."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.evaluation.lines.progress import ScoreLog, count_lines, kept_bytes, whole_lines


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"offset": 1, "lines": -5, "task": {}}', b"\xff\xfe"])
def test_a_damaged_state_only_costs_time(tmp_path, damage):
    state = tmp_path / "s"
    state.write_bytes(damage)
    assert ScoreLog(state, {"a": 1}).lines == 0


def test_scores_after_the_last_whole_step_are_cut_off(tmp_path):
    log = ScoreLog(tmp_path / "s", {"a": 1})
    log.append(np.array([1, 2], np.float32), 10)
    with open(tmp_path / "s.scores", "ab") as file:
        file.write(b"half a step")
    again = ScoreLog(tmp_path / "s", {"a": 1})
    assert again.scores.tolist() == [1, 2]
    again.append(np.array([3], np.float32), 20)
    assert ScoreLog(tmp_path / "s", {"a": 1}).scores.tolist() == [1, 2, 3]
    assert json.loads((tmp_path / "s").read_text())["offset"] == 20


@given(data=st.binary(max_size=50), size=st.integers(1, 20), step=st.integers(1, 7))
def test_whole_lines_lose_no_byte_and_cut_no_line(data, size, step):
    pieces = iter([data[i : i + step] for i in range(0, len(data), step)])
    blocks = list(whole_lines(pieces, size))
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert sum(count_lines(block) for block in blocks) == count_lines(data)
    keep = np.arange(count_lines(data)) % 2 == 0
    lines = data.split(b"\n")
    expected = b"".join(line + b"\n" for line in lines[:-1:2]) + (lines[-1] if len(lines) % 2 else b"")
    assert kept_bytes(data, keep) == expected
