"""``/metrics``: counters for Prometheus, with labels that nobody outside can make up."""

import re


def test_answers_and_tokens_are_counted(site):
    def count(pattern):
        found = re.search(pattern, site.ask("/metrics").body.decode())
        return float(found[1]) if found else 0.0

    answers = r'nextword_requests_total\{route="/v1/completions",code="200"\} (\d+)'
    tokens = r'nextword_tokens_total\{model="words"\} (\d+)'
    before = count(answers), count(tokens)
    site.complete("words", "the", max_tokens=3, temperature=0, logit_bias={"2": -100})
    assert (count(answers), count(tokens)) == (before[0] + 1, before[1] + 3)


def test_unknown_paths_and_models_make_no_labels(site):
    site.ask("/made-up-by-a-client")
    site.complete("made-up-model", "the")
    text = site.ask("/metrics").body.decode()
    assert "made-up" not in text
    assert 'route="other"' in text


def test_every_line_has_the_form_of_prometheus(site):
    line = re.compile(r'(# (HELP|TYPE) .+|[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [0-9.e+-]+)')
    text = site.ask("/metrics").body.decode()
    assert [each for each in text.rstrip("\n").split("\n") if not line.fullmatch(each)] == []
