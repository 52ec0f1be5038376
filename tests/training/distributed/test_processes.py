"""Several processes train one model: as one would, at any number of ranks, and after any of them was lost."""

import json
import shutil
import subprocess
import sys
from hashlib import sha256

import pytest
from labelled_texts import labelled_texts, tagged_sentences
from pairs import table
from places import SUPPORT
from small_texts import TWO_DOCUMENTS

RANKS = SUPPORT / "ranks.py"
TEXT = TWO_DOCUMENTS * 40
SMALL = {
    "model.layers": 1, "train.batch": 5, "train.length": 8, "train.log_every": 1, "train.rate": 0.01,
    "train.timeout": 60, "train.precision": "fp32",
}  # fmt: skip
MODELS = {
    "lstm": {"model.hidden": 16, "train.bptt": "truncated(5)"},
    "transformer": {"model.hidden": 16, "model.heads": 2, "model.context": 8},
}


def job(folder, name, model, world, sets=None, **about):
    """A job for support/ranks.py."""
    chosen = {**SMALL, **MODELS.get(model, {}), **(sets or {})}
    if model == "window":
        chosen |= {"model.hidden": 16, "train.rate": 0.002}
        del chosen["model.layers"]
    words = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    more = about.pop("more", [])
    arguments = ["train", "t.txt", "--model", model, "--tokenizer", "words", "--seed", "3", "--out", name]
    return {
        "folder": str(folder),
        "run": name,
        "world": world,
        "arguments": [*arguments, *words, *more],
        **about,
    }


class Runner:
    """One process that has loaded torch, and starts the ranks of job after job."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, RANKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, each):
        self.process.stdin.write(json.dumps(each) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the runner ended with {self.process.wait()}"
        return json.loads(line)


RUNNER = []


@pytest.fixture(scope="module", autouse=True)
def runner():
    RUNNER.append(Runner())
    yield
    with RUNNER.pop().process as process:
        process.stdin.close()


def done(jobs):
    """What became of them."""
    return [RUNNER[0].run(each) for each in jobs]


def fine(jobs):
    """All of them end well, and only rank 0 has said anything."""
    found = done(jobs)
    for each, about in zip(jobs, found, strict=True):
        assert set(about["codes"].values()) == {0}, (each, about)
        for rank, (out, err) in about["texts"].items():
            assert (out + err == "") == (rank != "0"), (each, rank, out, err)
    return found


def rows(folder, name):
    lines = (folder / name / "metrics.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines if line]


def losses(folder, name):
    return [row["loss"] for row in rows(folder, name) if "loss" in row]


def valid(folder, name):
    return [row["valid_nll"] for row in rows(folder, name) if "valid_nll" in row]


def weights(folder, name):
    return sha256((folder / name / "model.safetensors").read_bytes()).hexdigest()


def facts(folder, name):
    return json.loads((folder / name / "training.json").read_text())["training"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks")
    (path / "t.txt").write_text(TEXT)
    return path


def compare(folder, model, kinds, about, name):
    """Trainings of one and of several ranks, side by side."""
    jobs = [
        job(folder, f"{name}-{kind}-{world}", model, world, {**about, "train.parallel": kind})
        for kind, world in [("auto", 1), *kinds]
    ]
    fine(jobs)
    one = f"{name}-auto-1"
    for kind, world in kinds:
        many = f"{name}-{kind}-{world}"
        several, alone = losses(folder, many), losses(folder, one)
        assert several[:5] == pytest.approx(alone[:5], abs=1e-6)  # the same words in the same order
        assert several == pytest.approx(alone, abs=1e-4)
        assert valid(folder, many) == pytest.approx(valid(folder, one), abs=1e-4)
        assert facts(folder, many)["ranks"] == world
        assert facts(folder, many)["parallel"] == kind
        assert facts(folder, many)["tokens"] == facts(folder, one)["tokens"]
        assert sorted(p.name for p in (folder / many).iterdir()) == sorted(
            p.name for p in (folder / one).iterdir()
        )


@pytest.mark.parametrize("model", ["lstm", "transformer"])
def test_two_and_three_ranks_learn_what_one_learns(folder, model):
    about = {"train.steps": 100, "train.valid_every": 50}
    compare(folder, model, [("ddp", 2), ("ddp", 3), ("fsdp", 2)], about, model)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["rnn", "gru", "gru-torch", "mingru", "window", "lstm", "transformer"])
@pytest.mark.parametrize("head", ["softmax", "adaptive"])
def test_every_family_and_head_learns_the_same_with_more_ranks_than_rows(folder, model, head):
    about = {"train.steps": 20, "train.valid_every": 5, "train.batch": 2, "model.head": head}
    if model in ("rnn", "gru", "gru-torch", "mingru", "lstm"):
        about |= {"model.initial": "learned", "train.accumulate": 2, "model.hidden": 16}
    compare(folder, model, [("ddp", 3), ("fsdp", 3)], about, f"{head}-{model}")


def test_held_out_text_may_be_smaller_than_the_number_of_ranks(folder):
    (folder / "v.txt").write_text("the cat sat on the log\n")
    about = {"train.steps": 3, "train.valid_every": 1}
    kinds = [("auto", 1), ("ddp", 3), ("fsdp", 2)]
    jobs = [
        job(folder, f"few-{kind}", "lstm", world, about | {"train.parallel": kind}, more=["--valid", "v.txt"])
        for kind, world in kinds
    ]
    fine(jobs)
    one, *others = (valid(folder, each["run"]) for each in jobs)
    assert len(one) == 3
    for several in others:
        assert several == pytest.approx(one, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "file", "text"),
    [("tag", "t.conll", tagged_sentences()), ("classify", "t.tsv", labelled_texts(160))],
    ids=["tag", "classify"],
)
def test_two_ranks_tag_and_classify_as_one_does(folder, task, file, text):
    (folder / file).write_text(text)
    sets = {
        "train.steps": 20, "train.valid_every": 10, "train.log_every": 1, "train.batch": 4,
        "train.precision": "fp32", "model.dropout": 0, "model.dropout_input": 0, "model.rare": 0,
        "model.hidden": 8, "data.hold_out": 0.2,
    }  # fmt: skip
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    command = ["train", file, "--task", task, "--model", "lstm", *words]
    jobs = [
        {
            "folder": str(folder), "run": f"{task}-{world}", "world": world,
            "arguments": [*command, "--out", f"{task}-{world}"],
        }
        for world in (1, 2)
    ]  # fmt: skip
    fine(jobs)
    one, two = f"{task}-1", f"{task}-2"
    assert losses(folder, two) == pytest.approx(losses(folder, one), abs=1e-4)
    measured = [
        [row["valid_accuracy"] for row in rows(folder, name) if "valid_accuracy" in row]
        for name in (one, two)
    ]
    assert measured[1] == pytest.approx(measured[0], abs=1e-2)
    assert facts(folder, two)["tokens"] == facts(folder, one)["tokens"]


@pytest.mark.parametrize(
    ("model", "kind", "given"),
    [
        ("transformer", "ddp", {"model.heads": 2}),
        pytest.param("transformer", "fsdp", {"model.heads": 2}, marks=pytest.mark.slow),
        pytest.param(
            "gru", "ddp", {"model.copying": "true", "model.coverage": "true"}, marks=pytest.mark.slow
        ),
    ],
)
def test_translators_learn_the_same_on_two_ranks_as_on_one(folder, model, kind, given):
    """Batches of a few rows: a rank may have one row more than the other, or none."""
    (folder / "pairs.tsv").write_text(table(60))
    chosen = {
        "model.layers": 1, "model.hidden": 16, "model.dropout": 0, "train.batch": 3, "train.steps": 6,
        "train.log_every": 1, "train.rate": 0.01, "train.precision": "fp32", "train.timeout": 60,
        "train.valid_every": 3, "train.parallel": kind, "text.tokenizer": "words", **given,
    }  # fmt: skip
    words = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    command = ["train", "pairs.tsv", "--task", "translate", "--model", model, *words]
    one, two = (f"translate-{model}-{kind}-{world}" for world in (1, 2))
    jobs = [
        {"folder": str(folder), "run": name, "world": world, "arguments": [*command, "--out", name]}
        for world, name in ((1, one), (2, two))
    ]
    fine(jobs)
    assert losses(folder, two) == pytest.approx(losses(folder, one), abs=1e-4)
    assert valid(folder, two) == pytest.approx(valid(folder, one), abs=1e-3)
    assert len(valid(folder, one)) >= 2
    assert facts(folder, two)["tokens"] == facts(folder, one)["tokens"]
    if kind == "ddp" and model == "gru":
        for first, second in zip(rows(folder, one), rows(folder, two), strict=True):
            if "loss" in first:
                assert second["loss_coverage"] == pytest.approx(first["loss_coverage"], abs=1e-4)


def kill(folder, name, model, world, about, at=10):
    """A training that is killed as a whole once a checkpoint stands."""
    (found,) = done([job(folder, name, model, world, about, kill={"all": "SIGKILL"}, at=at)])
    assert set(found["codes"].values()) == {-9}
    return (folder / name / "checkpoint" / "LAST").read_text().strip()


@pytest.mark.parametrize(("model", "kind"), [("lstm", "ddp"), ("transformer", "fsdp")])
def test_checkpoint_of_two_ranks_is_the_same_model_on_one_and_three(folder, model, kind):
    about = {"train.steps": 4000, "train.save_every": 10, "train.valid_every": 4, "train.parallel": kind}
    name = kill(folder, f"moved-{model}", model, 2, about)
    step = int(name.split("-")[1])
    held = folder / f"moved-{model}" / "checkpoint" / name
    assert (held / "shards.json").exists()
    assert len(list(held.glob("state-*-of-00002.safetensors"))) == 2
    jobs = []
    for world in (1, 2, 3):
        shutil.copytree(folder / f"moved-{model}", folder / f"moved-{model}-{world}")
        now = about | {"train.steps": step}
        jobs.append(job(folder, f"moved-{model}-{world}", model, world, now, more=["--resume"]))
    said = fine(jobs)
    assert len({weights(folder, each["run"]) for each in jobs}) == 1
    measured = [valid(folder, each["run"]) for each in jobs]  # the last one is of these very weights
    assert measured[1] == pytest.approx(measured[0], abs=1e-6)
    assert measured[2] == pytest.approx(measured[0], abs=1e-6)
    assert "there were 2 ranks before and there are 3 now" in said[2]["texts"]["0"][1]
    assert "resuming after step" in said[1]["texts"]["0"][1]


@pytest.mark.parametrize(
    ("model", "kind"),
    [("lstm", "fsdp"), pytest.param("lstm", "ddp", marks=pytest.mark.slow),
     pytest.param("transformer", "fsdp", marks=pytest.mark.slow)],
)  # fmt: skip
def test_killed_training_of_several_ranks_goes_on_bit_for_bit(folder, model, kind):
    about = {"train.steps": 40, "train.save_every": 5, "train.parallel": kind, "model.dropout": 0.2}
    about |= {"train.ema": 0.9, "train.average": 2, "train.valid_every": 4}
    whole, killed = f"whole-{model}-{kind}", f"killed-{model}-{kind}"
    fine([job(folder, whole, model, 3, about)])
    kill(folder, killed, model, 3, about)
    fine([job(folder, killed, model, 3, about, more=["--resume"])])
    assert weights(folder, killed) == weights(folder, whole)
    assert losses(folder, killed) == losses(folder, whole)


@pytest.mark.slow  # eight jobs of several processes, with time limits of seconds
def test_what_goes_wrong_is_one_sentence_that_names_the_ranks(folder, tmp_path):
    (tmp_path / "t.txt").write_text(TEXT.replace("mat", "map", 1))
    long = {"train.steps": 100_000, "train.save_every": 5}
    jobs = [
        job(folder, "late", "lstm", 3, {"train.timeout": 2}, only=[0, 2]),
        job(folder, "lost", "lstm", 3, long, kill={"1": "SIGKILL"}, at=5),
        job(folder, "stuck", "lstm", 2, {**long, "train.timeout": 3}, kill={"1": "SIGSTOP"}, at=5),
        job(folder, "other", "lstm", 2, folders={"1": str(tmp_path)}),
        job(folder, "nan", "lstm", 2, {"train.rate": 1e3, "train.clip": 0, "train.optimizer": "sgd"}),
        job(folder, "counts", "ngram", 2) | {"arguments": ["train", "t.txt", "--out", "counts"]},
        job(folder, "muon", "lstm", 2, {"train.parallel": "fsdp", "train.optimizer": "muon"}),
        job(folder, "no-word", "lstm", 2, {"train.nothing": 1}),
    ]
    expected = [
        "rank 1 of 3 did not connect within 2 s (train.timeout)",
        "rank 1 of 3 failed or did not answer within 60 s (train.timeout)",
        "rank 1 of 2 failed or did not answer within 3 s (train.timeout)",
        "rank 1 has read a different text from rank 0",
        "the loss is ",
        "a ngram is trained by one process, but 2 were started",
        "which needs whole matrices",
        "train.nothing",
    ]
    for each, found, said in zip(jobs, done(jobs), expected, strict=True):
        codes = [code for rank, code in found["codes"].items() if each.get("kill", {}).get(rank) is None]
        assert set(codes) == {1}, (each["run"], found)
        lines = [line for rank in found["texts"] for line in found["texts"][rank][1].split("\n")]
        told = [line for line in lines if line.startswith("nextword: ")]
        assert told, (each["run"], found)
        assert said in told[0], (each["run"], found)
        assert all("rank 0 of 2 failed" in line for line in told[1:]), (each["run"], found)
        assert len(told) <= 2
        assert "Traceback" not in json.dumps(found["texts"])


def test_signal_to_one_rank_stops_all_at_the_same_step_and_the_run_can_be_used(folder):
    about = {"train.steps": 100_000, "train.save_every": 5}
    fine([job(folder, "stopped", "lstm", 2, about, kill={"1": "SIGTERM"}, at=5)])
    assert facts(folder, "stopped")["stopped"] == "SIGTERM"
    assert (folder / "stopped" / "checkpoint" / "LAST").exists()
    fine([job(folder, "stopped", "lstm", 2, {**about, "train.steps": facts(folder, "stopped")["steps"] + 5},
              more=["--resume"], slurm=True)])  # fmt: skip
    assert facts(folder, "stopped")["stopped"] is None
