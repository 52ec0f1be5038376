"""`nextword generate`: prompt and continuation."""

import pytest


def test_generate_prints_prompt_and_continuation_and_notes_the_seed(nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the cat", "--max-tokens", 5)
    assert done.out.startswith("the cat")  # the model may end the line there
    assert "seed: " in done.err
    seed = done.err.split("seed: ")[1].split()[0]
    again = nextword("generate", saved_run, "--prompt", "the cat", "--max-tokens", 5, "--seed", seed)
    assert again.out == done.out
    assert "seed" not in again.err


@pytest.mark.parametrize("decode", ["greedy", "beam", "sample"])
def test_every_way_to_decode_can_be_asked_for(decode, nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the", "--decode", decode, "--max-tokens", 4, "--json")
    assert done.json["decode"] == decode
    assert done.json["texts"][0]["text"].startswith("the ")


def test_generate_takes_the_other_settings_by_set(nextword, saved_run):
    done = nextword(
        "generate", saved_run, "--set", "min_p=0.5", "--set", "generate.no_repeat=2", "--samples", 2
    )
    assert done.code == 0
    assert len(done.out.rstrip("\n").split("\n")) == 2
    wrong = nextword("generate", saved_run, "--top-p", 2)
    assert (wrong.code, "'generate.top_p' is 2.0" in wrong.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--max-tokens", 2, "--set", "min_tokens=2"], "stopped: 2 tokens were generated (--max-tokens)"),
        (["--prompt", "the cat sat on the", "--decode", "greedy"], "stopped: the model ended the line (END)"),
        (
            ["--prompt", "the", "--set", 'stop=["on"]', "--decode", "greedy"],
            "stopped: a stop text came ('on')",
        ),
        (
            ["--prompt", "the cat sat on the mat .", "--decode", "greedy"],
            "stopped: the model ended the line right after the prompt; --set min_tokens=10 makes it go on",
        ),
    ],
)
@pytest.mark.parametrize("json", [[], ["--json"]])
def test_reason_of_stopping_is_always_told(arguments, reason, json, nextword, saved_run):
    done = nextword("generate", saved_run, *arguments, *json, "--seed", 1)
    assert done.err == reason + "\n"


def test_reasons_of_several_texts_are_counted(nextword, saved_run):
    done = nextword("generate", saved_run, "--samples", 20, "--seed", 1, "--max-tokens", 7, "--json")
    reasons = [text["reason"] for text in done.json["texts"]]
    assert {"end", "length"} == set(reasons)
    assert f"{reasons.count('end')} of 20: the model ended the line (END)" in done.err


def test_prompt_is_not_printed_before_the_run_is_open(nextword, tmp_path):
    done = nextword("generate", tmp_path / "no-such-run", "--prompt", "the cat")
    assert (done.code, done.out) == (1, "")


def test_unknown_words_of_the_prompt_are_named(nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the zebra", "--max-tokens", 2, "--seed", 1)
    assert "not in the vocabulary, so read as unknown in the prompt: 'zebra'" in done.err


def test_help_shows_the_defaults_of_the_settings():
    """Help is written without loading the settings; the numbers must be theirs."""
    import typer.main

    from nextword.cli.app import app
    from nextword.decode.settings import DecodeSettings

    command = typer.main.get_command(app).commands["generate"]
    shown = {each.name: each.show_default for each in command.params if isinstance(each.show_default, str)}
    for name, field in DecodeSettings.model_fields.items():
        if name in shown and name != "seed":
            assert shown[name].split(":")[0] == str(field.default), name
    assert {"max_tokens", "beam_size", "temperature", "top_k", "top_p", "samples", "seed"} <= set(shown)


def test_json_has_every_token_with_its_logprob(nextword, saved_run):
    done = nextword("generate", saved_run, "--decode", "beam", "--set", "n_best=2", "--json")
    for text in done.json["texts"]:
        assert len(text["pieces"]) == len(text["logprobs"]) == text["tokens"]
        assert sum(text["logprobs"]) == pytest.approx(text["logprob"])
        assert text["score"] <= 0


def test_json_has_the_tree_of_a_beam_on_request(nextword, saved_run):
    asked = ["--prompt", "the", "--decode", "beam", "--json"]
    done = nextword("generate", saved_run, *asked, "--set", "tree=true")
    assert all(node["parent"] < place for place, node in enumerate(done.json["tree"]))
    plain = nextword("generate", saved_run, *asked)
    assert "tree" not in plain.json
    assert plain.json["texts"] == done.json["texts"]


def test_draft_is_reported_and_changes_nothing(nextword, saved_run):
    asked = ["--prompt", "the", "--decode", "greedy", "--max-tokens", 9, "--set", "min_tokens=9"]
    plain, drafted = (nextword("generate", saved_run, *asked, *more) for more in ([], ["--draft", saved_run]))
    assert drafted.out == plain.out
    assert "draft: 100% of" in drafted.err
    done = nextword("generate", saved_run, *asked, "--draft", saved_run, "--json")
    assert done.json["draft"]["rate"] == 1.0


def test_runs_can_write_together(nextword, saved_run):
    asked = ["--prompt", "the", "--decode", "greedy", "--max-tokens", 4]
    alone, both = (nextword("generate", saved_run, *asked, *more) for more in ([], ["--with", saved_run]))
    assert both.out == alone.out


def test_int8_needs_a_network(nextword, saved_run):
    done = nextword("generate", saved_run, "--precision", "int8", "--max-tokens", 2)
    assert done.code == 0
    assert "has no network" in done.err
