"""A full disk, a read-only folder and a file in the way of ``-o``: one sentence, the same for every verb."""

import errno
import os

import pytest

WRITERS = {
    "filter": ("filter", "RUN", "t.txt", "-o"),
    "rescore": ("rescore", "RUN", "n.tsv", "-o"),
    "compress": ("compress", "RUN", "t.txt", "-o"),
    "decompress": ("decompress", "RUN", "t.txt.nwz", "-o"),
    "export": ("export", "RUN", "--to", "arpa", "--out"),
    "tokenizer": ("tokenizer", "train", "CORPUS", "--set", "text.size=300", "--out"),
    "inspect": ("inspect", "RUN", "--text", "the cat", "--what", "surprise", "--out"),
}


@pytest.fixture
def prepared(nextword, corpus, saved_run, here):
    """Give the command of a verb, with its input in the current folder."""
    (here / "t.txt").write_text("the cat sat\nthe dog sang\n")
    (here / "n.tsv").write_text("u1\t-1.5\tthe cat sat\nu1\t-1.0\tcat the sat\n")
    assert nextword("compress", saved_run, "t.txt").code == 0
    named = {"RUN": saved_run, "CORPUS": corpus}
    return {verb: [named.get(part, part) for part in command] for verb, command in WRITERS.items()}


def _one_sentence(done, *words):
    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if line.startswith("nextword: ")]
    assert "internal error" not in line
    assert all(word in line for word in words), line


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
@pytest.mark.parametrize("verb", [verb for verb in WRITERS if verb != "inspect"])  # it goes by the ending
def test_a_full_disk_is_one_sentence(nextword, prepared, verb):
    done = nextword(*prepared[verb], "/dev/full")
    _one_sentence(done, "'/dev/full' could not be written (No space left on device)", "free some space")


@pytest.mark.parametrize("verb", WRITERS)
def test_a_read_only_folder_is_one_sentence(nextword, prepared, here, monkeypatch, verb):
    (here / "locked").mkdir()
    opened, written = os.open, open

    def refuse(path, *args, **options):
        if str(path).startswith((f"{here}/locked/", "locked/")):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def open_descriptor(path, *args, **options):
        refuse(path)
        return opened(path, *args, **options)

    def open_file(path, mode="r", *args, **options):
        if "r" not in mode:
            refuse(path)
        return written(path, mode, *args, **options)

    monkeypatch.setattr("os.open", open_descriptor)
    monkeypatch.setattr("io.open", open_file)
    monkeypatch.setattr("builtins.open", open_file)
    done = nextword(*prepared[verb], "locked/out.html")
    _one_sentence(done, "cannot be written (Read-only file system); choose a writable folder")
    assert list((here / "locked").iterdir()) == []


@pytest.mark.parametrize("verb", WRITERS)
def test_a_file_in_place_of_the_folder_is_one_sentence(nextword, prepared, here, verb):
    (here / "file").write_text("x")
    _one_sentence(nextword(*prepared[verb], "file/out.html"), "could not be written")
    assert (here / "file").read_text() == "x"


def test_rescore_leaves_the_old_file_if_it_fails(nextword, prepared, here, monkeypatch):
    (here / "out.tsv").write_text("old")
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    _one_sentence(nextword(*prepared["rescore"], "out.tsv"), "could not be written")
    assert (here / "out.tsv").read_text() == "old"
