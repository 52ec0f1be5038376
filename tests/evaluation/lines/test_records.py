"""Records of tables: scored as texts of their own, filtered whole, and resumed with the same bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from event_streams import result_of

from nextword.core.contracts import Block
from nextword.core.events import Note
from nextword.data.paths import resolve
from nextword.data.rows import Table
from nextword.data.settings import DataSettings
from nextword.evaluation.lines import records
from nextword.evaluation.lines.filter import FilterSettings, Scorer
from nextword.evaluation.lines.records import filter_records, score_records
from nextword.evaluation.lines.scores import score_lines
from nextword.evaluation.lm.perplexity import evaluate
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

SENTENCES = ["the cat sat on the mat .", "the dog saw the cat", "a dog ran and ran .", "a cat met the dog"]
TEXT = ("\n".join(SENTENCES) + "\n").encode() * 5
NAMES = ["words", "characters", "bpe"]


def model_of(name: str):
    options = TextSettings(size=300)
    tokenizer = fit_tokenizer(name, [Block(TEXT, True)], options)
    ids = np.concatenate([piece.ids for piece in tokenizer.encode_blocks([Block(TEXT, True)])])
    return build(ids, tokenizer.vocab_size, NgramSettings(order=3), closed=tokenizer.closed), tokenizer


MODELS = {name: model_of(name) for name in NAMES}
TEXTS = [SENTENCES[0], "", f"{SENTENCES[1]}\n{SENTENCES[2]}\n", "  ", "zq", SENTENCES[3]]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_the_score_of_its_text_alone(name):
    model, tokenizer = MODELS[name]
    found = score_records(model, tokenizer, [text.encode() for text in TEXTS], end=True)
    for number, text in enumerate(TEXTS):
        if not text.strip():
            assert (found.logprob[number], found.tokens[number]) == (0.0, 0)
            continue
        report = evaluate(model, tokenizer, [Block(text.encode(), True)])
        assert found.tokens[number] == report.tokens
        assert -found.logprob[number] == pytest.approx(report.nll * report.tokens)


def test_lines_of_a_record_add_up_and_ends_can_be_left_out():
    model, tokenizer = MODELS["words"]
    found = score_records(model, tokenizer, [TEXTS[2].encode()], end=False)
    lines = list(score_lines(model, tokenizer, [Block(TEXTS[2].encode(), True)], end=False))
    assert found.logprob[0] == pytest.approx(sum(line.logprob for line in lines))
    assert found.tokens[0] == sum(line.count for line in lines)


@pytest.fixture
def table(tmp_path) -> Table:
    path = tmp_path / "t.jsonl"
    rows = [{"id": number, "text": text} for number, text in enumerate((TEXTS + SENTENCES) * 10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = Table.of(resolve(path)[0], DataSettings())
    assert found is not None
    return found


def run(table, output, keep="best", **values):
    scorer = Scorer(*MODELS["words"], identity="a run")
    options = FilterSettings(keep=keep, save_every=0, **values)
    return result_of(filter_records(scorer, table, str(output), options))


def read(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_are_kept_whole_and_in_order(table, tmp_path):
    done = run(table, tmp_path / "kept.jsonl", "head:30", add_score=True)
    whole = {row["id"]: row for row in read(tmp_path / "t.jsonl")}
    kept = read(tmp_path / "kept.jsonl")
    scores = [row.pop("score") for row in kept]
    assert kept == [whole[row["id"]] for row in kept]
    assert done.kept == len(kept)
    known = sum(bool(row["text"].strip()) for row in whole.values())
    assert done.kept == round(0.3 * known)
    assert max(scores) == pytest.approx(done.highest, abs=1e-5)
    assert not (tmp_path / "kept.jsonl.progress").exists()


def test_three_buckets_in_one_pass_are_those_of_three_filters(table, tmp_path):
    run(table, tmp_path / "all.jsonl", "buckets:25")
    found = read(tmp_path / "all.jsonl")
    assert len(found) == len(read(tmp_path / "t.jsonl"))
    for name, rule in (("head", "head:25"), ("middle", "middle:50"), ("tail", "tail:25")):
        run(table, tmp_path / "one.jsonl", rule)
        assert [row["id"] for row in found if row["bucket"] == name] == [
            row["id"] for row in read(tmp_path / "one.jsonl")
        ]
    assert all((row["bucket"] is None) == (not row["text"].strip()) for row in found)


def test_an_interrupted_job_resumes_and_writes_the_same(table, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "GROUP", 7)
    run(table, tmp_path / "whole.jsonl", "buckets", add_score=True)
    scored, original = [], records.score_records

    def breaks(model, tokenizer, texts, **rest):
        scored.append(len(texts))
        if len(scored) == 6:
            raise KeyboardInterrupt
        return original(model, tokenizer, texts, **rest)

    monkeypatch.setattr(records, "score_records", breaks)
    with pytest.raises(KeyboardInterrupt):
        run(table, tmp_path / "out.jsonl", "buckets", add_score=True)
    assert not (tmp_path / "out.jsonl").exists()
    scorer = Scorer(*MODELS["words"], identity="a run")
    options = FilterSettings(keep="buckets", add_score=True, save_every=0)
    events = list(filter_records(scorer, table, str(tmp_path / "out.jsonl"), options))
    assert any(isinstance(event, Note) and "resuming after 35 records" in event.message for event in events)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert sum(scored[6:]) == len(read(tmp_path / "t.jsonl")) - 35


def test_two_runs_score_by_their_difference(table, tmp_path):
    pair = Scorer(*MODELS["words"], against=MODELS["words"])
    options = FilterSettings(keep="below:0.001", add_score=True)
    result_of(filter_records(pair, table, str(tmp_path / "out.jsonl"), options))
    assert {row["score"] for row in read(tmp_path / "out.jsonl")} == {0.0}
