"""Count buckets on a Spark cluster: each bucket is a task, and its slice equals the one counted here.

MapReduce for n-grams [Brants et al. 2007] with ranges instead of hashes, so that slices can be joined in
order (`joining`). Driver and executors share the run folder; only file names are sent.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from nextword.core.errors import ConfigError, MissingPart, TrainingError
from nextword.core.events import Event, Progress, Stage
from nextword.ngram.limited.counting import count_bucket

BUCKETS = 4  # minimum per concurrent task, so that all of them stay busy
_LOOK = 0.5  # seconds between polls of the tasks
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
Job = tuple[str, str, int, int, bool]  # the arguments of `count_bucket`


@contextmanager
def cluster(master: str) -> Iterator[Any]:
    """Yield a Spark context: the running one, or one of our own, which is stopped after the block.

    ``master`` is Spark's: local[2], spark://host:7077, yarn, k8s://…; empty: the one spark-submit set, else
    all processors of this machine.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of pandas, which is unused here
            from pyspark import SparkConf, SparkContext
    except ImportError as error:
        raise MissingPart("pyspark", "spark", "'train.engine' spark") from error
    running = SparkContext._active_spark_context
    if running is not None:
        yield running
        return
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which sets its own master
    name = master or ("" if submitted else "local[*]")
    try:
        context = SparkContext(conf=_configured(SparkConf(), name))
    except Exception as error:  # pyspark and py4j wrap Java's errors in their own classes
        raise ConfigError(_why(name, error)) from error
    try:
        yield context
    finally:
        context.stop()


def _configured(conf: Any, master: str) -> Any:
    """Configure Spark to be quiet and without its web page; locally nothing listens to the network."""
    conf = (conf.setMaster(master) if master else conf).setAppName("nextword")
    for key, value in _QUIET.items():
        conf = conf.setIfMissing(key, value)
    if master.startswith("local"):
        conf = conf.setIfMissing("spark.driver.host", "localhost")
        conf = conf.setIfMissing("spark.driver.bindAddress", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return conf


def _why(master: str, error: Exception) -> str:
    reason = str(error).strip().split("\n")[0][:200]
    return (
        f"Spark could not be started with 'train.master' '{master}' ({reason}); it needs Java 17 or newer "
        "(Debian: apt install default-jre-headless), and a reachable master"
    )


def parts(context: Any) -> int:
    """Return the minimum number of buckets."""
    return BUCKETS * max(1, int(context.defaultParallelism))


def count(context: Any, jobs: Sequence[Job]) -> Iterator[Event]:
    """Count every bucket as a separate task."""
    yield Stage(f"counting the buckets on {context.master}", len(jobs), "buckets")
    if not jobs:
        return
    work = context.parallelize(jobs, len(jobs)).map(count_task)
    with ThreadPoolExecutor(1, thread_name_prefix="spark") as pool:
        counted = pool.submit(work.count)
        while not counted.done():
            try:
                counted.result(timeout=_LOOK)
            except TimeoutError:
                yield Progress(_completed(context))
            except Exception as error:
                raise TrainingError(_failed(error)) from error
        counted.result()
    yield Progress(len(jobs))


def count_task(job: Job) -> int:
    """Count one bucket. A task may be retried or run twice: the first complete slice is used."""
    records, place, order, vocab_size, adjusted = job
    if os.path.isdir(place):
        return 0
    part = f"{place}.part-{uuid.uuid4().hex}"
    try:
        count_bucket(records, part, order, vocab_size, adjusted, keep=True)
        os.rename(part, place)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not os.path.isdir(place):  # no other attempt has finished
            raise
        return 0
    os.unlink(records)
    return 1


def _completed(context: Any) -> int:
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _failed(error: Exception) -> str:
    """Return the last line of a task's own error, from pages of JVM output."""
    lines = [line.strip() for line in str(error).split("\n")]
    said = [line for line in lines if "Error" in line and not line.startswith(("at ", "File "))]
    reason = (said[-1] if said else lines[0])[:200]
    return (
        f"Spark could not count the buckets ({reason}); every executor must see the run's folder and have "
        "nextword installed, and enough memory for a task of 'train.memory'"
    )
