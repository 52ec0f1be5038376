"""``--json`` of every verb, for every family: one valid JSON value and nothing else."""

import json

import pytest

from nextword.cli.main import run as run_command
from nextword.core import catalog

FAMILIES = catalog.names("model")
SMALL = {
    "model.hidden": 8,
    "model.embedding": 8,
    "model.dim": 8,
    "model.heads": 2,
    "model.layers": 1,
    "train.steps": 1,
    "train.threads": 1,
}


def _sets(family: str) -> list[str]:
    """Settings of a small network, as far as the family has them."""
    kind = catalog.find("model", family)
    known = {f"model.{name}" for name in kind.Settings.model_fields}
    known |= {f"train.{name}" for name in kind.Training.model_fields}
    return [f"--set={name}={value}" for name, value in SMALL.items() if name in known]


@pytest.fixture(scope="module")
def runs(corpus, saved_run, tmp_path_factory):
    """A small run of a family, made at its first use."""
    folder, made = tmp_path_factory.mktemp("json"), {}

    def of(family: str):
        if family not in made:
            path = folder / family
            if family == "mixture":
                given = ["mix", saved_run, saved_run, "--tune", corpus]
            else:
                tokenizer = "words" if family == "ngram" else "bytes"
                given = ["train", corpus, "--model", family, "--tokenizer", tokenizer, *_sets(family)]
            assert run_command([*map(str, given), "--out", str(path)]) == 0
            made[family] = path
        return made[family]

    return of


def _values(done) -> list:
    """Every line of standard output as JSON; numbers that JSON does not have are mistakes."""
    assert done.code == 0, done.err

    def refuse(name: str):
        raise AssertionError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in done.out.splitlines()]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_verb_prints_one_json_value_for_every_family(nextword, corpus, runs, here, family):
    run = runs(family)
    (here / "t.txt").write_text("the cat sat\n\nthe zebra sang\n")
    (here / "n.tsv").write_text("u1\t-1.5\tthe cat sat\nu1\t-1.0\tcat the sat\n")
    for command in (
        ("score", run, "t.txt"),
        ("score", run, "t.txt", "--by", "token"),
        ("score", run, "t.txt", "--log10", "--no-bos", "--no-eos"),
        ("score", run, "t.txt", "--evidence"),
        ("eval", run, "t.txt"),
        ("filter", run, "t.txt"),
        ("filter", run, "t.txt", "--against", run),
        ("rescore", run, "n.tsv"),
        ("generate", run, "--prompt", "the", "--max-tokens", 3, "--samples", 2),
        ("generate", run, "--max-tokens", 3, "--decode", "beam"),
        ("compress", run, "t.txt", "-o", "t.nw"),
        ("decompress", run, "t.nw", "-o", "again.txt"),
        ("inspect", run, "--text", "the cat", "--what", "surprise"),
        ("doctor", run),
    ):
        assert len(_values(nextword(*command, "--json"))) == 1, command
    for by in ("line", "token"):
        rows = _values(nextword("score", run, "t.txt", "--by", by, "--format", "jsonl"))
        assert [row["text"] for row in rows] == ["the cat sat", "", "the zebra sang"]
        assert by == "line" or all(type(token["known"]) is bool for row in rows for token in row["scores"])
    assert _values(nextword("score", run, "t.txt", "--evidence", "--format", "jsonl"))
    assert (here / "again.txt").read_bytes() == (here / "t.txt").read_bytes()


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("list", "model"),
        ("presets",),
        ("lab", "list"),
        ("data", "list"),
        ("data", "check", "CORPUS"),
        ("tokenizer", "train", "CORPUS", "--out", "t.json"),
        ("tokenizer", "compare", "CORPUS", "--tokenizers", "words,bytes"),
        ("train", "CORPUS", "--model", "ngram", "--out", "r", "--estimate"),
        ("train", "CORPUS", "--model", "ngram", "--out", "r"),
        ("export", "RUN", "--to", "arpa", "--out", "r.arpa"),
        ("inspect", "RUN", "--text", "the cat sat", "--what", "surprise"),
    ],
    ids=" ".join,
)
def test_every_other_verb_prints_one_json_value(nextword, corpus, saved_run, here, command):
    given = [{"CORPUS": corpus, "RUN": saved_run}.get(part, part) for part in command]
    assert len(_values(nextword(*given, "--json"))) == 1


@pytest.mark.parametrize("verb", ["score", "filter"])
def test_lines_under_a_model_of_documents_say_that_the_end_is_left_out(nextword, runs, here, verb):
    (here / "t.txt").write_text("the cat sat\nthe dog sang\n")
    sentence = "the unit of this run is the document"
    assert sentence in nextword(verb, runs("lstm"), "t.txt").err
    assert sentence not in nextword(verb, runs("ngram"), "t.txt").err
