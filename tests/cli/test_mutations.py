"""Damaged files of every kind: a command ends with 0, or with 1 and one sentence; no traceback, no NaN."""

import random
import shutil

import pytest
import typer.main
from mutations import mutated, put_in_run

from nextword.cli.app import app
from nextword.cli.main import run as run_command

QUICK, MANY = 6, 500
TEXT = "the cat sat\n\nthe zebra sang on the roof .\n"
JSON_LINES = b"".join(b'{"id": %d, "text": "the cat sat on the mat %d ."}\n' % (n, n) for n in range(6))
TABLE = b"id;text;n\n" + b"".join(b'%d;"the cat, sat on ""%d"" mats";%d.5\n' % (n, n, n) for n in range(6))
NBEST = b"u1\t-1.5\tthe cat sat\nu1\t-1.0\tcat the sat\nu2\t-3\tthe dog sang\n"
SMALL = ("--set=train.steps=1", "--set=model.hidden=8", "--set=model.layers=1", "--set=train.threads=1")


@pytest.fixture(scope="module")
def originals(corpus, saved_run, tmp_path_factory):
    """Runs and files to damage, made once."""
    folder = tmp_path_factory.mktemp("originals")
    (folder / "t.txt").write_text(TEXT)
    made = {
        "words": ("train", corpus, "--model", "ngram", "--set=model.order=2"),
        "bpe": ("train", corpus, "--model", "ngram", "--tokenizer", "bpe", "--set=text.size=300"),
        "unbounded": ("train", corpus, "--model", "unbounded", "--tokenizer", "characters"),
    }
    for name in ("words", "bpe", "unbounded"):
        assert run_command([*map(str, made[name]), "--out", str(folder / name)]) == 0
    assert (
        run_command(["export", str(folder / "words"), "--to", "arpa", "--out", str(folder / "m.arpa")]) == 0
    )
    packed = ["compress", str(folder / "words"), str(folder / "t.txt"), "-o", str(folder / "t.nwz")]
    assert run_command(packed) == 0
    return folder


def _check(done, why, is_text=False) -> bool:
    """Check how a command ended; return whether it did its work. A damaged text may hold the word nan."""
    said = [line for line in done.err.splitlines() if line.startswith("nextword: ")]
    assert done.code in (0, 1), (why, done)
    assert "Traceback" not in done.err, (why, done)
    assert "internal error" not in done.err, (why, done)
    assert len(said) == done.code, (why, done)
    assert is_text or "nan" not in done.out.lower(), (why, done)
    return done.code == 0


def _damaged_inputs(nextword, here, originals, generator, count, name, data, commands) -> None:
    for _ in range(count):
        changed = mutated(data, generator)
        (here / name).write_bytes(changed)
        for command in commands:
            _check(nextword(*command), changed, is_text=b"nan" in changed.lower() and name != "x.arpa")


@pytest.fixture
def network(corpus, originals):
    """A small network, made where a test needs it."""
    if not (originals / "rnn").exists():
        command = ["train", str(corpus), "--model", "rnn", "--tokenizer", "characters", *SMALL]
        assert run_command([*command, "--out", str(originals / "rnn")]) == 0
    return "rnn"


def _damaged_runs(nextword, here, originals, generator, count, run, name) -> None:
    data = (originals / run / name).read_bytes()
    for _ in range(count):
        shutil.rmtree(here / "run", ignore_errors=True)
        shutil.copytree(originals / run, here / "run")
        changed = mutated(data, generator)
        put_in_run(here / "run", name, changed)
        if _check(nextword("score", "run", originals / "t.txt", "--json"), changed):
            _check(nextword("generate", "run", "--prompt", "the", "--max-tokens", 4, "--seed", 1), changed)


def _files(originals):
    """Yield a file to damage, and the commands that read it."""
    words = originals / "words"
    yield "x.arpa", (originals / "m.arpa").read_bytes(), (
        ("import", "x.arpa", "--out", "made", "--overwrite"),
        ("score", "made", originals / "t.txt", "--by", "token"),
    )  # fmt: skip
    yield "x.jsonl", JSON_LINES, (("score", words, "x.jsonl"), ("eval", words, "x.jsonl"))
    yield "x.csv", TABLE, (("score", words, "x.csv"), ("data", "check", "x.csv"))
    yield "x.tsv", NBEST, (("rescore", words, "x.tsv"), ("rescore", words, "x.tsv", "--tune", "x.tsv"))
    yield "x.txt", TEXT.encode(), (("filter", words, "x.txt"), ("eval", words, "x.txt"))
    yield "x.nwz", (originals / "t.nwz").read_bytes(), (("decompress", words, "x.nwz", "-o", "x.out"),)
    yield "x.json", (originals / "bpe" / "tokenizer.json").read_bytes(), (
        ("tokenizer", "show", "x.json", "--text", "the cat"),
    )  # fmt: skip
    yield "x.toml", (originals / "words" / "config.toml").read_bytes(), (
        ("train", originals / "t.txt", "--recipe", "x.toml", "--out", "made", "--overwrite"),
    )  # fmt: skip


FILES = ("x.arpa", "x.jsonl", "x.csv", "x.tsv", "x.txt", "x.nwz", "x.json", "x.toml")
IN_RUNS = (
    ("words", "config.toml"),
    ("words", "tokenizer.json"),
    ("words", "training.json"),
    ("words", "metrics.jsonl"),
    ("words", "ngram-2.probs.npy"),
    ("words", "ngram-1.backoffs.npy"),
    ("bpe", "tokenizer.json"),
    ("unbounded", "tokenizer.json"),
)


@pytest.fixture
def alone(nextword, here, originals, monkeypatch):
    """Give the command line to a test, built once for all commands, and a run that it may replace."""
    monkeypatch.setattr("nextword.cli.main.app", typer.main.get_command(app))
    shutil.copytree(originals / "words", here / "made")
    return nextword


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_input_is_one_sentence(alone, here, originals, name):
    (found,) = [each for each in _files(originals) if each[0] == name]
    _damaged_inputs(alone, here, originals, random.Random(name), QUICK, *found)


@pytest.mark.parametrize(("run", "name"), IN_RUNS)
def test_a_damaged_run_with_right_hashes_is_one_sentence(alone, here, originals, run, name):
    _damaged_runs(alone, here, originals, random.Random(run + name), QUICK, run, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_damaged_inputs_are_one_sentence(alone, here, originals, name):
    (found,) = [each for each in _files(originals) if each[0] == name]
    _damaged_inputs(alone, here, originals, random.Random(f"many {name}"), MANY, *found)


@pytest.mark.slow
@pytest.mark.parametrize(("run", "name"), IN_RUNS)
def test_many_damaged_runs_are_one_sentence(alone, here, originals, run, name):
    _damaged_runs(alone, here, originals, random.Random(f"many {run} {name}"), MANY // 3, run, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.safetensors", "config.toml", "tokenizer.json"])
def test_many_damaged_networks_are_one_sentence(alone, here, originals, network, name):
    _damaged_runs(alone, here, originals, random.Random(f"many {name}"), MANY // 5, network, name)
