"""Which probes fit what, how they refuse, and that what is seen can be written in every form and script."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from nextword.core import catalog
from nextword.core.errors import ConfigError, DataError, MissingPart
from nextword.probe import result, selection
from nextword.probe.settings import ProbeSettings

HINDI = "राम ने रावण को मारा ।\nरावण ने राम को मारा ।\n" * 3
CHINESE = "我喜欢读书。\n你喜欢读书吗？\n" * 4
FITS = {
    "rnn": {"gradients", "depth", "eigenvalues", "embeddings", "units", "linear", "surprise", "beam"},
    "mingru": {"gradients", "depth", "gates", "embeddings", "units", "linear", "surprise", "beam"},
    "lstm": {
        "gradients", "depth", "gates", "eigenvalues", "embeddings", "units", "linear", "surprise", "beam",
    },
    "transformer": {
        "gradients", "depth", "attention", "embeddings", "units", "linear", "surprise", "beam",
    },
    "window": {"gradients", "depth", "embeddings", "surprise", "beam"},
    "ngram": {"surprise", "evidence", "beam"},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FITS))
def test_what_fits_each_family(subject, name):
    assert set(selection.fitting(subject(name))) == FITS[name]


@pytest.mark.parametrize(
    ("what", "name", "message"),
    [
        ("gates", "transformer", "is a Transformer; what fits it: gradients, depth, attention, embed"),
        ("eigenvalues", "ngram", "and 'counts' is an n-gram model; what fits it: surprise, evidence, beam"),
        ("eigenvalues", "mingru", "and 'mingru' is a MinGRU network; what fits it: gradients, depth, gates"),
        ("gates", "rnn", "and 'rnn' is an RNN network; what fits it: gradients, depth, eigenvalues"),
        ("attention", "lstm", "attention pooling, and 'lstm' is an LSTM network; what fits it: "),
        ("evidence", "gru", "count models and mixtures (ngram, unbounded, mixture), and 'gru' is a GRU"),
        ("alignment", "window", "attend to their source, and 'window' is a window network; what fits it: "),
    ],
)  # fmt: skip
def test_a_probe_that_does_not_fit_says_so_and_names_what_does(subject, what, name, message):
    with pytest.raises(ConfigError) as caught:
        selection.look(what, subject(name))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_probe_suggests_the_nearest(subject):
    with pytest.raises(ConfigError, match="unknown probe 'gradient'; did you mean 'gradients'"):
        selection.look("gradient", subject("lstm"))


@pytest.mark.parametrize("name", catalog.names("probe"))
def test_every_probe_says_what_it_shows(name):
    probe = selection.find(name)
    assert probe.about
    assert probe.needs


def test_count_models_are_looked_at_without_torch():
    """In a process of its own: nothing that an n-gram needs imports torch."""
    code = (
        "import sys\n"
        "from nextword.core import catalog\n"
        "from nextword.probe import selection\n"
        "for name in catalog.names('probe'): selection.find(name)\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", [HINDI, CHINESE], ids=["hindi", "chinese"])
@pytest.mark.parametrize("tokenizer", ["words", "characters", "bpe", "bytes"])
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("lstm", "gates"),
        ("transformer", "attention"),
        ("gru", "units"),
        ("lstm", "embeddings"),
        ("lstm", "surprise"),
    ],
)
def test_text_in_any_script_is_drawn_as_it_is(subject, text, tokenizer, name, what, tmp_path):
    made = subject(name, text=text, tokenizer=tokenizer)
    found = selection.look(what, made, ProbeSettings(tokens=40))
    html = found.save(tmp_path / "x.html").read_text()
    svg = found.save(tmp_path / "x.svg").read_text()
    letters = set("रामनेको" if text == HINDI else "我喜欢读书你")
    for written in (html, svg):
        if tokenizer != "bytes" and (tokenizer, what) != ("bpe", "embeddings"):  # these show pieces of bytes
            assert {letter for letter in letters if letter in written} == letters
        assert "\ufffd" not in written
    ElementTree.fromstring(svg)


def test_pieces_of_a_text_give_it_back(subject):
    for tokenizer in ("characters", "bpe", "bytes", "words"):
        made = subject("lstm", text=HINDI, tokenizer=tokenizer)
        row = made.row(10**4)
        joined = "".join(row.pieces)
        assert joined.split() == HINDI.split()


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [("lstm", "words"), ("lstm", "characters"), ("transformer", "characters"), ("ngram", "words")],
)
def test_without_a_text_the_model_writes_one_that_stays_the_same(subject, name, tokenizer):
    made = subject(name, tokenizer=tokenizer)
    made.given = None
    first = made.row(30)
    assert 2 < len(first) <= 30
    again = subject(name, tokenizer=tokenizer)
    again.given = None
    assert again.row(30).ids_T.tolist() == first.ids_T.tolist()


def test_an_empty_text_is_refused(subject):
    made = subject("lstm")
    made.given = ""
    for what in ("gates", "gradients", "surprise", "units"):
        with pytest.raises(DataError, match="give at least one word with --text"):
            selection.look(what, made)


@pytest.mark.parametrize("name", ["lstm", "transformer", "ngram"])
def test_everything_seen_can_be_written_in_every_form(subject, name, tmp_path):
    made = subject(name)
    asked = ProbeSettings(tokens=80, distance=8, places=2, beam_size=2, max_tokens=3)
    found = [selection.look(what, made, asked) for what in selection.fitting(made)]
    path, told = result.save(found, tmp_path / "all.html")
    html = path.read_text()
    assert told == ""
    assert all(each.sentence.split("'")[0].split("&")[0][:20] in html for each in found)
    assert "http://www.w3.org/2000/svg" in html
    assert html.replace("http://www.w3.org/2000/svg", "").count("http") == 1  # http-equiv: nothing is fetched
    values = json.loads(result.save(found, tmp_path / "all.json")[0].read_text())
    for each, written in zip(found, values, strict=True):
        for key, array in each.arrays.items():
            shape = np.shape(written["arrays"][key])
            assert shape == (array.shape if not np.iscomplexobj(array) else (*array.shape, 2))
        assert each.sentence in str(each)
    ElementTree.fromstring(result.save(found, tmp_path / "all.svg")[0].read_text())


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_a_png_is_drawn_from_the_same_picture(subject, tmp_path):
    found = selection.look("attention", subject("transformer"), ProbeSettings(tokens=10))
    assert found.save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    hindi = selection.look("surprise", subject("lstm", text=CHINESE))
    path, told = result.save([hindi], tmp_path / "y.png")
    assert path.exists()
    assert told == "" or "a .svg or .html file shows them" in told


def test_a_png_without_matplotlib_is_one_sentence(subject, tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *more):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("no", name="matplotlib")
        return real(name, *more)

    found = selection.look("depth", subject("rnn"))
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingPart, match=r"run: pip install 'nextword\[plots\]'"):
        found.save(tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.html.gz"])
def test_an_ending_that_cannot_be_written_is_refused(subject, name, tmp_path):
    with pytest.raises(ConfigError, match=r"it must end in one of: \.html, \.svg, \.png, \.json"):
        selection.look("depth", subject("rnn")).save(tmp_path / name)


def test_a_look_shows_itself_in_a_notebook(subject):
    shown = selection.look("depth", subject("rnn"))._repr_html_()
    assert shown.startswith("<iframe sandbox")
