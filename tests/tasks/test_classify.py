"""Classification from file to prediction, for every family of classifiers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_texts import labelled_texts, several_labels

import nextword
from nextword.cli import main
from nextword.core import catalog

SMALL = {
    "model.hidden": 16, "model.embedding": 16, "model.spelling_width": 16, "train.precision": "fp32",
    "train.threads": 1,
}  # fmt: skip
QUICK = ["linear", "generative", "ensemble"]
NEURAL = ["window", "rnn", "lstm", "gru", "gru-torch", "mingru", "transformer", "convolution"]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(labelled_texts())
    Path("test.tsv").write_text(labelled_texts(30, seed=1))
    Path("several.tsv").write_text(several_labels())
    return "train.tsv"


def train(texts, model="lstm", steps=40, **sets):
    given = SMALL | {"train.steps": steps} | {key.replace("__", "."): value for key, value in sets.items()}
    return nextword.train(texts, task="classify", model=model, set=given)


@pytest.mark.parametrize("model", NEURAL)
def test_every_neural_family_learns(model, texts):
    run = train(texts, model, steps=100)
    assert run.facts.training["steps"] == 100  # a signal to the tests ends a training early, and learns less
    report = run.evaluate("test.tsv")
    assert report.accuracy > 0.9
    assert report.roc_area > 0.9


@pytest.mark.parametrize("model", QUICK)
@pytest.mark.parametrize("count", [40, 200])  # without and with held-out texts
def test_every_family_without_a_network_learns(model, count, texts):
    Path("train.tsv").write_text(labelled_texts(count))
    run = nextword.train("train.tsv", task="classify", model=model)
    report = run.evaluate("test.tsv")
    assert report.accuracy > 0.9
    found = run.predict(["a great story", "", "an awful film"])
    assert [sum(each.values["probabilities"].values()) for each in found] == pytest.approx([1.0] * 3)


def test_every_family_is_tested():
    assert {*NEURAL, *QUICK} == {*catalog.names("classifier")}


def test_auto_weighs_a_linear_and_a_generative_model(texts, capsys):
    Path("train.tsv").write_text(labelled_texts(200))
    assert main.run(["train", "train.tsv", "--task", "classify", "--out", "run"]) == 0
    told = capsys.readouterr().err
    assert "auto chose the model 'ensemble'" in told
    assert "accuracy of held-out texts: linear " in told
    run = nextword.load("run")
    assert run.evaluate("test.tsv").accuracy > 0.9
    again = nextword.train("train.tsv", task="classify").trained.model
    lines = ["a great story", "an awful film"]
    assert np.array_equal(run.trained.model.logits(lines), again.logits(lines))


@pytest.mark.parametrize(
    ("sets", "minutes", "model", "models"),
    [
        ((), None, "ensemble", ("linear", "generative")),
        ((), 0.1, "ensemble", ("linear", "generative")),
        ((), 2.0, "ensemble", ("linear", "generative", "lstm")),
        (("model.word_ngrams",), 2.0, "linear", None),
        (("model.order", "model.tokens", "data.text"), None, "generative", None),
        (("model.hidden", "train.steps"), None, "lstm", None),
    ],
)
def test_auto_follows_the_settings_and_the_minutes(sets, minutes, model, models):
    choice = catalog.find("task", "classify").choose(sets, minutes)
    assert (choice.model, choice.sets.get("model.models")) == (model, models)


def test_classifiers_without_networks_do_not_load_torch(texts):
    Path("train.tsv").write_text(labelled_texts(120))
    Path("new.txt").write_text("a great story\n")
    program = (
        "import sys\n"
        "from nextword.cli import main\n"
        "assert main.run(['train', 'train.tsv', '--task', 'classify', '--out', 'run']) == 0\n"
        "assert main.run(['predict', 'run', 'new.txt']) == 0\n"
        "assert main.run(['eval', 'run', 'test.tsv']) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pooling", catalog.names("pooling"))
@pytest.mark.parametrize("model", ["lstm", "transformer", "convolution"])
def test_batch_and_padding_change_nothing(model, pooling, texts):
    run = train(texts, model, steps=3, model__pooling=pooling).trained
    lines = ["great", "the film was a very dull story", "", "a a a a a a a a a a a a a a"]
    together = run.model.logits(lines)
    alone = np.concatenate([run.model.logits([line]) for line in lines])
    assert np.allclose(together, alone, atol=1e-5)


def test_predictions_are_probabilities(texts, capsys):
    train(texts).save("run")
    Path("new.txt").write_text("a great story\nan awful film\n")
    assert main.run(["predict", "run", "new.txt", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["label"] for each in found] == ["good", "bad"]
    assert all(sum(each["probabilities"].values()) == pytest.approx(1.0) for each in found)
    assert main.run(["predict", "run", "new.txt"]) == 0
    assert capsys.readouterr().out.startswith("good\t0.")


def test_several_labels_have_thresholds(texts):
    run = train("several.tsv", steps=200)
    report = run.evaluate("several.tsv")
    assert report.several
    assert report.micro_f1 > 0.9
    assert len(run.trained.model.calibration.thresholds) == 3
    (prediction,) = run.predict("prices of wheat and gold rose by 3 today")
    assert set(prediction.values["labels"]) == {"wheat", "gold"}


def test_the_calibration_is_saved(texts):
    run = train(texts)
    run.save("run")
    assert nextword.load("run").trained.model.calibration == run.trained.model.calibration
    one, two = (each.predict("a dull film")[0].values for each in (run, nextword.load("run")))
    assert one == two


def test_balanced_weights_favour_rare_labels(texts):
    rare = "".join(
        line for at, line in enumerate(labelled_texts(200).splitlines(True)) if at % 2 or at % 20 == 0
    )
    Path("rare.tsv").write_text(rare)
    plain, balanced = (train("rare.tsv", steps=4, model__class_weights=kind) for kind in ("none", "balanced"))
    lines = ["the film was a story"]
    logits = [run.trained.model.logits(lines)[0] for run in (plain, balanced)]
    bad = plain.trained.vocabulary.labels.index("bad")
    assert logits[1][bad] - logits[1][1 - bad] > logits[0][bad] - logits[0][1 - bad]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("good film\tgood\nbad\n", "a.tsv", "a.tsv:2: expected 2 columns as in the first line, found 1"),
        ("good film\n", "a.tsv", "a.tsv:1: a line must have a text and a label"),
        ("good\tx\nbad\tx\n", "a.tsv", "all texts have the label 'x'"),
        ("good film\tx\nbad\t\n", "a.tsv", "a.tsv:2: the text has no label"),
        ('text,label\n"open,x\n', "a.csv", "a.csv:2: the table cannot be read here"),
        ('{"text": "a", "label": "x"}\n{"text": \n', "a.jsonl", "a.jsonl:2:9: this line is not JSON"),
        (
            '{"text": "a", "text": "b", "label": "x"}\n',
            "a.jsonl",
            "a.jsonl:1: this line is not JSON (duplicate key 'text'",
        ),
        (
            '{"texts": "a", "label": "x"}\n',
            "a.jsonl",
            "a.jsonl:1: there is no column 'text'; did you mean 'texts'",
        ),
        ("1\tx\tb\tc\n2\ty\tb\tc\n", "a.tsv", "which of the 4 columns is the text?"),
    ],
)
def test_mistakes_name_their_line(text, name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    assert main.run(["train", name, "--task", "classify", "--model", "window", "--out", "run"]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not Path("run").exists()


def test_tables_in_all_forms_are_the_same(tmp_path, monkeypatch):
    from nextword.data.labelled import LabelledDataSettings, LabelledText

    monkeypatch.chdir(tmp_path)
    rows = [("a fine film", "good"), ("dull, long", "bad"), ("great", "good"), ("so poor", "bad")]
    Path("a.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    Path("b.tsv").write_text("".join(f"{label}\t{text}\n" for text, label in rows))
    Path("c.csv").write_text("id,label,text\n" + "".join(f'1,{label},"{text}"\n' for text, label in rows))
    Path("d.csv").write_text("label;text\n" + "".join(f"{label};{text}\n" for text, label in rows))
    Path("e.jsonl").write_text("".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in rows))
    Path("f.txt").write_text("".join(f"__label__{label} {text}\n" for text, label in rows))
    for name in ("a.tsv", "b.tsv", "c.csv", "d.csv", "e.jsonl", "f.txt"):
        found = LabelledText([name], LabelledDataSettings()).read()
        assert [(each.text, each.label) for each in found] == rows, name


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        ("text\tlabel", "{text}\t{label}", ""),
        ("comment\tfeeling", "{text}\t{label}", "the text is 'comment' and the label 'feeling'"),
        ("id\ttext\tpresident", "{n}\t{text}\t{label}", "the text is 'text' and the label 'president'"),
        ("Class Index\tHead\tLines", "{label}\tnews {n}\t{text}", "the text is 'Lines' and the label 'Class"),
        (
            "score\ttitle\ttext\tlabel",
            "{n}\tnews\t{text}\t{label}",
            "the text is 'text' and the label 'label'",
        ),
        ("a warm film\tgood", "{text}\t{label}", None),
    ],
)
def test_a_header_is_found_whatever_its_names(header, row, says, tmp_path):
    from nextword.data.labelled import LabelledDataSettings, LabelledText

    rows = [(f"film {n}, which has a long story", "good" if n % 3 else "bad") for n in range(12)]
    lines = [row.format(n=n, text=text, label=label) for n, (text, label) in enumerate(rows)]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join([header, *lines]) + "\n")
    found = LabelledText([str(path)], LabelledDataSettings())
    assert [(each.text, each.label) for each in found.read()][-12:] == rows
    assert len(found.read()) == (13 if says is None else 12)
    assert (says or "") in found.columns


def test_rare_labels_are_held_out_too_but_never_all_of_their_texts():
    from nextword.data.labelled import Labelled
    from nextword.tasks.labelled_examples import hold_out

    labels = ["often"] * 40 + [f"rare{n % 30}" for n in range(90)] + ["once"]
    examples = [Labelled(str(at), label, "", at) for at, label in enumerate(labels)]
    learned, measured = hold_out(examples, 0.1)
    assert sorted([*learned, *measured]) == sorted(examples)
    assert [each.line for each in measured[:4]] == [9, 19, 29, 39]
    assert [each.line for each in measured[4:]] == [70, 80, 90, 100, 110, 120]
    assert {each.label for each in learned} == set(labels)


def test_labels_with_commas_that_are_names_stay_whole():
    from nextword.data.labelled import Labelled, label_splitter

    places = [Labelled("x", label, "", 1) for label in ("Paris, Texas", "Paris, France", "Rome")]
    assert not label_splitter(places, "auto")[0]
    topics = [Labelled("x", label, "", 1) for label in ("a,b", "a", "b", "b,a")]
    assert label_splitter(topics, "auto")[0]


class SentimentRNN(torch.nn.Module):
    """The slide's class, written out [XMU "RNN in PyTorch"]: embedding, RNN, last state, linear layer."""

    def __init__(self, vocab_size, embedding_dim, hidden_dim, output_dim):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, embedding_dim)
        self.rnn = torch.nn.RNN(embedding_dim, hidden_dim, batch_first=True)
        self.fc = torch.nn.Linear(hidden_dim, output_dim)

    def forward(self, text):
        _, hidden = self.rnn(self.embedding(text))
        return self.fc(hidden.squeeze(0))


def test_the_slides_class_is_one_setting(texts):
    sets = {
        "model.spelling": "none", "model.pooling": "last", "model.bidirectional": "none", "model.layers": 1,
        "train.steps": 2, "model.dropout": 0.0,
    }  # fmt: skip
    del (small := dict(SMALL))["model.spelling_width"]
    run = nextword.train(texts, task="classify", model="rnn", set=small | sets).trained
    network, lexicon = run.model.network, run.vocabulary.lexicon
    slide = SentimentRNN(lexicon.size, 16, 16, 2)
    layer = network.encoder.layers[0][0].layer
    slide.load_state_dict({
        "embedding.weight": network.words.table_VE, "fc.weight": network.to_labels.weight,
        "fc.bias": network.to_labels.bias, "rnn.weight_ih_l0": layer.x_to_h.weight,
        "rnn.weight_hh_l0": layer.h_to_h.weight, "rnn.bias_ih_l0": layer.x_to_h.bias,
        "rnn.bias_hh_l0": torch.zeros(16),
    })  # fmt: skip
    words = ["the", "film", "was", "a", "great", "story"]
    with torch.no_grad():
        theirs = slide(torch.from_numpy(lexicon.word_ids(words))[None]).numpy()
    assert np.allclose(run.model.logits([" ".join(words)]), theirs, atol=1e-5)
