"""One report for every text-to-text job, and two systems compared sentence by sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.evaluation.significance import paired_bootstrap
from nextword.evaluation.translation import measured

pytest.importorskip("sacrebleu")

RIGHT = [[f"the {noun} number {n} sat on the mat"] for n in range(40) for noun in ("cat", "dog")]
SAME = [each[0] for each in RIGHT]
WORSE = [text.replace("sat on", "is at") if at % 2 else text for at, text in enumerate(SAME)]


def test_the_report_has_what_outsiders_look_for():
    found = measured(WORSE, RIGHT).to_json()
    assert {"bleu", "chrf", "signature", "exact_match", "wer", "cer"} <= set(found)
    assert found["exact_match"] == 0.5
    assert found["wer"] == pytest.approx(40 * 2 / (80 * 8))
    json.dumps(found)


def test_the_measure_that_decides_stands_first():
    assert str(measured(WORSE, RIGHT)).startswith("bleu")
    report = measured(["kitchen"], [["kitchen"]], measure="answers")
    assert str(report).startswith("exact match")
    assert report.deciding == 1.0


def test_perplexity_joins_when_references_were_scored():
    report = measured(SAME, RIGHT)
    assert "perplexity" not in report.values()
    assert report.with_scores(20.0, 10).perplexity == pytest.approx(np.exp(2))


def test_a_worse_system_is_told_apart_and_an_equal_one_is_not():
    best, worse = measured(SAME, RIGHT), measured(WORSE, RIGHT)
    found = best.against(worse)
    assert found.tests["bleu"].p < 0.01
    assert found.tests["bleu"].low > 0
    assert "better" in str(found)
    assert "worse" in str(worse.against(best))
    assert best.against(best).tests["chrf"].p == 1.0


def test_fewer_errors_are_better():
    row = next(line for line in str(measured(SAME, RIGHT).against(measured(WORSE, RIGHT))).split("\n")
               if line.startswith("wer"))  # fmt: skip
    assert row.endswith("better")


def test_reports_of_other_texts_are_not_compared():
    with pytest.raises(ConfigError, match=r"80 texts .* the other 1"):
        measured(SAME, RIGHT).against(measured(["a"], [["a"]]))


def test_an_unknown_measure_suggests_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'translation'"):
        measured(["a"], [["a"]], measure="translations")


@pytest.mark.agree
def test_the_paired_bootstrap_agrees_with_that_of_sacrebleu():
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    rng = np.random.default_rng(0)
    words = np.array(list("abcdef"))
    right = [" ".join(rng.choice(words, 9)) for _ in range(150)]
    one, two = ([" ".join(word if rng.random() > rate else "x" for word in text.split()) for text in right]
                for rate in (0.20, 0.27))  # fmt: skip
    _, table = PairedTest([("two", two), ("one", one)], {"BLEU": BLEU(references=[right])}, None,
                          test_type="bs", n_samples=1000)()  # fmt: skip
    mine = measured(one, [[each] for each in right]).against(measured(two, [[each] for each in right]))
    assert mine.tests["bleu"].p == pytest.approx(2 * table["BLEU"][1].p_value, abs=0.03)  # of one side
    assert mine.tests["bleu"].difference == pytest.approx(table["BLEU"][1].score - table["BLEU"][0].score)


def test_systems_that_are_alike_are_rarely_told_apart():
    rng = np.random.default_rng(1)
    values = [
        paired_bootstrap(rng.normal(0, 1, (60, 1)), rng.normal(0, 1, (60, 1)), lambda x: x[:, 0], 300).p
        for _ in range(200)
    ]
    assert sum(value < 0.05 for value in values) <= 20  # 10 expected; 20 is three sigmas
    assert min(values) < 0.1


@pytest.mark.parametrize("name", catalog.names("measure"))
def test_every_measure_reports_what_decides(name):
    job = catalog.find("measure", name)
    report = measured(["(S a b )", "(S a )"], [["(S a b )"], ["(S b )"]], measure=name).with_scores(1.0, 2)
    assert report.deciding is not None
    assert str(report).startswith(job.decides.replace("_", " "))
    assert job.decides in report.to_json()
