"""Networks for other objectives than the next token: what each token can see, by gradients."""

import pytest
import torch

from nextword.core import catalog
from nextword.core.contracts import START
from nextword.core.errors import ConfigError
from nextword.models.impossible import BOTH_SIDES, PREFIXES
from nextword.models.transformer import TransformerSettings

torch.set_num_threads(1)
V, T = 20, 9
SMALL = {"layers": 2, "hidden": 16, "heads": 2, "context": 12, "init": "gpt2"}
FAMILY = catalog.find("model", "transformer")


def network(objective: str, **given):
    torch.manual_seed(1)
    return FAMILY.build(FAMILY.Settings(**{**SMALL, "objective": objective, **given}), V, True)


def seen(made, ahead: int | None = None, rows: int = 1) -> torch.Tensor:
    """Which token's vector changes the feature at which place: ``seen_TT[t, s]``."""
    ids_BT = torch.randint(3, V, (rows, T), generator=torch.Generator().manual_seed(2))
    vectors = []
    made.embedding.register_forward_hook(lambda _, __, out: vectors.append(out) or out)
    ahead_B = None if ahead is None else torch.tensor([ahead] * rows)
    features_BTD = made.read_rows(ids_BT, torch.tensor([T] * rows), ahead_B)
    seen_TT = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        [grad] = torch.autograd.grad(features_BTD[:, t].sum(), vectors[0], retain_graph=True)
        seen_TT[t] = grad[0].abs().sum(dim=-1) > 0
    return seen_TT


@pytest.mark.parametrize("mixer", BOTH_SIDES)
def test_every_token_of_a_masked_model_sees_both_sides(mixer):
    seen_TT = seen(network("masked", mixer=mixer, position="none"))
    reach = T if "conv" not in mixer else 3
    near_TT = (torch.arange(T)[:, None] - torch.arange(T)).abs() < reach
    assert seen_TT[near_TT].all()


def test_prediction_of_a_blank_cannot_see_the_token_that_was_there():
    made = network("masked")
    ids_BT = torch.randint(3, V, (1, T))
    blanked_BT, other_BT = ids_BT.clone(), ids_BT.clone()
    other_BT[0, 4] = 3 + (int(ids_BT[0, 4]) - 2) % (V - 3)
    blanked_BT[0, 4] = V
    with torch.no_grad():
        made.embedding.weight_VE[V] = 7.0  # the blank is a vector of its own, not that of a token
        found = [made.read_rows(each, torch.tensor([T])) for each in (blanked_BT, blanked_BT.clone())]
        assert torch.equal(*found)
        assert not torch.allclose(made.read_rows(other_BT, torch.tensor([T])), found[0])
    logp_NV = made.model().fill(blanked_BT, [T], blanked_BT == V)
    assert logp_NV.shape == (1, V)  # the blank itself is never an answer
    assert logp_NV.exp().sum() == pytest.approx(1, abs=1e-5)
    assert torch.isinf(logp_NV[0, START])


@pytest.mark.parametrize(
    ("mixer", "position"),
    [(mixer, position) for mixer in PREFIXES for position in ("rope", "t5", "alibi", "none")
     if mixer != "latent" or position in ("rope", "none")],
)  # fmt: skip
def test_tokens_of_a_prefix_see_each_other_and_those_after_it_only_what_came_before(mixer, position):
    seen_TT = seen(network("prefix", mixer=mixer, position=position), ahead=4)
    expected_TT = torch.ones(T, T).tril().bool()
    expected_TT[:4, :4] = True
    assert torch.equal(seen_TT, expected_TT)


def test_rows_may_have_prefixes_of_different_lengths():
    made = network("prefix").eval()
    ids_BT = torch.randint(3, V, (3, T))
    lengths_B, ahead_B = torch.tensor([T, 5, T]), torch.tensor([2, 5, 7])
    with torch.no_grad():
        together = made.read_rows(ids_BT, lengths_B, ahead_B)
        for row, length in enumerate(lengths_B.tolist()):
            part = slice(row, row + 1)
            alone = made.read_rows(ids_BT[part, :length], lengths_B[part], ahead_B[part])
            assert torch.allclose(together[row, :length], alone[0], atol=1e-5)


def test_prefix_model_without_a_prefix_reads_from_left_to_right():
    made, plain = network("prefix").eval(), network("causal").eval()
    ids_BT = torch.randint(3, V, (2, T))
    with torch.no_grad():
        assert torch.equal(made.read(ids_BT, made.start(2))[0], plain.read(ids_BT, plain.start(2))[0])
        one = made.read_rows(ids_BT, torch.tensor([T, T]), torch.tensor([1, 1]))
        assert torch.allclose(one, plain.read(ids_BT, plain.start(2))[0], atol=1e-5)


def test_state_after_a_prefix_is_continued_token_by_token():
    made = network("prefix").eval()
    ids_BT = torch.randint(3, V, (1, T))
    with torch.no_grad():
        whole = made.read_rows(ids_BT, torch.tensor([T]), torch.tensor([5]))
        _, state = made.read_prefix(ids_BT[:, :5], torch.tensor([5]))
        rest, _ = made.read(ids_BT[:, 5:], state)
    assert torch.allclose(whole[:, 5:], rest, atol=1e-5)


def test_span_model_writes_between_its_marks():
    for given in ({}, {"encoder_layers": 1}):
        model = network("span", spans={"sentinels": 3}, **given).model()
        spans = model.fill([5, V, 6, 7, V + 1], blanks=2, most=3)
        assert len(spans) == 2
        for span in spans:
            assert 1 <= len(span.ids) <= 3
            assert all(2 < index < V for index in span.ids)
            assert span.logprob < 0


def test_marks_are_learned_and_predicted_by_a_span_model_alone():
    sizes = {name: len(network(name, spans=spans).embedding.weight_VE) for name, spans in (
        ("causal", {}), ("masked", {}), ("prefix", {}), ("span", {"sentinels": 3}),
    )}  # fmt: skip
    assert sizes == {"causal": V, "masked": V + 1, "prefix": V, "span": V + 3}


@pytest.mark.parametrize("objective", ["masked", "prefix", "span"])
def test_parameters_are_counted_as_they_are(objective):
    made = network(objective)
    settings = FAMILY.Settings(**{**SMALL, "objective": objective})
    assert FAMILY.count_parameters(settings, V) == sum(weight.numel() for weight in made.parameters())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"objective": "masked", "mixer": "retnet"}, "'model.mixer' is 'retnet', which looks back only"),
        ({"objective": "prefix", "mixer": "lightconv"}, "'model.mixer' is 'lightconv', which looks back"),
        ({"objective": "masked", "stack": "hourglass"}, "'model.stack' is 'hourglass'"),
        ({"objective": "masked", "encoder_layers": 2}, "set model.objective=span"),
        ({"masks": {"share": 0.3}}, "'model.masks' has options of a part"),
    ],
)
def test_what_cannot_go_together_is_refused_in_one_sentence(given, said):
    with pytest.raises(ConfigError, match=said):
        TransformerSettings(**given)
