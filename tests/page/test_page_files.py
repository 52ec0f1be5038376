"""The page's files: small, our own, without inline script or style, and nothing from another server."""

import re

import pytest

from nextword.page import files

TEXTS = {name: data.decode() for name, (data, _) in files().items()}
SCRIPTS = [name for name in TEXTS if name.endswith(".js")]


def test_all_parts_are_there():
    assert {"index.html", "page.css", "app.js", "next.js", "surprise.js", "runs.js"} <= set(TEXTS)


def test_page_has_no_inline_script_or_style():
    html = TEXTS["index.html"]
    assert re.findall(r"<script(?![^>]*src=)", html) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", html) == []


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_nothing_comes_from_another_server(name):
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", TEXTS[name])
    assert [each for each in addresses if "www.w3.org" not in each] == []  # that is the name of SVG


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_never_becomes_html(name):
    words = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
             "DOMParser", 'setAttribute("style"', "srcdoc")  # fmt: skip
    assert [word for word in words if word in TEXTS[name]] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_are_of_files_that_are_there(name):
    for path in re.findall(r'(?:from|import) "(\./[^"]+)"', TEXTS[name]):
        assert path.removeprefix("./") in TEXTS


def test_preloaded_files_are_there():
    for path in re.findall(r'(?:href|src)="/page/([^"]+)"', TEXTS["index.html"]):
        assert path in TEXTS


def test_page_is_light():
    assert sum(len(data) for data, _ in files().values()) < 150_000


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_small_and_say_what_they_are(name):
    lines = TEXTS[name].split("\n")
    assert lines[0].startswith("// ")
    assert len(lines) < 340
