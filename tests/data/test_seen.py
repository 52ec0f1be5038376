"""Training text is recognized when it is measured, whole, as a beginning, and by its files."""

import pytest

import nextword
from nextword.core.contracts import Block
from nextword.data.encode import DataFacts
from nextword.data.seen import SeenText
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.data.split import hold_out

TEXT = "".join(f"line {number} of the text\n" for number in range(60))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    return path


def seen(facts, data):
    watcher = SeenText(facts)
    assert b"".join(block.data for block in watcher.watch([Block(data, True, "x")])) == data
    return watcher.begins_the_text


def facts_of(part):
    size = sum(len(block.data) for block in part.blocks())
    return DataFacts(part.names, part.digest, size)


def test_whole_text_and_its_training_part_are_recognized(file):
    whole = facts_of(Source.for_training([file], DataSettings()))
    assert seen(whole, TEXT.encode())
    assert seen(whole, TEXT.encode() + b"and more\n")
    assert not seen(whole, TEXT.encode()[:-9])
    assert not seen(whole, TEXT.replace("line 7", "lime 7").encode())
    part = facts_of(hold_out([file], DataSettings())[0])
    assert part.bytes < len(TEXT)
    assert seen(part, TEXT.encode())
    assert seen(part, TEXT.encode()[: part.bytes])
    assert not seen(DataFacts(), TEXT.encode())


def test_file_of_the_training_text_is_named(file, tmp_path):
    other = tmp_path / "b.txt"
    other.write_text("something else\n")
    facts = DataFacts((str(tmp_path),), "of an older version", 3)
    found = SeenText(facts).shared_file(Source.for_reading([other], DataSettings()), DataSettings())
    assert found == str(other)
    gone = DataFacts((str(tmp_path / "gone.txt"),), "", 3)
    assert SeenText(gone).shared_file(Source.for_reading([other], DataSettings()), DataSettings()) is None


def test_report_says_that_the_text_was_trained_on(file, tmp_path):
    run = nextword.train(file, model="ngram")
    copy = tmp_path / "copy.txt"
    copy.write_text(TEXT)
    assert "begins with the one that this model was trained on" in run.evaluate(copy).explanation
    assert "say little about new text" in str(run.evaluate(file))
    new = tmp_path / "new.txt"
    new.write_text("a new line of the text\n")
    assert run.evaluate(new).training_text is None
    assert "training_text" not in run.evaluate(new).to_json()
