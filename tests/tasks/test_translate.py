"""Translation from files to predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pairs import pairs, table

import nextword
from nextword.cli import main
from nextword.core.errors import ConfigError
from nextword.core.events import Note
from nextword.models.build import shape_of
from nextword.runs.settings import from_toml, plan
from nextword.tasks.sizes import TRANSLATED
from nextword.training.order import Order

SMALL = {
    "model.hidden": 32, "model.layers": 1, "model.dropout": 0.0, "train.rate": 0.02,
    "train.precision": "fp32", "train.batch": 16, "train.threads": 1,
    "train.valid_every": 1000, "text.tokenizer": "words", "train.save_every": 1000,
}  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(table())
    Path("test.tsv").write_text(table(20, seed=1))
    Path("test.txt").write_text("".join(source + "\n" for source, _ in pairs(20, seed=1)))
    return "train.tsv"


def train(files, model="transformer", steps=60, out=None, **sets):
    given = SMALL | {"train.steps": steps} | {key.replace("__", "."): value for key, value in sets.items()}
    return nextword.train(files, task="translate", model=model, set=given, out=out)


@pytest.mark.parametrize(("model", "steps", "rate"), [("gru", 80, 0.02), ("transformer", 300, 0.005)])
def test_words_change_their_order(model, steps, rate, files):
    run = train(files, model, steps, train__rate=rate)
    report = run.evaluate("test.tsv")
    assert report.bleu > 90
    assert report.exact_match > 0.8
    assert 1 < report.perplexity < 2
    assert {"bleu", "chrf", "signature", "exact_match", "perplexity"} <= report.to_json().keys()


@pytest.mark.parametrize(
    ("read", "epoch", "length", "rows"),
    [
        (100, 2_000, 0.5, 16),  # never fewer
        (57_000, 29_000, 0.5, 40),  # 4 CPU minutes of Multi30k
        (57_000, 2_500, 0.5, 24),  # an epoch has at least a hundred batches
        (1_000_000, 29_000, 0.5, 200),
        (57_000, 29_000, 3.0, 136),  # of long pairs some, too
        (10**9, 10**8, 0.5, 256),
    ],
)
def test_batches_grow_with_the_pairs_that_are_read(read, epoch, length, rows):
    assert TRANSLATED.batch(read, epoch, length) == rows


def test_narrow_transformers_have_four_heads_and_those_of_earlier_runs_one():
    text = plan("transformer", task="translate", sets={"model.hidden": 96}).to_toml()
    assert shape_of(from_toml(text, "config.toml").model).heads == 4
    lines = [line for line in text.split("\n") if not line.startswith("fewest_heads")]
    assert len(lines) < len(text.split("\n"))
    assert shape_of(from_toml("\n".join(lines), "config.toml").model).heads == 1


def test_predictions_come_in_order_whatever_the_batch(files, capsys):
    train(files, steps=40, out="run")
    assert main.run(["predict", "run", "test.txt"]) == 0
    every = capsys.readouterr().out.split("\n")
    assert len(every) == 21
    Path("few.txt").write_text("".join(line + "\n" for line in Path("test.txt").read_text().split("\n")[3:5]))
    for decode in ("beam", "greedy"):
        main.run(["predict", "run", "test.txt", "--decode", decode])
        all_lines = capsys.readouterr().out.split("\n")
        main.run(["predict", "run", "few.txt", "--decode", decode])
        assert capsys.readouterr().out.split("\n")[:2] == all_lines[3:5]


def test_json_has_scores_hypotheses_and_alignment(files, capsys):
    train(files, steps=20, out="run")
    Path("one.txt").write_text("the red dog sees the blue cat\n\n")
    assert main.run(["predict", "run", "one.txt", "--json", "--n-best", "3", "--alignment"]) == 0
    first, empty = (json.loads(line) for line in capsys.readouterr().out.split("\n")[:2])
    assert empty == {"text": "", "score": 0.0}
    assert len(first["hypotheses"]) == 3
    best = first["hypotheses"][0]
    assert (best["text"], best["score"]) == (first["text"], first["score"])
    assert len(best["pieces"]) == len(best["logprobs"])
    aligned = first["alignment"]
    assert len(aligned["weights"]) == len(aligned["target"])
    assert all(sum(row) == pytest.approx(1, abs=1e-2) for row in aligned["weights"])


def test_aligned_files_are_given_side_by_side(files, capsys):
    for name, seed, count in (("a", 0, 100), ("v", 2, 10)):
        for side, ending in enumerate(("en", "fr")):
            lines = [pair[side] for pair in pairs(count, seed)]
            Path(f"{name}.{ending}").write_text("\n".join(lines) + "\n")
    sets = [f"--set={key}={value}" for key, value in (SMALL | {"train.steps": 3}).items()]
    named = ["a.en", "a.fr", "--task", "translate", "--valid", "v.en", "v.fr", "--out", "run"]
    assert main.run(["train", *named, *sets]) == 0
    assert json.loads(Path("run/training.json").read_text())["data"]["names"] == ["a.en", "a.fr"]
    assert main.run(["eval", "run", "v.en", "v.fr", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n")[-2])["texts"] == 10


def test_a_run_can_be_saved_and_opened_with_two_vocabularies(files):
    run = train(files, steps=5, text__joint=False)
    before = [each.text for each in run.predict(["the red dog"])]
    run.save("run")
    again = nextword.load("run")
    assert not again.trained.vocabulary.joint
    assert [each.text for each in again.predict(["the red dog"])] == before


def test_verbs_of_language_models_send_to_predict(files):
    run = train(files, steps=2)
    with pytest.raises(ConfigError, match="translation model, and this needs a language model"):
        run.generate("the")


def test_swapped_files_are_noticed(files):
    run = train(files, steps=2)
    lines = "".join(f"{target}\t{source}\n" for source, target in pairs(50))
    Path("swapped.tsv").write_text(lines)
    from nextword.api.eval import evaluating

    notes = [event.message for event in evaluating(run, ["swapped.tsv"]) if isinstance(event, Note)]
    assert any("the other way round" in note for note in notes)


def test_long_pairs_are_left_out_and_counted(files):
    from nextword.api.train import run as training

    Path("long.tsv").write_text(table(50) + "the dog " * 40 + "\tle chien\n")
    sets = SMALL | {"train.steps": 1, "data.longest": 30}
    order = Order(("long.tsv",), task="translate", model="gru", sets=sets)
    notes = [event.message for event in training(order, keep=False) if isinstance(event, Note)]
    assert any("1 of 49 pairs is longer than 30 tokens" in note for note in notes)


@pytest.mark.parametrize("model", ["lstm", "transformer"])
@pytest.mark.parametrize("forcing", ["free", "scheduled(linear)"])
def test_own_tokens_may_be_read_in_training(model, forcing, files):
    run = train(files, model, steps=3, train__forcing=forcing)
    assert run.evaluate("test.tsv").perplexity > 1


def test_targets_are_scored_after_their_sources(files, capsys):
    train(files, steps=60, out="run")
    good, bad = pairs(1, seed=5)[0]
    Path("two.tsv").write_text(f"{good}\t{bad}\n{good}\tle chien chien chien\n")
    assert main.run(["score", "run", "two.tsv"]) == 0
    first, second = (line.split("\t") for line in capsys.readouterr().out.split("\n")[:2])
    assert float(first[0]) > float(second[0])
    assert (int(first[1]), int(second[1])) == (len(bad.split()) + 1, 5)
    assert main.run(["score", "run", "two.tsv", "--by", "token", "--format", "jsonl"]) == 0
    tokens = json.loads(capsys.readouterr().out.split("\n")[0])
    assert sum(token["logprob"] for token in tokens["scores"]) == pytest.approx(tokens["logprob"], abs=1e-5)


def test_several_runs_write_one_text(files):
    one = train(files, steps=20, train__seed=1, out="one")
    alone = one.predict(["the red dog sees the blue cat"], decode="greedy")
    twice = one.predict(["the red dog sees the blue cat"], decode="greedy", beside=["one"])
    assert twice[0].text == alone[0].text
    assert twice[0].values["score"] == pytest.approx(alone[0].values["score"], abs=1e-4)
    train(files, steps=2, text__tokenizer="characters", out="other")
    with pytest.raises(ConfigError, match="other"):
        one.predict(["the red dog"], beside=["other"])


def test_training_starts_from_a_translation_model_or_a_language_model(files):
    train(files, steps=40, out="first")
    sets = SMALL | {"train.steps": 1, "train.rate": 1e-9}
    sets = {key: value for key, value in sets.items() if not key.startswith(("model.", "text."))}
    again = nextword.train(files, task="translate", source="first", set=sets)
    first = nextword.load("first")
    assert again.evaluate("test.tsv").perplexity == pytest.approx(first.evaluate("test.tsv").perplexity, 1e-3)
    Path("french.txt").write_text("".join(target + "\n" for _, target in pairs()))
    small = {"model.hidden": 32, "model.layers": 1, "train.steps": 2, "train.precision": "fp32"}
    nextword.train("french.txt", model="transformer", tokenizer="bpe", set=small, out="language")
    run = nextword.train(files, task="translate", source="language", set=sets)
    old = nextword.load("language").model.network.state_dict()
    new = run.model.network.state_dict()
    assert all((new[key] - old[key]).abs().max() < 1e-6 for key in old)
    assert any(".cross." in key for key in new)


def test_a_run_that_copies_is_trained_saved_and_used(files):
    run = train(files, "gru", 12, "copies", model__copying=True, model__coverage=True, train__log_every=4)
    steps = [json.loads(line) for line in Path("copies/metrics.jsonl").read_text().split("\n") if line]
    assert all(step["loss_coverage"] > 0 for step in steps if "loss" in step)
    texts = ["the red dog sees the blue cat", "the zebra"]
    again = nextword.load("copies")
    assert [each.text for each in again.predict(texts)] == [each.text for each in run.predict(texts)]
    assert again.evaluate("test.tsv").perplexity == pytest.approx(run.evaluate("test.tsv").perplexity, 1e-4)


@pytest.mark.parametrize("model", ["gru", "transformer"])
def test_copying_may_be_added_to_an_earlier_run(files, model):
    train(files, model, 4, "plain")
    sets = SMALL | {"train.steps": 1, "train.rate": 1e-9}
    sets = {key: value for key, value in sets.items() if not key.startswith(("model.", "text."))}
    sets["model.copying"] = True
    if model == "gru":
        sets["model.coverage"] = True
    run = nextword.train(files, task="translate", source="plain", set=sets)
    old, new = nextword.load("plain").model.network.state_dict(), run.model.network.state_dict()
    for key, tensor in old.items():
        same = new[f"head.{key}" if key.startswith("head.") else key]
        assert (same - tensor).abs().max() < 1e-6, key


def test_coverage_learns_from_true_targets_only(files):
    with pytest.raises(ConfigError, match=r"'train\.forcing' is 'free'.*use teacher"):
        train(files, "gru", 2, model__coverage=True, train__forcing="free")
    with pytest.raises(ConfigError, match="coverage_weight"):
        train(files, "transformer", 2, train__coverage_weight=0.5)


def test_long_input_is_split_into_sentences_on_request(files, capsys):
    run = train(files, steps=30, out="run")
    parts = ["the red dog sees the blue cat.", "The small bird eats the red dog!", "the green cat"]
    Path("long.txt").write_text(" ".join(parts[:2]) + f"\n\n{parts[2]}\n")
    alone = [each.text for each in run.predict(parts)]
    assert main.run(["predict", "run", "long.txt", "--split", "sentences"]) == 0
    assert capsys.readouterr().out == f"{alone[0]} {alone[1]}\n\n{alone[2]}\n"
    found = run.predict(" ".join(parts[:2]), split="sentences")[0].values
    assert [each["source"] for each in found["sentences"]] == parts[:2]
    assert found["score"] == pytest.approx(sum(each["score"] for each in found["sentences"]), abs=1e-5)
    assert found["text"] == f"{alone[0]} {alone[1]}"
    with pytest.raises(ConfigError, match="'split' is 'words', and only 'sentences' is known"):
        run.predict(parts, split="words")


def test_the_kept_share_of_a_draft_is_said_at_the_end(files, capsys):
    train(files, steps=5, out="run")
    Path("few.txt").write_text("the red dog sees the blue cat\n")
    assert main.run(["predict", "run", "few.txt", "--decode", "greedy", "--draft", "run"]) == 0
    shown = capsys.readouterr()
    assert "draft: 100% of" in shown.err
    assert main.run(["predict", "run", "few.txt", "--decode", "greedy"]) == 0
    assert capsys.readouterr().out == shown.out


def test_translation_models_are_compared(files):
    found = nextword.compare(
        files, task="translate", models="gru,transformer", set=SMALL | {"train.steps": 3}, out="compared"
    )
    assert {row.model for row in found.rows} == {"gru", "transformer"}
    for row in found.rows:
        assert {"bleu", "chrf", "perplexity"} <= row.values.keys()
        assert nextword.load(f"compared/{row.run}").predict("the red dog")[0].text is not None
    bleu = [row.values["bleu"] for row in found.rows]
    assert bleu == sorted(bleu, reverse=True)
    assert "chrF of a text" in str(found)


def test_a_training_is_estimated_and_its_model_chosen(files, capsys):
    assert main.run(["train", files, "--task", "translate", "--minutes", "3", "--estimate", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["model"] == "transformer"
    assert figures["pairs"] == 190
    assert figures["steps"] > 0
    assert figures["memory"] > 0
    sets = [word for name in ("steps=1", "precision=fp32") for word in ("--set", f"train.{name}")]
    assert main.run(["train", files, "--task", "translate", "--model", "auto", "--out", "auto", *sets]) == 0
    assert "auto chose the model 'transformer'" in capsys.readouterr().err
    recurrent = [*sets, "--set", "model.attend=after", "--set", "model.hidden=16"]
    assert main.run(["train", files, "--task", "translate", "--out", "by-setting", *recurrent]) == 0
    assert nextword.load("by-setting").settings.family == "lstm"


def test_bad_sources_are_said_at_the_end(files, caplog):
    run = train(files, steps=2)
    french = [target for _, target in pairs(20)]

    def said(texts):
        caplog.clear()
        run.predict(texts, decode="greedy", max_tokens=2)
        return [record.getMessage() for record in caplog.records]

    assert said(["the red dog"] * 20) == []
    assert said(french) == [
        "the sources look like the targets of training; if the languages are swapped, use a run that was "
        "trained the other way round"
    ]
    assert said(["राम ने", "the red dog", ""]) == [
        "1 source is in another script than any seen in training (latin); what comes of it means little"
    ]
    run.model.source_limit = 4
    (cut,) = said(["the red dog sees the cat"] * 3)
    assert cut.startswith("3 sources have more than 4 tokens, which is all that this run can read")


def test_a_run_that_cuts_long_sources_reads_no_more_of_them_when_it_is_used(files, capsys):
    train(files, steps=10, out="run", data__longest=4, data__too_long="cut")
    begins, goes_on = "the red dog", "the red dog sees the blue cat"
    Path("both.txt").write_text(f"{begins}\n{goes_on}\n")
    Path("both.tsv").write_text(f"{begins}\tdog red\n{goes_on}\tdog red\n")
    assert main.run(["predict", "run", "both.txt"]) == 0
    first, second = capsys.readouterr().out.split("\n")[:2]
    assert first == second
    assert main.run(["score", "run", "both.tsv"]) == 0
    first, second = (line.split("\t")[0] for line in capsys.readouterr().out.strip().split("\n")[-2:])
    assert first == second
