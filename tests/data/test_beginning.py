"""The beginning of a text that is too long for its time."""

from small_texts import MEETING

from nextword.data.beginning import Beginning


def test_a_long_text_is_cut_at_a_line_and_says_so(meetings):
    beginning = Beginning(meetings, 100)
    data = b"".join(block.data for block in beginning.blocks())
    assert 100 <= len(data) < 130
    assert data.endswith(b"\n")
    assert any("only the first" in note for note in beginning.notes)
    digest = beginning.digest
    assert beginning.read_through() == digest
    assert beginning.size == 100


def test_a_short_text_is_read_whole(meetings):
    beginning = Beginning(meetings, 10**9)
    assert b"".join(block.data for block in beginning.blocks()) == (MEETING * 40).encode()
    assert not any("only the first" in note for note in beginning.notes)
