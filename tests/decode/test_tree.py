"""The tree of a search holds every token that was kept, and every text."""

from __future__ import annotations

import pytest
from table_models import make_table_model

from nextword.core.contracts import START
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.decode.tree import search_tree


@pytest.mark.parametrize("groups", [1, 2])
def test_tree_has_the_texts_of_the_search_and_the_models_probabilities(groups):
    model = make_table_model(size=9, seed=3)
    asked = DecodeSettings(decode="beam", beam_size=4, n_best=4, groups=groups, max_tokens=6, unknown=True)
    texts, branches = search_tree(model, [4], asked)
    assert texts == collect(generate(model, [[4]], asked))
    paths = [branch.path for branch in branches]
    assert len(set(paths)) == len(paths)
    assert all(text.ids in paths for text in texts)
    for place, branch in enumerate(branches):
        assert branch.parent < place
        assert (paths[branch.parent] if branch.parent >= 0 else ()) == branch.path[:-1]
        before = branch.path[-2] if len(branch.path) > 1 else 4
        assert branch.logprob == pytest.approx(model.logp_VV[before, branch.id])
        assert branch.id != START
    for length in range(1, 7):  # kept ones, and the last tokens of finished texts
        assert sum(len(path) == length for path in paths) <= 8
