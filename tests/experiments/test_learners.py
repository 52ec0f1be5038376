"""Small taggers and classifiers learn by the trainer's own steps."""

from __future__ import annotations

import numpy as np

from nextword.core.events import Progress
from nextword.experiments.learners import Sentence, accuracies, train_classifier, train_tagger, wrong_labels
from nextword.experiments.small import Count

SETS = {"model.hidden": 12, "model.embedding": 12, "train.steps": 30}


def finished(events):
    told = []
    while True:
        try:
            told.append(next(events))
        except StopIteration as end:
            return end.value, told


def test_a_tagger_learns_and_its_accuracy_is_counted_by_cause():
    sentences = [
        Sentence(("a", "x"), ("A", "X"), ("itself", "itself")),
        Sentence(("b", "x"), ("B", "Y"), ("itself", "before")),
    ] * 40
    count = Count(5)
    tagger, told = finished(train_tagger("window", sentences, 0, {**SETS, "model.reach": 1}, count))
    assert accuracies(tagger, sentences) == {"before": 1.0, "itself": 1.0}
    assert count.done == 35
    assert all(isinstance(each, Progress) and each.done > 5 for each in told)
    wrong = [each._replace(tags=("A", "Y")) for each in sentences[:1]]
    assert accuracies(tagger, wrong) == {"itself": 0.5}


def test_a_classifier_learns_and_its_errors_are_counted_text_by_text():
    texts = [("a good day", "up"), ("a bad day", "down")] * 40
    classifier, _ = finished(train_classifier("lstm", texts, 0, SETS, Count()))
    assert not wrong_labels(classifier, texts).any()
    assert np.array_equal(wrong_labels(classifier, [("a good day", "down"), *texts[1:2]]), [1.0, 0.0])
