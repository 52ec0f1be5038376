"""Reports show themselves: confusion matrix, reliability diagram, ROC and F1, in one page without scripts."""

import numpy as np

from nextword.evaluation.classification import report
from nextword.evaluation.tagging import TagCounts
from nextword.models.calibration import Calibration

LOGITS = np.array([[2.0, 0.0], [0.5, 1.0], [0.0, 3.0], [1.0, 0.2]])
GOLD = [("<good>",), ("<good>",), ("bad",), ("bad",)]


def test_a_report_of_two_labels_has_every_picture(tmp_path):
    found = report(LOGITS, GOLD, ["<good>", "bad"], Calibration(), several=False)
    page = found.save(tmp_path / "r.html").read_text()
    for title in ("Confusion matrix", "Reliability diagram", "ROC", "F1 of each label"):
        assert f"<h2>{title}</h2>" in page
    assert page.count("<svg") == 4
    assert "<script" not in page
    assert "<good>" not in page
    assert "&lt;good&gt; · bad: 0.5 share of the texts of a label" in page
    assert f"area below the curve {found.roc_area:.4f}" in page
    assert "<iframe" in found._repr_html_()


def test_several_labels_have_no_confusion_matrix():
    found = report(LOGITS, GOLD, ["<good>", "bad"], Calibration(), several=True)
    assert "<h2>Confusion" not in found.page().html()
    assert "<h2>F1 of each label</h2>" in found.page().html()


def test_a_matrix_of_many_labels_shows_the_most_frequent():
    labels = [f"label{n:02}" for n in range(50)]
    gold = [(labels[n],) for n in range(50) for _ in range(1 + (n >= 10))]
    logits = np.eye(50)[[labels.index(each) for (each,) in gold]] * 5
    page = report(logits, gold, labels, Calibration(), several=False).page().html()
    assert "the 40 most frequent of 50 labels" in page
    assert "label09 · " not in page
    assert "label10 · label10: 1 share" in page


def test_a_tagging_report_shows_the_f1_of_labels_or_tags():
    counts = TagCounts("bio")
    counts.add(["B-place", "O"], ["B-place", "O"])
    assert "<h2>F1 of each label</h2>" in counts.report().page().html()
    counts = TagCounts("none")
    counts.add(["NOUN", "VERB"], ["NOUN", "NOUN"])
    assert "<h2>F1 of each tag</h2>" in counts.report()._repr_html_().replace("&lt;", "<").replace(
        "&gt;", ">"
    )
