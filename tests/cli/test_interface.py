"""The interface that people and other programs rely on does not change by accident."""

import pytest
import typer.main

from nextword.cli.app import app
from nextword.cli.main import run

COMMON = {"--debug", "--json"}
WITHOUT_PARTS = {"tokenizer", "data", "presets", "doctor"}  # they neither train nor open a run
COMMANDS = {
    "train": {
        "--task", "--model", "--recipe", "--from", "--valid", "--tokenizer", "--out", "--minutes", "--set",
        "--seed", "--resume", "--overwrite", "--estimate", "--device",
    },
    "eval": {"--dynamic", "--against", "--html", "--precision", "--set"},
    "score": {
        "--by", "--log10", "--no-bos", "--no-eos", "--evidence", "--format", "--out", "--prefix", "--set",
    },
    "filter": {"--against", "--keep", "--add-score", "--out", "--prefix", "--set"},
    "rescore": {"--weights", "--tune", "--out"},
    "compress": {"--out"},
    "decompress": {"--out"},
    "mix": {"--tune", "--out", "--cache", "--recent", "--neighbours", "--set", "--overwrite"},
    "next": {"--against", "--top", "--tokens", "--why"},
    "generate": {
        "--prompt", "--max-tokens", "--decode", "--beam-size", "--temperature", "--top-k", "--top-p",
        "--seed", "--samples", "--with", "--draft", "--precision", "--set",
    },
    "predict": {
        "--format", "--pretokenized", "--decode", "--beam-size", "--n-best", "--max-tokens", "--temperature",
        "--top-k", "--top-p", "--seed", "--alignment", "--split", "--with", "--draft", "--precision", "--set",
        "--out",
    },
    "lm-eval": {"--include", "--limit", "--fewshot"},
    "serve": {"--host", "--port", "--api-key-file", "--insecure"},
    "compare": {
        "--task", "--models", "--valid", "--tokenizer", "--minutes", "--rows", "--tokens", "--match",
        "--probes", "--seeds", "--set", "--out",
    },
    "lab": {"--run", "--out"},
    "inspect": {
        "--what", "--text", "--against", "--layer", "--head", "--unit", "--set-gate", "--out", "--set",
    },
    "export": {"--to", "--out"},
    "import": {"--out", "--set", "--overwrite"},
    "tokenizer train": {"--tokenizer", "--out", "--set"},
    "tokenizer show": {"--text"},
    "tokenizer compare": {"--tokenizers", "--set"},
    "data list": set(),
    "data get": {"--out"},
    "data check": {"--set"},
    "data pairs": {"--out", "--share", "--test", "--part"},
    "list": set(),
    "presets": set(),
    "doctor": set(),
}  # fmt: skip


def _options(command):
    found = {name for each in command.params for name in each.opts if name.startswith("--")}
    return found - COMMON - {"--parts"}


def test_commands_and_options_are_the_agreed_ones():
    root = typer.main.get_command(app)
    found = {}
    for name, command in root.commands.items():
        for child, inner in getattr(command, "commands", {}).items():
            found[f"{name} {child}"] = _options(inner)
        if not getattr(command, "commands", None):
            found[name] = _options(command)
    assert found == COMMANDS


def test_every_command_has_json_debug_and_a_sentence_of_help():
    root = typer.main.get_command(app)
    leaves = [
        leaf
        for command in root.commands.values()
        for leaf in getattr(command, "commands", {"": command}).values()
    ]
    for command in leaves:
        names = {name for each in command.params for name in each.opts}
        assert names >= COMMON, command.name
        assert command.help.strip(), command.name
        assert all(each.help for each in command.params if each.name != "help"), command.name


def test_help_of_every_command_that_trains_or_opens_a_run_names_parts_of_ones_own(capsys):
    for name, command in typer.main.get_command(app).commands.items():
        leaves = getattr(command, "commands", {name: command})
        for leaf in leaves.values():
            assert ("--parts" in _all(leaf)) == (name not in WITHOUT_PARTS), name
    assert run(["eval", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--parts FILE" in shown
    assert "parts of your own" in shown


@pytest.mark.parametrize("group", [[], ["data"], ["tokenizer"]])
def test_the_list_of_commands_fits_eighty_columns_uncut(group, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*group, "--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert listed.strip()
    assert "..." not in listed


def _all(command):
    return {name for each in command.params for name in each.opts}
