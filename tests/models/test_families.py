"""What holds for every neural family of the catalog: one contract, whatever the network."""

from __future__ import annotations

import copy
import functools
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from families import NEURAL
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after
from small_texts import SENTENCES
from table_models import make_table_model

from nextword.core import catalog
from nextword.core.contracts import END, START, UNKNOWN, Block, Carrier, LanguageModel
from nextword.core.errors import ConfigError, DamagedError
from nextword.evaluation.compress import compressor as packing
from nextword.evaluation.lm.perplexity import evaluate
from nextword.mixtures.mixture import Mixture
from nextword.models.network import NeuralLanguageModel
from nextword.ngram import unbounded
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings
from nextword.store.reading import open_run
from nextword.store.writing import new_run
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

torch.set_num_threads(1)

WORDS, PAD = 30, 29  # the last word is never read: pads are filled with it
TOLERANCE = 1e-5
SMALL = {"layers": 2, "hidden": 16, "embedding": 12, "context": 10}
every_family = pytest.mark.parametrize("name", NEURAL)


def _settings(name: str, **given: Any) -> Any:
    kind = catalog.find("model", name).Settings
    small = {key: value for key, value in SMALL.items() if key in kind.model_fields}
    return kind(**{**small, **given})


@functools.cache
def _model(name: str, vocab_size: int = WORDS, closed: bool = False, **given: Any) -> NeuralLanguageModel:
    torch.manual_seed(5)
    network = catalog.find("model", name).build(_settings(name, **given), vocab_size, closed)
    network.head.prepare(torch.arange(vocab_size).float())
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return NeuralLanguageModel(network)


def _ids(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows * columns).integers(2, PAD, (rows, columns))


def _by_steps(model: LanguageModel, ids_BT: np.ndarray, state: Any = None) -> torch.Tensor:
    state = model.start(len(ids_BT)) if state is None else state
    logp_BV, found = model.next(state), []
    for ids_B in ids_BT.T:
        found.append(logp_BV[torch.arange(len(ids_B)), torch.as_tensor(ids_B)])
        logp_BV, state = model.step(ids_B, state)
    return torch.stack(found, dim=1)


def test_all_neural_families_of_the_lectures_are_there():
    assert {"window", "rnn", "lstm", "gru", "gru-torch", "mingru", "transformer"} <= set(NEURAL)


@every_family
@pytest.mark.parametrize("head", ["softmax", "adaptive"])
def test_steps_give_what_scoring_gives_past_any_context(name, head):
    model, ids_BT = _model(name, head=head), _ids(3, 34)
    logp_BT, state = model.score(ids_BT, np.full(3, 34))
    torch.testing.assert_close(_by_steps(model, ids_BT), logp_BT, atol=TOLERANCE, rtol=0)
    expected_BV = functools.reduce(lambda s, ids_B: model.step(ids_B, s)[1], ids_BT.T, model.start(3))
    torch.testing.assert_close(model.next(state), model.next(expected_BV), atol=TOLERANCE, rtol=0)


@every_family
@given(
    cuts=st.lists(st.integers(0, 40), max_size=4),
    lengths=st.lists(st.integers(0, 40), min_size=3, max_size=3),
)
@settings(max_examples=12, deadline=None)
def test_scoring_in_pieces_with_any_lengths_gives_what_scoring_at_once_gives(name, cuts, lengths):
    model, ids_BT, lengths_B = _model(name), _ids(3, 40), np.array(lengths)
    whole_BT, last = model.score(ids_BT, lengths_B)
    edges, state, found = [0, *sorted(cuts), 40], None, []
    for first, end in itertools.pairwise(edges):
        part_B = np.clip(lengths_B - first, 0, end - first)
        logp_BT, state = model.score(ids_BT[:, first:end], part_B, state)
        found.append(logp_BT)
    torch.testing.assert_close(torch.cat(found, dim=1), whole_BT, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(model.next(state), model.next(last), atol=TOLERANCE, rtol=0)
    assert not whole_BT[np.arange(40) >= lengths_B[:, None]].any()


@every_family
def test_a_row_is_scored_as_it_is_alone(name):
    model, ids_BT, lengths_B = _model(name), _ids(4, 25), np.array([25, 7, 0, 13])
    logp_BT, state = model.score(ids_BT, lengths_B)
    for row, length in enumerate(lengths_B):
        alone_1T, after = model.score(ids_BT[row : row + 1, :length], np.array([length]))
        torch.testing.assert_close(logp_BT[row, :length], alone_1T[0], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(
            model.next(model.reorder(state, np.array([row]))), model.next(after), atol=TOLERANCE, rtol=0
        )


@every_family
def test_what_stands_past_the_end_changes_nothing(name):
    model, ids_BT, lengths_B = _model(name, tied=False), _ids(4, 25), np.array([25, 7, 0, 13])
    expected_BT, after = model.score(ids_BT, lengths_B)
    broken = _broken(name)
    filled_BT = np.where(np.arange(25) < lengths_B[:, None], ids_BT, PAD)
    found_BT, state = broken.score(filled_BT, lengths_B)
    torch.testing.assert_close(found_BT, expected_BT, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(broken.next(state), model.next(after), atol=TOLERANCE, rtol=0)
    found_BT, _ = broken.score(filled_BT, lengths_B, state)
    expected_BT, _ = model.score(ids_BT, lengths_B, after)
    torch.testing.assert_close(found_BT, expected_BT, atol=TOLERANCE, rtol=0)


def _broken(name: str) -> NeuralLanguageModel:
    """The same weights, but the vector of the pads' word is not a number."""
    network = catalog.find("model", name).build(_settings(name, tied=False), WORDS, False)
    network.load_state_dict(_model(name, tied=False).network.state_dict())
    with torch.no_grad():
        network.embedding.weight_VE[PAD] = torch.nan
    return NeuralLanguageModel(network)


@every_family
def test_no_words_leave_the_state_as_it_was(name):
    model = _model(name)
    state = model.score(_ids(2, 5), np.array([5, 5]))[1]
    before_BV = model.next(state).clone()
    for ids_BT in (np.zeros((2, 0), np.int64), _ids(2, 3)):
        logp_BT, after = model.score(ids_BT, np.zeros(2, np.int64), state)
        assert logp_BT.shape == ids_BT.shape
        assert not logp_BT.any()
        torch.testing.assert_close(model.next(after), before_BV, atol=TOLERANCE, rtol=0)


@every_family
def test_rows_are_reordered_repeated_and_dropped(name):
    model, ids_BT = _model(name), _ids(3, 14)
    state = model.score(ids_BT, np.array([14, 9, 12]))[1]
    rows = np.array([2, 0, 0, 1])
    picked = model.reorder(state, rows)
    torch.testing.assert_close(model.next(picked), model.next(state)[rows])
    words = np.array([4, 5, 6, 7])
    expected = [model.step(words[i : i + 1], model.reorder(state, rows[i : i + 1]))[0][0] for i in range(4)]
    torch.testing.assert_close(model.step(words, picked)[0], torch.stack(expected), atol=TOLERANCE, rtol=0)


@functools.cache
def _any_model(name: str) -> LanguageModel:
    """A small model of every family of the catalog; a new family that is not neural needs a line here."""
    if name in NEURAL:
        return _model(name)
    lines = [[START, *np.random.default_rng(i).integers(3, 12, 9), END] for i in range(30)]
    ids = np.concatenate(lines).astype(np.int32)
    made = {
        "ngram": lambda: build(ids, WORDS, NgramSettings(order=4)),
        "unbounded": lambda: unbounded.build(ids, WORDS, unbounded.UnboundedSettings()),
        "mixture": lambda: Mixture(
            [_any_model("ngram"), _model("lstm"), _model("transformer")], [0.4, 0.3, 0.3]
        ),
    }
    return made[name]()


JOINED = [  # rows that have read nothing, a few words, a full window (10 words with START) and more
    [[[4, 5, 6], []], [[]], [[*range(3, 12)]], [[*range(3, 12)] * 3, [7]]],
    [[[4, 5, 6, 7, 8]], [[9]]],
    [[[*range(3, 12)] * 2], [[5] * 8], [[6] * 9, [6] * 10]],
]


@pytest.mark.parametrize("name", catalog.names("model"))
@pytest.mark.parametrize("texts", JOINED)
@pytest.mark.parametrize("is_begun", [True, False])
def test_joined_rows_go_on_as_they_do_apart(name, texts, is_begun):
    model = _any_model(name)
    states = states_after(model, texts, [True, is_begun] * (len(texts) // 2) + [True] * (len(texts) % 2))
    rows = [[3 + at, 5, 4][: 1 + at % 3] for at in range(sum(map(len, texts)))]
    check_joined(model, states, rows, 0.0 if name in ("ngram", "unbounded") else 1e-6)


@pytest.mark.parametrize("name", catalog.names("model"))
def test_requests_enter_and_leave_a_running_batch(name):
    model, ids_BT = _any_model(name), _ids(4, 30)
    alone = [model.score(ids_BT[row : row + 1], np.array([30]))[0][0] for row in range(4)]
    state, members, read, found = model.start(1), [0], [0] * 4, [[] for _ in range(4)]
    for step in range(60):
        if step in (3, 9, 17):  # one more request enters
            members = [*members, len(members) + members[0]]
            state = model.join([state, model.start(1)])
        logp_BV = model.next(state)
        words = np.array([ids_BT[row, read[row]] for row in members])
        for at, row in enumerate(members):
            found[row].append(float(logp_BV[at, words[at]]))
            read[row] += 1
        state = model.step(words, state)[1]
        going = [at for at, row in enumerate(members) if read[row] < 30]
        if len(going) < len(members):  # one leaves
            members, state = [members[at] for at in going], model.reorder(state, np.array(going))
        assert model.rows(state) == len(members)
        if not members:
            break
    assert read == [30] * 4
    np.testing.assert_allclose(np.array(found), np.stack(alone), atol=TOLERANCE, rtol=0)
    again = model.join([state, model.start(1)])  # into a batch that all have left
    np.testing.assert_allclose(model.next(again), model.next(model.start(1)), atol=TOLERANCE, rtol=0)


def test_a_state_joined_with_no_other_shares_nothing_that_is_written():
    model = _model("transformer")
    state = model.score(_ids(2, 4), np.array([4, 4]))[1]
    state = model.step(np.array([3, 4]), state)[1]  # buffers with room
    copied = model.reorder(state, np.array([0, 1]))  # the state itself stays the newest owner of its buffers
    expected = model.step(np.array([5, 6]), model.step(np.array([5, 6]), copied)[1])[0].clone()
    after = model.step(np.array([5, 6]), model.join([state]))[1]
    model.step(np.array([7, 8]), state)
    torch.testing.assert_close(model.step(np.array([5, 6]), after)[0], expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", catalog.names("model"))
def test_a_language_model_refuses_a_source(name):
    for model in (_any_model(name), make_table_model()):
        with pytest.raises(ConfigError, match="a source was given to a language model"):
            model.start(1, np.array([[3, 4]]))


@every_family
def test_an_old_state_stays_valid(name):
    model = _model(name)
    state = model.score(_ids(2, 6), np.array([6, 4]))[1]
    first, _ = model.step(np.array([5, 6]), state)
    later = model.step(np.array([7, 8]), state)[1]
    for word in range(3, 20):
        later = model.step(np.array([word, word]), later)[1]
    again, _ = model.step(np.array([5, 6]), state)
    torch.testing.assert_close(again, first, atol=TOLERANCE, rtol=0)


@every_family
@pytest.mark.parametrize("closed", [False, True])
def test_distributions_sum_to_one_without_impossible_words(name, closed):
    model = _model(name, closed=closed)
    for begin in (True, False):
        state = model.score(_ids(2, 13), np.array([13, 0]), model.start(2, None, begin))[1]
        p_BV = model.next(state).exp()
        torch.testing.assert_close(p_BV.sum(dim=-1), torch.ones(2))
        assert not p_BV[:, START].any()
        assert bool((p_BV[:, UNKNOWN] == 0).all()) is closed


@every_family
def test_a_model_is_a_carrier_if_its_settings_say_so(name):
    assert isinstance(_model(name), Carrier)
    assert not isinstance(_model(name, carry=False), Carrier)
    assert isinstance(_model(name), LanguageModel)


@every_family
@pytest.mark.parametrize("head", ["softmax", "adaptive"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_saved_model_gives_equal_numbers(name, head, tied, tmp_path):
    family, model = catalog.find("model", name), _model(name, head=head, tied=tied)
    loaded = _saved_and_loaded(family, model, tmp_path, _settings(name, head=head, tied=tied))
    ids_BT = _ids(2, 15)
    assert torch.equal(loaded.score(ids_BT, np.array([15, 9]))[0], model.score(ids_BT, np.array([15, 9]))[0])
    assert len(list(loaded.network.parameters())) == len(list(model.network.parameters()))  # tied as before


def _saved_and_loaded(family: Any, model: LanguageModel, path: Any, options: Any) -> Any:
    with new_run(path / "run") as folder:
        family.save(model, folder)
    tokenizer = fit_tokenizer("words", [Block(b"a", True)], TextSettings())
    tokenizer.vocab_size = WORDS
    return family.load(open_run(path / "run"), options, tokenizer)


@every_family
def test_weights_that_do_not_fit_are_refused_in_one_sentence(name, tmp_path):
    family, model = catalog.find("model", name), _model(name)
    with pytest.raises(DamagedError, match="does not fit the settings") as caught:
        _saved_and_loaded(family, model, tmp_path, _settings(name, hidden=24))
    assert "\n" not in str(caught.value)


@every_family
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_in_one_sentence(name, value, tmp_path):
    family, model = catalog.find("model", name), copy.deepcopy(_model(name))
    with torch.no_grad():
        next(iter(model.network.parameters())).view(-1)[0] = value
    with pytest.raises(DamagedError, match=r"1 of the [\d,]+ numbers of .* NaN or infinite") as caught:
        _saved_and_loaded(family, model, tmp_path, _settings(name))
    assert "\n" not in str(caught.value)


@every_family
def test_a_bidirectional_language_model_is_refused(name):
    if "bidirectional" in catalog.find("model", name).Settings.model_fields:
        with pytest.raises(ConfigError, match="would see the token it has to predict"):
            _settings(name, bidirectional=True)


TEXT = (SENTENCES * 9).encode()


def _compressible(name: str, tokenizer: Any) -> NeuralLanguageModel:
    """A model that knows at least how frequent words are."""
    model = _model(name, tokenizer.vocab_size, tokenizer.closed)
    ids = np.concatenate([piece.ids for piece in tokenizer.encode_blocks([Block(TEXT, True)])])
    model.network.head.prepare(torch.from_numpy(np.bincount(ids, minlength=tokenizer.vocab_size)))
    return model


@every_family
@pytest.mark.parametrize("kind", ["words", "bytes"])
def test_a_compressed_file_comes_back_and_has_the_size_that_was_measured(name, kind):
    tokenizer = fit_tokenizer(kind, [Block(TEXT, True)], TextSettings())
    model = _compressible(name, tokenizer)
    data = TEXT[: 600 if kind == "bytes" else len(TEXT)]
    threads = torch.get_num_threads()
    coded = packing.compress(model, tokenizer, data, "run")
    assert packing.decompress(model, tokenizer, coded, "run") == data
    assert torch.get_num_threads() == threads
    bits = evaluate(model, tokenizer, [Block(data, True)]).bits_per_byte * len(data)
    assert abs(8 * (len(coded) - packing.HEADER) - bits) < 0.01 * bits + 64


def test_a_mixture_with_counts_compresses_too():
    tokenizer = fit_tokenizer("words", [Block(TEXT, True)], TextSettings())
    ids = np.concatenate([piece.ids for piece in tokenizer.encode_blocks([Block(TEXT, True)])])
    counts = build(ids, tokenizer.vocab_size, NgramSettings(order=2))
    mixture = Mixture([counts, _compressible("lstm", tokenizer)], (0.5, 0.5))
    coded = packing.compress(mixture, tokenizer, TEXT, "run")
    assert packing.decompress(mixture, tokenizer, coded, "run") == TEXT
    report = evaluate(mixture, tokenizer, [Block(TEXT, True)])
    bits = report.bits_per_byte * len(TEXT)
    assert abs(8 * (len(coded) - packing.HEADER) - bits) < 0.01 * bits + 64
    assert "ctx:document|" in report.signature


def test_a_line_ends_like_any_word_in_a_carried_text():
    model = _model("gru")
    lines = np.array([[3, 4, END, 5, 6, END]])
    logp_BT, _ = model.score(lines, np.array([6]))
    first, state = model.score(lines[:, :3], np.array([3]))
    second, _ = model.score(lines[:, 3:], np.array([3]), model.carry(state))
    torch.testing.assert_close(torch.cat([first, second], dim=1), logp_BT, atol=TOLERANCE, rtol=0)
