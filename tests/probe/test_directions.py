"""Gates and eigenvalues of taggers and classifiers: those of the encoder's own layers, by direction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from labelled_texts import labelled_texts, tagged_sentences

import nextword
from nextword.cli import main
from nextword.core.errors import ConfigError, DataError
from nextword.probe import directions

SMALL = {
    "model.hidden": 8, "model.layers": 2, "model.embedding": 6, "model.spelling_width": 8, "train.threads": 1,
    "train.steps": 2, "train.precision": "fp32",
}  # fmt: skip
LINES = "Ann often visits New York .\nBob sees Rome .\n"
WORDS = ["Ann", "often", "visits", "New", "York", ".⏎", "Bob", "sees", "Rome", ".⏎"]
ROWS = [f"layer {layer}, {way}" for layer in (1, 2) for way in ("left to right", "right to left")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a function that trains a small model once."""
    folder, made = tmp_path_factory.mktemp("runs"), {}
    (folder / "tag").write_text(tagged_sentences())
    (folder / "classify").write_text(labelled_texts())

    def run(task="tag", model="lstm", **sets):
        key = (task, model, *sets.items())
        if key not in made:
            chosen = SMALL | {f"model.{name}": value for name, value in sets.items()}
            made[key] = nextword.train(folder / task, task=task, model=model, set=chosen)
        return made[key]

    return run


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_gates_have_a_row_for_each_layer_and_direction(runs, task):
    found = nextword.inspect(runs(task), "gates", LINES)
    assert list(found.names["L"]) == ROWS
    assert list(found.names["T"]) == WORDS
    assert found.arrays["forget_LTH"].shape == (4, 10, 8)
    assert "layer 2, right to left" in str(found)


@pytest.mark.parametrize("tying", ["separate", "tied"])
def test_the_gates_at_the_word_that_is_read_first_are_the_cells_own(runs, tying):
    run = runs(bidirectional=tying)
    found = nextword.inspect(run, "gates", LINES).arrays["input_LTH"]
    encoder = run.model.network.encoder
    x_1TE = _vectors(run, LINES.split("\n")[0])
    for place, at in ((0, 0), (1, 5)):  # from the left the first word is read first, from the right the last
        cell = encoder.layers[0][place].layer
        state = (torch.zeros(1, 8), torch.zeros(1, 8))
        own = cell.gates(x_1TE[:, at], state)["input"]
        assert found[place, at] == pytest.approx(own[0].detach().numpy(), abs=1e-6)


def test_reading_direction_by_direction_gives_what_the_encoder_gives(runs):
    run = runs(model="gru")
    encoder, x_1TE = run.model.network.encoder, _vectors(run, LINES.split("\n")[0])
    held = directions.hold(encoder, x_1TE, {}, [0, 1])
    assert held.moved_T == pytest.approx(np.zeros(6))
    own, _ = directions._stepped(encoder, {}, [0, 1], 3)
    with torch.no_grad():
        length = torch.tensor([6])
        assert torch.allclose(own(x_1TE, length), encoder(x_1TE, length), atol=1e-6)


@pytest.mark.parametrize(("model", "text"), [("lstm", "forget=1,input=0"), ("gru", "update=0")])
def test_gates_set_by_hand_keep_the_memory_in_both_directions(runs, model, text):
    found = nextword.inspect(runs(model=model), "gates", LINES, set_gate=text)
    free, held = found.arrays["change_LT"], found.arrays["held_change_LT"]
    assert np.array_equal(free[:2, :3], held[:2, :3])
    assert (free[:, 3:] > 0).all()
    assert (held[:, 3:] == 0).all()
    assert "stays exactly as it was" in found.sentence
    titles = [part.title for part in found.parts]
    assert titles == [f"How far the memory of {row} moves at each token" for row in ROWS[:2]]
    upper = nextword.inspect(runs(model=model), "gates", LINES, set_gate=text, layer=2)
    assert (upper.arrays["held_change_LT"][:2, 3:] > 0).all()


def test_units_of_a_layer_are_drawn_for_both_directions(runs):
    found = nextword.inspect(runs(model="mingru"), "gates", LINES, layer=2)
    titles = [part.title for part in found.parts if hasattr(part, "svg")][1:]
    assert titles == [f"Layer 2, {way}, update gate: the 8 units that move most" for way in directions.WAYS]


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_eigenvalues_are_of_each_directions_matrix(runs, task):
    run = runs(task, "rnn")
    found = nextword.inspect(run, "eigenvalues", LINES, layer=2)
    for place, way in enumerate(directions.WAYS):
        weight = run.model.network.encoder.layers[1][place].layer.h_to_h.weight.detach().double().numpy()
        own = np.linalg.eigvals(weight)
        assert sorted(np.abs(found.arrays[f"λ h to h, {way}"])) == pytest.approx(sorted(np.abs(own)))
        assert len(found.arrays[f"products_K, {way}"]) == 6  # words of the longer sentence
        assert f"The matrix 'h to h, {way}' has" in found.sentence


def test_a_step_back_of_an_encoder_is_its_derivative(runs):
    run = runs(model="rnn")
    reader, x_T1E = directions.inputs(run.model.network.encoder, _vectors(run, "Ann sees Rome ."))[1]
    assert reader.name == "layer 1, right to left"
    last = next(directions.jacobians(reader, x_T1E))
    states = [torch.zeros(1, 8)]
    for x_1E in x_T1E:
        states.append(reader.cell(x_1E, (states[-1],))[0].detach())
    expected = torch.autograd.functional.jacobian(lambda h_H: reader.cell(x_T1E[-1], (h_H[None],))[0][0],
                                                  states[-2][0])  # fmt: skip
    assert last == pytest.approx(expected.numpy(), abs=1e-6)


def test_eigenvalues_need_no_text(runs):
    found = nextword.inspect(runs(), "eigenvalues")
    assert not any(name.startswith("products") for name in found.arrays)
    assert "λ h to new, right to left" in found.arrays


def test_one_direction_is_shown_alone(runs):
    found = nextword.inspect(runs(model="gru-torch", bidirectional="none"), "gates", LINES)
    assert list(found.names["L"]) == ROWS[::2]


def test_encoders_without_gates_or_matrices_say_so(runs):
    with pytest.raises(ConfigError, match=r"'gates' is for networks with gates .* is a tagger"):
        nextword.inspect(runs(model="rnn"), "gates", LINES)
    with pytest.raises(ConfigError, match=r"'eigenvalues' is for recurrent networks .* is a tagger"):
        nextword.inspect(runs(model="mingru"), "eigenvalues", LINES)
    with pytest.raises(ConfigError, match="'eigenvalues' is for recurrent networks"):
        nextword.inspect(runs(model="window"), "eigenvalues", LINES)
    with pytest.raises(DataError, match="no sentence has three words"):
        nextword.inspect(runs(), "gates", "Ann sees\n", set_gate="forget=1")


def test_both_are_on_the_page_of_everything(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs().save("run")
    assert main.run(["inspect", "run", "--text", LINES, "--out", "p.html"]) == 0
    page = (tmp_path / "p.html").read_text()
    assert "How open the gates are: run" in page
    assert "Eigenvalues of layer 1: run" in page


def _vectors(run, text):
    from nextword.api.inspect import subject_of

    return subject_of(run, text).sentence_vectors(100)[0]
