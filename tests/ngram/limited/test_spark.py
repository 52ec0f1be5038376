"""Buckets counted by Spark on one machine give the files of a local estimation, byte for byte."""

import os
import subprocess
import sys

import numpy as np
import pytest
from event_streams import result_of
from packed_texts import zipf_text

from nextword.core.errors import ConfigError, MissingPart
from nextword.core.family import Budget
from nextword.ngram.limited import buckets, spark
from nextword.ngram.settings import NgramSettings
from nextword.runs.settings import plan


def train(folder, out, *sets):
    words = [word for each in sets for word in ("--set", each)]
    command = [sys.executable, "-m", "nextword", "train", "t.txt", "--model", "ngram", "--out", out, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def arrays(run):
    return {path.name: path.read_bytes() for path in run.iterdir() if path.suffix == ".npy"}


@pytest.fixture
def text(tmp_path):
    random = np.random.default_rng(1)
    words = [f"w{n}" for n in random.zipf(1.3, 30_000) if n < 5_000]
    lines = [" ".join(words[at : at + 9]) for at in range(0, len(words), 9)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.needs("java", "pyspark")
def test_files_are_those_of_a_local_estimation(text):
    done = train(text, "local", "train.memory=600M", "model.order=4")
    assert done.returncode == 0, done.stderr
    done = train(text, "spark", "train.engine=spark", "train.master=local[1]", "model.order=4")
    assert done.returncode == 0, done.stderr
    local, spread = arrays(text / "local"), arrays(text / "spark")
    assert len(local) == 4 + 3 + 3 + 3
    assert spread == local
    assert (text / "local/ngram.json").read_text() == (text / "spark/ngram.json").read_text()
    assert 'engine = "spark"' in (text / "spark/config.toml").read_text()
    assert sorted(os.listdir(text)) == [".latest", "local", "spark", "t.txt"]


@pytest.mark.needs("java", "pyspark")
@pytest.mark.slow
def test_master_that_cannot_be_is_one_sentence(text):
    done = train(text, "r", "train.engine=spark", "train.master=nonsense")
    assert done.returncode == 1
    assert "Spark could not be started with 'train.master' 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (text / "r").exists()


def counted(folder, count):
    """The files of an estimation whose buckets are counted by this function."""
    folder.mkdir()
    scratch = folder / "scratch"
    scratch.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "_room", lambda *_: 30_000)
        patch.setattr(buckets.workers, "count", count)
        ids = zipf_text(300, 50, seed=3)
        budget = Budget(memory=10**9, folder=folder, scratch=scratch)
        result_of(buckets.fit(ids, 50, NgramSettings(order=3), False, budget))
    return arrays(folder), sorted(os.listdir(scratch))


def test_task_that_is_tried_twice_changes_nothing(tmp_path):
    """Spark may try a task again, or twice at once."""

    def plainly(work, jobs, _processes):
        for job in jobs:
            work(*job)
        yield from ()

    def twice(_work, jobs, _processes):
        assert len(jobs) > 2
        assert [spark.count_task(job) for job in jobs for _ in range(2)] == [1, 0] * len(jobs)
        yield from ()

    once, left = counted(tmp_path / "once", plainly)
    assert counted(tmp_path / "twice", twice) == (once, left)


def test_task_whose_records_are_lost_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        spark.count_task((str(tmp_path / "none"), str(tmp_path / "slice"), 3, 50, True))
    assert os.listdir(tmp_path) == []


def test_missing_package_is_the_line_to_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    budget = Budget(memory=8 << 30, scratch=tmp_path, engine="spark")
    with pytest.raises(MissingPart, match=r"pip install 'nextword\[spark\]'"):
        list(buckets.fit(zipf_text(30, 50, seed=3), 50, NgramSettings(), False, budget))


def test_only_families_that_count_in_buckets_have_an_engine():
    assert plan("ngram", sets={"train.engine": "spark"}).train.engine == "spark"
    for model in ("lstm", "unbounded"):
        with pytest.raises(ConfigError, match=r"train\.engine"):
            plan(model, sets={"train.engine": "spark"})
    with pytest.raises(ConfigError, match="'local' or 'spark'"):
        plan("ngram", sets={"train.engine": "flink"})


def test_what_needs_all_counts_is_refused_before_spark_is_started(tmp_path):
    budget = Budget(scratch=tmp_path, engine="spark")
    with pytest.raises(ConfigError, match=r"does not work with 'train\.engine' spark"):
        list(buckets.fit(zipf_text(30, 50, seed=3), 50, NgramSettings(prune=1), False, budget))


def test_reason_of_a_failed_task_is_found_among_the_lines_of_the_jvm():
    said = "An error occurred while calling z:org\n\tat x.y(z.java)\nValueError: no such bucket\n\tat a.b"
    assert "(ValueError: no such bucket)" in spark._failed(Exception(said))
    assert "every executor must see the run's folder" in spark._failed(Exception(""))
