"""`nextword next`: what comes next, as bars, numbers, reasons and JSON."""

import pytest

from nextword.cli.main import run as run_command


@pytest.fixture(scope="module")
def characters(corpus, tmp_path_factory):
    """A model of the characters of the same text."""
    path = tmp_path_factory.mktemp("runs") / "letters"
    command = ["train", str(corpus), "--model", "ngram", "--tokenizer", "characters", "--out", str(path)]
    assert run_command(command) == 0
    return path


def test_next_shows_words_with_bars_the_most_likely_first(nextword, saved_run):
    done = nextword("next", saved_run, "the cat", "--top", 3)
    lines = done.out.splitlines()
    assert (done.code, lines[0]) == (0, "the next word after 'cat': animals")
    shares = [float(line.split()[1]) for line in lines[1:4]]
    assert {line.split()[0] for line in lines[1:4]} == {"sat", "slept", "sang"}
    assert shares == sorted(shares, reverse=True)
    assert lines[1].endswith("█")
    assert any(line.startswith("other words: ") for line in lines)
    assert "\x1b" not in done.out  # no colours where it is not a terminal


def test_next_names_unknown_words_of_the_text(nextword, saved_run):
    done = nextword("next", saved_run, "the zebra slept")
    assert "'zebra'" in done.err
    assert "the" not in done.err.split("unknown in ")[1].split(": ")[1]


def test_end_of_the_line_is_one_of_the_answers(nextword, saved_run):
    done = nextword("next", saved_run, "the cat sat on the mat .", "--top", 1)
    assert done.out.splitlines()[1].startswith("(end of the line)")


def test_whole_words_of_a_model_of_characters(nextword, characters):
    done = nextword("next", characters, "the cat", "--json", "--top", 3)
    assert {row["text"] for row in done.json["next"]} == {"sat", "slept", "sang"}
    assert done.json["asks"] == "word"
    total = sum(row["probability"] for row in done.json["next"])
    total += done.json["others"] + done.json["unknown"] + done.json["left"]
    assert total == pytest.approx(1, abs=1e-6)
    assert "".join(done.json["next"][0]["tokens"]).strip() == done.json["next"][0]["text"]


def test_beginning_of_a_word_is_completed_and_the_note_says_how_to_ask_otherwise(nextword, characters):
    done = nextword("next", characters, "the cat sl", "--top", 1)
    assert done.out.startswith("how 'sl' goes on: letters\nslept ")
    assert "put a space at the end" in done.err


def test_tokens_on_request_with_visible_spaces(nextword, characters):
    done = nextword("next", characters, "the cat", "--tokens", "--top", 1)
    assert done.out.startswith("the next token: letters\n␣ ")


def test_why_gives_counts_order_and_backoff(nextword, corpus, tmp_path):
    saved_run = tmp_path / "counted"
    command = ("train", corpus, "--model", "ngram-witten-bell", "--set", "model.order=3", "--out", saved_run)
    assert nextword(*command).code == 0
    done = nextword("next", saved_run, "the cat", "--why", "--top", 20)
    count = corpus.read_text().count("the cat sat")
    total = corpus.read_text().count("the cat ")
    assert f"3-gram: {count} of {total} times after 'the cat'" in done.out
    assert "1-gram: never seen after the words before it, backoff weight" in done.out
    rows = nextword("next", saved_run, "the cat", "--why", "--json", "--top", 1).json["next"]
    assert (rows[0]["why"][0]["order"], rows[0]["why"][0]["count"]) == (3, count)


def test_against_shows_both_probabilities_of_every_word(nextword, saved_run, characters):
    done = nextword("next", saved_run, "the cat", "--against", characters, "--json", "--top", 4)
    alone = nextword("next", characters, "the cat", "--json", "--top", 4).json["next"]
    p_of = {row["text"]: row["probability"] for row in alone}
    for row in done.json["next"][:3]:
        assert row["against"] == pytest.approx(p_of[row["text"]], rel=0.01)
        assert row["ratio"] == pytest.approx(row["probability"] / row["against"])
    shown = nextword("next", saved_run, "the cat", "--against", characters)
    assert shown.out.splitlines()[0].endswith("animals against letters")
    assert shown.out.splitlines()[1].endswith("x")


def test_wrong_number_of_answers_is_one_sentence(nextword, saved_run):
    done = nextword("next", saved_run, "the", "--top", 0)
    assert (done.code, done.err) == (1, "nextword: '--top' is 0; it must be 1 or more\n")


def test_why_of_a_mixture_gives_the_share_of_each_member(nextword, saved_run, corpus, tmp_path):
    mixed = tmp_path / "mixed"
    command = ("mix", saved_run, "--recent", 50, "--tune", corpus, "--out", mixed)
    assert nextword(*command).code == 0
    done = nextword("next", mixed, "the bird sat , the bird", "--why", "--top", 2)
    assert done.code == 0
    why = done.out.split("why (mixture):")[1]
    assert "recent" in why
    assert "tokens ago" in why


def test_network_without_counts_says_so(nextword, corpus, tmp_path):
    sets = ("--set", "train.steps=2", "--set", "model.hidden=8")
    run = tmp_path / "net"
    assert nextword("train", corpus, "--model", "lstm", "--tokenizer", "bytes", *sets, "--out", run).code == 0
    done = nextword("next", run, "the cat ", "--why", "--top", 2)
    assert "why: no counts and no memory to name (LSTM network)" in done.out
    assert "not searched: " in done.out


def test_count_models_are_asked_without_torch(saved_run):
    import subprocess
    import sys

    code = (
        "import sys; from nextword.cli.main import run; "
        f"assert run(['next', {str(saved_run)!r}, 'the cat', '--why']) == 0; "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
