"""Settings that an error message advises are taken by the command that gave it."""

import re

import pytest

READERS = {
    "train": ("train", "FILE", "--model", "ngram", "--out", "r", "--overwrite"),
    "train --valid": ("train", "CORPUS", "--valid", "FILE", "--model", "ngram", "--out", "r", "--overwrite"),
    "eval": ("eval", "RUN", "FILE"),
    "score": ("score", "RUN", "FILE"),
    "filter": ("filter", "RUN", "FILE"),
    "mix": ("mix", "RUN", "RUN", "--tune", "FILE", "--out", "m", "--overwrite"),
    "tokenizer train": ("tokenizer", "train", "FILE", "--tokenizer", "words", "--out", "t.json"),
    "tokenizer compare": ("tokenizer", "compare", "FILE", "--tokenizers", "words"),
}
FAULTS = {
    "bad.txt": b"the cat sat on the mat\nbad \xe9 byte\n" + b"the dog slept on the log\n" * 30,
    "columns.csv": b"id,body\n" + b"1,the cat sat on the mat\n" * 30,
    "separators.csv": b"a;the cat\tsat\n" * 30,
}
VALUES = {"NAME": "body"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("verb", READERS)
def test_advice_can_be_followed(nextword, corpus, saved_run, here, verb, fault):
    (here / fault).write_bytes(FAULTS[fault])
    named = {"FILE": fault, "RUN": saved_run, "CORPUS": corpus}
    command = [named.get(part, part) for part in READERS[verb]]
    before = nextword(*command)
    for key, value in re.findall(r"--set (\w+\.\w+)=(\w+)", before.err):
        after = nextword(*command, "--set", f"{key}={VALUES.get(value, value)}")
        assert "unknown setting" not in after.err
        assert after.err != before.err  # it had an effect


@pytest.mark.parametrize("name", ["blank.txt", "empty.txt"])
@pytest.mark.parametrize("verb", READERS)
def test_a_file_without_words_is_the_same_sentence_everywhere(nextword, corpus, saved_run, here, verb, name):
    (here / name).write_bytes(b"\n  \n\n" if name == "blank.txt" else b"")
    named = {"FILE": name, "RUN": saved_run, "CORPUS": corpus}
    done = nextword(*[named.get(part, part) for part in READERS[verb]])
    why = "blank (3 blank lines)" if name == "blank.txt" else "empty"
    assert done.code == 1
    assert done.err.splitlines()[-1] == f"nextword: {name}: the file is {why} and has no tokens"
