"""The order of fsync and rename of whole trainings, as the system saw it: what a loss of power leaves.

Where strace is missing or may not trace, tests/store/test_checkpoints.py holds the order of our own calls.
"""

import os

import pytest
import traces
from small_texts import LINES

TEXT = LINES * 20
LSTM = [
    "train", "t.txt", "--model", "lstm", "--tokenizer", "characters", "--set", "model.hidden=8",
    "--set", "model.layers=1", "--set", "train.steps=8", "--set", "train.save_every=2",
    "--set", "train.batch=4", "--set", "train.length=8", "--set", "train.threads=1",
]  # fmt: skip
pytestmark = pytest.mark.needs("strace")


@pytest.fixture(autouse=True, scope="module")
def _may_trace():
    reason = traces.allowed()
    if reason:
        pytest.skip(reason)


def traced(folder, *arguments):
    (folder / "t.txt").write_text(TEXT)
    return traces.trace([*arguments, "--out", "r"], folder)


def places(calls, kinds, ending):
    return [at for at, call in enumerate(calls) if call.kind in kinds and ending(call)]


def is_removal_of_a_checkpoint(call):
    return call.kind == "remove" and "/r/checkpoint/ckpt-" in call.path and ".tmp-" not in call.path


def test_checkpoints_are_on_disk_before_their_name_the_pointer_and_the_removal_of_the_oldest(tmp_path):
    calls = traced(tmp_path, *LSTM)
    saved = places(calls, ("rename",), lambda call: os.path.basename(call.to).startswith("ckpt-"))
    pointed = places(calls, ("rename",), lambda call: call.to.endswith("/checkpoint/LAST"))
    steps = [int(os.path.basename(calls[at].to).split("-")[1]) for at in saved]
    assert steps == [2, 4, 6, 8]
    assert len(pointed) == 4
    for at, pointer, following in zip(saved, pointed, [*saved[1:], len(calls)], strict=True):
        traces.check_folder(calls, at)
        traces.check_file(calls, pointer)
        assert at < pointer < following
        parent = traces.Call("fsync", os.path.dirname(calls[at].to))
        assert parent in calls[at:pointer]
        assert parent in calls[pointer:following]
        removed = [place for place in range(at, following) if is_removal_of_a_checkpoint(calls[place])]
        assert all(place > pointer + calls[pointer:].index(parent) for place in removed)
        older = {calls[place].path.split("/ckpt-")[1][:6] for place in removed}
        assert older <= {f"{step:06d}" for step in steps if step <= steps[saved.index(at)] - 4}
    assert any("/ckpt-000002" in call.path for call in calls if call.kind == "remove")


@pytest.mark.parametrize("again", [False, True], ids=["new", "overwrite"])
def test_run_is_on_disk_before_it_has_its_name(again, tmp_path):
    train = ("train", "t.txt", "--model", "ngram", "--set", "model.order=3")
    if again:
        traced(tmp_path, *train)
    calls = traced(tmp_path, *train, *(["--overwrite"] if again else []))
    target = str(tmp_path / "r")
    (placed,) = places(calls, ("rename", "exchange"), lambda call: call.to == target)
    traces.check_folder(calls, placed)
    written = {os.path.basename(call.path) for call in calls[:placed] if call.kind == "write"}
    assert {"config.toml", "tokenizer.json", "training.json", "MANIFEST.json", "ngram-3.probs.npy"} <= written
    last = max(at for at, call in enumerate(calls) if call.kind == "write" and "/.r.new-" in call.path)
    assert calls[last].path.endswith("/MANIFEST.json")
    # A slow machine also reports progress, in a file that goes before the run has its name.
    removed = places(
        calls, ("remove",), lambda call: "/.r.new-" in call.path and not call.path.endswith("/live.jsonl")
    )
    assert bool(removed) == again
    parent = placed + calls[placed:].index(traces.Call("fsync", str(tmp_path)))
    assert all(at > parent for at in removed)


def test_memory_limit_changes_nothing_of_the_order(tmp_path):
    calls = traced(tmp_path, "train", "t.txt", "--model", "ngram", "--set", "train.memory=600M")
    (placed,) = places(calls, ("rename", "exchange"), lambda call: call.to == str(tmp_path / "r"))
    source = calls[placed].path
    mapped = [call.path for call in calls[:placed] if call.kind == "fsync" and call.path.endswith(".npy")]
    assert {os.path.basename(path) for path in mapped} >= {"ngram-2.probs.npy", "ngram-2.words.npy"}
    assert traces.Call("fsync", source) in calls[:placed]


def test_check_sees_an_order_that_is_wrong():
    call, folder = traces.Call, "/x/.r.new"
    right = [call("write", f"{folder}/a"), call("fsync", f"{folder}/a"), call("fsync", folder)]
    named = [call("rename", folder, "/x/r"), call("fsync", "/x")]
    traces.check_folder([*right, *named], 3)
    for wrong in (right[::-1], [right[0], right[2], right[1]], [*right, right[0]], right[:2]):
        with pytest.raises(AssertionError):
            traces.check_folder([*wrong, *named], len(wrong))
    with pytest.raises(AssertionError, match="not on disk"):
        traces.check_folder([*right, named[0]], 3)


def test_lines_of_threads_that_interleave_are_put_together():
    text = (
        '7  write(3</x/a>, "abc", 3 <unfinished ...>\n'
        '8  rename("/x/b", "/x/c") = 0\n'
        "7  <... write resumed>) = 3\n"
        '8  renameat2(AT_FDCWD</x>, "d", AT_FDCWD</x>, "e", RENAME_EXCHANGE) = 0\n'
        '8  unlinkat(5</x/f>, "g", 0) = 0\n'
        '8  unlink("/x/none") = -1 ENOENT (No such file or directory)\n'
        "8  fsync(3</elsewhere>) = 0\n"
    )
    assert traces.parse(text, "/x") == [
        traces.Call("rename", "/x/b", "/x/c"), traces.Call("write", "/x/a"),
        traces.Call("exchange", "/x/d", "/x/e"), traces.Call("remove", "/x/f/g"),
    ]  # fmt: skip
