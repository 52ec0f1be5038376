"""Where Python callers enter: signatures, wrong types, and errors as Python spells them."""

from __future__ import annotations

import inspect
import keyword
from pathlib import Path

import numpy as np
import option_tables
import pytest

import nextword
from nextword.api.arguments import fits
from nextword.api.inspect import ProbeSettings
from nextword.core.errors import ConfigError, NextwordError
from nextword.decode.settings import DecodeSettings
from nextword.text.settings import TextSettings

# Settings that a call changes with ``set``: too many for a signature.
DECODED_BY_SET = {
    "max_ratio", "min_ratio", "prefix", "coverage_penalty", "patience", "groups", "diversity", "candidates",
    "candidates_from", "draft_tokens", "presence_penalty", "tree",
    "frequency_penalty", "logit_bias",
}  # fmt: skip
CLASSES = {"Next", "NextwordError", "Run", "Score", "Text", "Token"}
FUNCTIONS = sorted(set(nextword._PUBLIC) - CLASSES)
METHODS = sorted(
    name for name, _ in inspect.getmembers(nextword.Run, inspect.isfunction) if not name.startswith("_")
)
# What a command needs and a function does not, by verb; None: every verb.
PRINTED = {
    None: {"debug", "json", "parts"},  # parts: Python imports them
    "train": {"estimate"},  # nextword.estimate
    "eval": set(),
    "score": {
        "by",
        "log10",
        "no_bos",
        "no_eos",
        "evidence",
        "format",
        "set",
        "file",
        "out",
        "prefix",
    },  # rows; Python has objects
    "export": {"out"},  # path
    "import": {"file"},  # path
    "predict": {"file", "out"},  # inputs
    "compress": {"file", "out"},  # bytes
    "decompress": {"file", "out"},
    "generate": set(),
    "rescore": {"out"},  # lines
    "next": {"tokens", "text", "against", "why"},  # a table of two runs, and its reasons, is for people
    "lab": set(),
}
NAMES = {"eval": "evaluate", "import": "import_"}


@pytest.mark.parametrize("name", FUNCTIONS + [f"Run.{name}" for name in METHODS])
def test_signature_names_every_argument_and_its_type(name):
    owner, _, method = name.rpartition(".")
    found = inspect.signature(getattr(nextword.Run if owner else nextword, method))
    for each in found.parameters.values():
        assert each.kind is not inspect.Parameter.VAR_KEYWORD, f"{name}(**{each.name})"
        assert each.name == "self" or each.annotation is not inspect.Parameter.empty
    assert found.return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize(
    "verb",
    sorted(
        verb
        for verb, command in option_tables.commands().items()
        if not hasattr(command, "commands") and NAMES.get(verb, verb) in nextword._PUBLIC
    ),
)
def test_every_option_of_a_command_is_an_argument_of_the_function(verb):
    function = getattr(nextword, NAMES.get(verb, verb))
    names = {name.rstrip("_") for name in inspect.signature(function).parameters}
    for option in option_tables.commands()[verb].params:
        long = max(option.opts, key=len).removeprefix("--").replace("-", "_")
        long = {"from": "source", "with": "beside"}[long] if keyword.iskeyword(long) else long
        if long in PRINTED[None] | PRINTED.get(verb, set()):
            continue
        wanted = {"sets": "set", "text_file": "file"}.get(long, long)
        assert wanted in names, f"{verb} --{long}"


def test_py_typed_is_shipped():
    assert (Path(nextword.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (nextword.generate, DecodeSettings),
        (nextword.Run.generate, DecodeSettings),
        (nextword.Run.stream, DecodeSettings),
        (nextword.inspect, ProbeSettings),
        (nextword.Run.inspect, ProbeSettings),
        (nextword.train_tokenizer, TextSettings),
    ],
)
def test_defaults_of_arguments_are_those_of_the_settings(function, settings):
    parameters = inspect.signature(function).parameters
    by_set = DECODED_BY_SET if settings is DecodeSettings else {"tokenizer"}
    assert not by_set & set(parameters) - {"tokenizer"}
    for name, field in settings.model_fields.items():
        if name not in by_set:
            assert parameters[name].default == field.default
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda run: nextword.train(5),
            "'data' is 5; it must be a string, a path, a list of strings or paths or None",
        ),
        (lambda run: nextword.train(["a", None]), r"'data' is \['a', None\]; it must be a string, a path"),
        (lambda run: nextword.train("x", minutes="five"), "'minutes' is 'five'; it must be a number or None"),
        (
            lambda run: nextword.train("x", set=["a=b"]),
            "'set' is .*; it must be a dictionary of settings or None",
        ),
        (lambda run: nextword.train("x", seed=1.5), "'seed' is 1.5; it must be a whole number or None"),
        (lambda run: nextword.train("x", overwrite="yes"), "'overwrite' is 'yes'; it must be True or False"),
        (
            lambda run: nextword.train("x", modle="lstm"),
            "unknown argument 'modle' of train; did you mean 'model'",
        ),
        (lambda run: run.next(3), "'context' is 3; it must be a string"),
        (lambda run: run.next("a", top=-1), "'top' is -1; it must be 0 or more, or None"),
        (lambda run: run.next("a", top=True), "'top' is True; it must be a whole number or None"),
        (lambda run: run.score(None), "'text' is None; it must be a string"),
        (lambda run: run.score(["a"]), r"'text' is \['a'\]; it must be a string"),
        (lambda run: run.evaluate(7), "'data' is 7; it must be a string or a path"),
        (
            lambda run: run.evaluate("x", dynamic="adam"),
            "'dynamic' is 'adam'; it must be 'sgd', 'rms' or None",
        ),
        (lambda run: run.generate("a", temperature="hot"), "'temperature' is 'hot'; it must be a number"),
        (lambda run: run.generate("a", max_tokens=0), "max_tokens"),
        (lambda run: run.compress("text"), "'data' is 'text'; it must be bytes"),
        (lambda run: run.save(None), "'path' is None; it must be a string or a path"),
        (lambda run: nextword.load(3.5), "'run' is 3.5; it must be a string, a path or a Run"),
        (
            lambda run: nextword.score(None, "a"),
            "'run' is None; it must be a Run, a string or a path",
        ),
        (lambda run: nextword.compare("x", seeds="2"), "'seeds' is '2'; it must be a whole number"),
        (lambda run: nextword.mix(run, 4, tune="x"), "'runs' is 4; it must be a string, a path or a Run"),
        (lambda run: nextword.predict(run, 5), "'inputs' is 5; it must be a string or a list of strings"),
    ],
)
def test_wrong_value_is_explained_in_one_sentence(run, call, sentence):
    with pytest.raises(ConfigError, match=sentence) as caught:
        call(run)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)


def test_numpy_numbers_and_paths_are_taken(run, corpus):
    assert len(run.next("the", top=np.int64(2))) == 2
    assert run.evaluate(corpus).tokens == run.evaluate(str(corpus)).tokens
    assert fits(np.float32(1), float)
    assert not fits(True, int)
    assert not fits("a", list[str] | None)


def test_saving_over_a_run_advises_an_argument(run, corpus, tmp_path):
    run.save(tmp_path / "r")
    with pytest.raises(NextwordError, match="choose another 'path' or pass overwrite=True") as caught:
        run.save(tmp_path / "r")
    assert "--" not in str(caught.value)
    run.save(tmp_path / "r", overwrite=True)
    with pytest.raises(NextwordError, match="choose another 'out' or pass overwrite=True"):
        nextword.train(corpus, out=tmp_path / "r")


def test_an_error_in_a_stream_is_spelled_for_python(run, monkeypatch):
    from nextword.api import generate

    def fail(*given):
        yield "a"
        raise ConfigError("use --tokenizer bytes")

    monkeypatch.setattr(generate, "stream", fail)
    with pytest.raises(ConfigError, match='use tokenizer="bytes"'):
        list(run.stream("a"))


def test_the_command_line_keeps_its_options(run, tmp_path, capsys):
    from nextword.cli import main

    run.save(tmp_path / "r")
    (tmp_path / "t.txt").write_text("a b\n")
    assert main.run(["train", str(tmp_path / "t.txt"), "--out", str(tmp_path / "r")]) == 1
    assert "--overwrite" in capsys.readouterr().err


def test_results_show_themselves_on_one_short_line(run, corpus):
    score = run.score("the students")
    everything = [
        run, score, score.tokens[0], run.evaluate(corpus), run.inspect("surprise", "the students opened"),
        run.evidence("the students")[0], nextword.check_data(corpus),
    ]  # fmt: skip
    for each in everything:
        assert len(repr(each)) < 200
        assert "\n" not in repr(each)
    long = nextword.Next([(str(i), 0.001) for i in range(1000)])
    assert repr(long).endswith("… 980 more]")
    assert repr(score.tokens[0]).startswith("Token('the', -")
