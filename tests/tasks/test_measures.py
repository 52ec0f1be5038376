"""An evaluation of pairs measures what their job needs, and takes equal sources as one text."""

from __future__ import annotations

import pytest

import nextword

pytest.importorskip("torch")
pytest.importorskip("sacrebleu")

PAIRS = [("c a t", "K AE T"), ("c a t", "K AH T"), ("d o g", "D AO G"), ("c o g", "K AO G")]
SMALL = {
    "model.hidden": 8, "model.layers": 1, "train.steps": 2, "train.threads": 1, "text.joint": False,
    "train.precision": "fp32",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phones")
    (folder / "t.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS * 3))
    return folder / "t.tsv", nextword.train(
        folder / "t.tsv", model="gru-torch", task="translate", tokenizer="words", set=SMALL
    )


def test_targets_of_one_source_are_its_references(run):
    file, trained = run
    report = trained.evaluate(file, set={"data.measure": "phones"})
    assert report.texts == 3
    assert "nrefs:var" in report.signature
    assert {"phone_error", "word_error", "bleu", "chrf", "exact_match", "wer", "cer"} <= set(report.to_json())
    assert report.decode == "beam of 5"
    assert report.tokens == 12 * 4


def test_a_run_compared_with_itself_shows_no_difference(run):
    file, trained = run
    report = trained.evaluate(file)
    tests = report.beside(trained.evaluate(file)).to_json()["against"]
    assert tests["bleu"]["p"] == 1.0
