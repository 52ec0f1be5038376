"""LSTM or GRU: a verdict on time needs all seeds to agree."""

from __future__ import annotations

import numpy as np

from nextword.evaluation.significance import Test as Significance
from nextword.experiments import lstm_or_gru
from nextword.experiments.finding import Verdict


def test_quicker_means_quicker_in_every_seed():
    assert lstm_or_gru.in_time(np.array([0.7, 0.8])) is Verdict.HELD
    assert lstm_or_gru.in_time(np.array([1.4, 1.2])) is Verdict.FAILED
    assert lstm_or_gru.in_time(np.array([0.8, 1.2])) is Verdict.OPEN
    assert lstm_or_gru.in_time(np.array([0.97, 1.01])) is Verdict.OPEN


def test_a_slower_gru_is_not_called_quicker():
    def trials(weights, seconds, cost):
        return lstm_or_gru.Trials(weights, [seconds] * 3, [], [np.array([cost])] * 3)

    both = {"lstm": trials(400, 1.0, 2.0), "gru": trials(300, 1.43, 2.1)}
    recalls = {"lstm": [0.5, 0.6, 0.7], "gru": [0.6, 0.7, 0.8]}
    findings = lstm_or_gru._judged(both, Significance(0.1, 0.0, 0.2, 0.03, None), recalls, 0.4, quick=False)
    verdicts = {each.claim: each.verdict for each in findings}
    assert verdicts[lstm_or_gru.FEWER] is Verdict.HELD
    assert verdicts[lstm_or_gru.QUICKER] is Verdict.FAILED
    assert verdicts[lstm_or_gru.NEITHER] is Verdict.HELD
