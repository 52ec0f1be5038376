"""Mistakes get one sentence on standard error, exit code 1, and leave nothing behind."""

import os

import pytest

BAD_DATA = {
    "latin1.txt": (b"caf\xe9 au lait\nsecond\n", "latin1.txt:1"),
    "utf16.txt": (b"\xff\xfea\0b\0", "UTF-16"),
    "empty.txt": (b"", "empty.txt"),
    "blank.txt": (b"\n\n  \n", "blank.txt"),
    "nul.txt": (b"a b\0c d\n", "nul.txt:1"),
    "cut.txt.gz": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH", "cut.txt.gz"),
    "bad.jsonl": (b'{"text": "ok"}\n{"text": \n', "bad.jsonl:2"),
    "page.txt": (b"<!DOCTYPE html><html><body>not found</body></html>\n", "HTML"),
    "lfs.txt": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "LFS"),
    "old-mac.txt": (b"one\rtwo\rthree\r", "carriage returns"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_text_is_named_and_nothing_is_written(name, nextword, here):
    data, words = BAD_DATA[name]
    (here / name).write_bytes(data)
    done = nextword("train", name, "--model", "ngram", "--out", "run")
    assert done.code == 1
    assert words in done.err
    assert name in done.err
    assert done.err.count("\n") == 1
    assert sorted(os.listdir(here)) == [name]


OPTIONS = [
    (["--set", "model.ordr=3"], "unknown setting 'model.ordr'; did you mean 'model.order'?"),
    (["--set", "model.order=0"], "'model.order' is 0; it must be 1 or more"),
    (["--set", "model.order=x"], "'model.order' is 'x'; it must be a whole number"),
    (["--set", "model.smoothing=kneser"], "'model.smoothing' is 'kneser'; did you mean 'kneser-ney'?"),
    (["--set", "train.memory=1M"], "'train.memory' is '1M'; it must be at least 300 MB"),
    (["--set", "train.steps=5"], "'train.steps' is not a setting of the model 'ngram'"),
    (["--set", "text.unknown=maybe"], "'text.unknown' is 'maybe'; allowed: 'spell' or 'literal'"),
    (["--set", "data.unit=page"], "'data.unit' is 'page'"),
    (["--model", "ngrm"], "unknown model 'ngrm'; did you mean 'ngram'?"),
    (["--model", "lstmm"], "unknown model 'lstmm'; did you mean 'lstm'"),
    (["--model", "mixture"], "nextword mix"),
    (["--tokenizer", "wrods"], "unknown tokenizer 'wrods' (no such file either); did you mean 'words'?"),
    (["--task", "tags"], "unknown task 'tags'; did you mean 'tag'?"),
    (["--task", "tag"], "'ngram' is a model for another task; models of this one: auto, window, rnn, lstm"),
    (["--device", "cuda"], "unknown device 'cuda'"),
    (["--seed", "-1"], "'train.seed' is -1; it must be 0 or more"),
    (["--minutes", "0"], "'minutes' is 0.0"),
    (["--from", "somewhere"], "there is no run 'somewhere'"),
    (["--recipe", "missing.toml"], "missing.toml cannot be read"),
    (["--valid", "missing.txt"], "missing.txt"),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_wrong_option_gets_one_sentence_before_anything_is_read(options, words, nextword, here):
    model = [] if options[0] in ("--model", "--recipe") else ["--model", "ngram"]
    done = nextword("train", "a file that is not there.txt", *model, *options, "--out", "run")
    if options[0] == "--valid":
        (here / "ok.txt").write_text("a b c\n")
        done = nextword("train", "ok.txt", *model, *options, "--out", "run")
    assert done.code == 1
    assert words in done.err, done.err
    assert done.err.count("\n") == 1
    assert not (here / "run").exists()


def test_model_and_recipe_exclude_each_other(nextword, here):
    (here / "r.toml").write_text('family = "ngram"\n')
    assert "cannot be combined" in nextword("train", "--model", "ngram", "--recipe", "r.toml").err
    (here / "r.toml").write_text("family = 3\n")
    assert "must be the name of a model" in nextword("train", "--recipe", "r.toml").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "nowhere", "x"),
        ("score", "nowhere"),
        ("filter", "nowhere"),
        ("rescore", "nowhere"),
        ("compress", "nowhere", "x"),
        ("decompress", "nowhere", "x"),
        ("generate", "nowhere"),
        ("export", "nowhere", "--to", "arpa", "--out", "x"),
        ("mix", "nowhere", "neither", "--tune", "x"),
        ("tokenizer", "show", "nowhere"),
    ],
)
def test_missing_run_is_named(arguments, nextword, here):
    done = nextword(*arguments)
    assert done.code == 1
    assert "'nowhere'" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "missing.txt"),
        ("score", "missing.txt"),
        ("filter", "missing.txt"),
        ("rescore", "missing.txt"),
        ("compress", "missing.txt"),
        ("decompress", "missing.txt"),
    ],
)
def test_missing_file_is_named(arguments, nextword, saved_run, here):
    verb, file = arguments
    done = nextword(verb, saved_run, file)
    assert done.code == 1
    assert "missing.txt" in done.err


def test_unwritable_output_is_named(nextword, saved_run, corpus, here):
    done = nextword("compress", saved_run, corpus, "-o", "no/such/folder/z")
    assert done.code == 1
    assert "no/such/folder/z" in done.err


@pytest.mark.parametrize("file", ["config.toml", "tokenizer.json", "ngram-2.probs.npy"])
def test_damaged_run_is_named_and_never_crashes(file, nextword, corpus, here):
    assert nextword("train", corpus, "--model", "ngram", "--out", "r").code == 0
    (here / "r" / file).write_bytes(b"broken")
    done = nextword("eval", "r", corpus)
    assert done.code == 1
    assert file in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("trian",), "Did you mean 'train'?"),
        (("train", "--modle", "ngram"), "No such option"),
        (("eval",), "Missing argument"),
        (("score", "x", "--by", "word"), "'word'"),
        (("export", "x", "--to", "docx", "--out", "y"), "docx"),
    ],
)
def test_what_the_parser_refuses_is_exit_code_2(arguments, words, nextword):
    done = nextword(*arguments)
    assert done.code == 2
    assert words in done.err


def test_terminal_escapes_in_data_are_never_printed(nextword, here):
    (here / "t.txt").write_text("\x1b[31mred the \x1b]0;title\x07 cat\n" * 3)
    assert nextword("train", "t.txt", "--model", "ngram", "--out", "r").code == 0
    done = nextword("generate", "r", "--decode", "greedy", "--max-tokens", 4)
    assert "\x1b" not in done.out + done.err
    assert "\\x1b[31mred" in done.out


def test_debug_shows_where_an_error_comes_from(nextword, here):
    assert "Traceback" not in nextword("eval", "nowhere", "x").err
    assert "Traceback" in nextword("eval", "nowhere", "x", "--debug").err
    assert "Traceback" not in nextword("eval", "nowhere", "x").err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 1, "train.memory"),
        (RecursionError("too deep"), 1, "nested too deeply"),
        (PermissionError(13, "Permission denied", "/x/y"), 1, "/x/y: Permission denied"),
        (ZeroDivisionError("oh"), 1, "internal error, please report it: ZeroDivisionError: oh"),
    ],
)
def test_whatever_happens_is_told_in_one_line(error, code, words, nextword, saved_run, corpus, monkeypatch):
    def fail(*_arguments, **_named):
        raise error

    monkeypatch.setattr("nextword.tasks.text_measure.evaluate", fail)
    done = nextword("eval", saved_run, corpus)
    assert done.code == code
    assert words in done.err
    assert done.err.count("\n") == 1
