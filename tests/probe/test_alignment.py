"""Where a translation looks: words of any script, rows that sum to one, and heads of a Transformer."""

from __future__ import annotations

import numpy as np
import pytest

import nextword
from nextword.core.errors import ConfigError, DataError
from nextword.probe.pairs import by_word, words_of

pytest.importorskip("torch")

PAIRS = [("राम ने रावण को मारा", "Ram killed Ravan"), ("सीता ने राम को देखा", "Sita saw Ram")] * 6
SMALL = {
    "model.hidden": 8, "model.layers": 2, "train.steps": 2, "train.threads": 1, "text.joint": False,
    "train.precision": "fp32",
}  # fmt: skip


def trained(tmp_path, model, **sets):
    (tmp_path / "t.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS))
    return nextword.train(
        tmp_path / "t.tsv", model=model, task="translate", tokenizer="words", set={**SMALL, **sets}
    )


def test_a_given_translation_is_drawn_word_by_word_in_its_script(tmp_path):
    run = trained(tmp_path, "gru-torch")
    found = run.inspect("alignment", "राम ने रावण को मारा ||| Ram killed Ravan")
    assert found.names["S"] == ["राम", "ने", "रावण", "को", "मारा", "</s>"]
    assert found.names["T"] == ["Ram", "killed", "Ravan", "</s>"]
    assert found.arrays["weights_TS"].sum(axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert "रावण" in found.page().html()


def test_heads_of_a_transformer_are_drawn_and_chosen(tmp_path):
    run = trained(tmp_path, "transformer", **{"model.hidden": 16, "model.heads": 2})
    all_of_them = run.inspect("attention", "राम ने रावण को मारा ||| Ram saw Sita").arrays["weights_LNTS"]
    assert all_of_them.shape[:2] == (2, 2)
    assert all_of_them.sum(axis=-1) == pytest.approx(np.ones(all_of_them.shape[:3]), abs=1e-5)
    one = run.inspect("alignment", "राम ने रावण को मारा ||| Ram saw Sita", layer=2, head=1)
    assert one.arrays["weights_TS"] == pytest.approx(all_of_them[1, 0])
    with pytest.raises(ConfigError, match="'head' is 3, and the model has 2"):
        run.inspect("alignment", "राम ||| Ram", layer=1, head=3)


def test_the_beam_of_a_translation_reads_its_source(tmp_path):
    run = trained(tmp_path, "gru-torch")
    one, two = (run.inspect("beam", text).arrays["logp_N"] for text in ("राम ने", "सीता को"))
    assert not np.array_equal(one[:1], two[:1])


def test_without_a_source_and_without_attention_there_is_nothing_to_see(tmp_path):
    with pytest.raises(DataError, match="looked at with a source"):
        trained(tmp_path, "gru-torch").inspect("alignment", "")
    run = trained(tmp_path, "gru-torch", **{"model.context": "init"})
    with pytest.raises(ConfigError, match="translation runs that attend to their source"):
        run.inspect("alignment", "राम")
    with pytest.raises(ConfigError, match="leave them out"):
        trained(tmp_path, "gru-torch").inspect("alignment", "राम ||| Ram", head=1)


def test_tokens_are_put_together_to_words():
    class Pieces:
        def decoder(self):
            return self

        def push(self, index):
            return {3: "kil", 4: "led", 5: " Ra", 6: "van"}[index]

    words = words_of([3, 4, 5, 6, 2], Pieces())
    assert words == [("killed", [0, 1]), ("Ravan", [2, 3]), ("</s>", [4])]
    weights_TS = np.array([[0.1, 0.4, 0.5], [0.3, 0.6, 0.1]])
    assert by_word(weights_TS, [[0, 1]], [[0, 1], [2]]) == pytest.approx(np.array([[0.7, 0.3]]))
