"""Lines of a file without their ends."""

from nextword.data import plain
from nextword.data.lines import read_lines


def test_lines_may_span_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(plain, "BLOCK", 8)
    (tmp_path / "a.txt").write_bytes("one\r\n\nकखगघ much longer than a block\nlast".encode())
    assert list(read_lines(tmp_path / "a.txt")) == ["one", "", "कखगघ much longer than a block", "last"]
