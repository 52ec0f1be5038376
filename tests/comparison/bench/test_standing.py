"""The table of a bench: rows against the baseline, beside the published ranking, in four forms."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nextword.comparison.bench.agreement import agree, ranks, spearman
from nextword.comparison.bench.plan import HORIZON, long_rate
from nextword.comparison.bench.power import detectable, power_note
from nextword.comparison.bench.published import of
from nextword.comparison.bench.report import page
from nextword.comparison.bench.result import BenchResult, keep, kept
from nextword.comparison.bench.rows import rows_of
from nextword.comparison.bench.setup import Budget
from nextword.comparison.bench.standing import stand
from nextword.comparison.bench.writing import as_csv, as_latex, as_markdown

BLOCKS = 40


def run(preset, bits, seed=0, jitter=0.002):
    rng = np.random.default_rng(seed + sum(map(ord, preset)))
    text = np.random.default_rng(9).normal(1, 0.1, BLOCKS)
    mean = bits + rng.normal(0, jitter)
    return BenchResult(
        preset, f"key-{seed}", seed=seed, bits_per_byte=mean, early=3.0 + bits, final=2.0 + bits, tokens=1000,
        steps=10, rate=0.01, parameters=1_000_000, operations=1e6, speed=5.0, relative_speed=0.5, threads=1,
        precision="fp32", losses={"0.003": 3.0, "0.01": 2.5, "0.03": None},
        blocks=(1000 * mean * text / text.mean() + rng.normal(0, 3, BLOCKS)).tolist(),
        curve=[(1.0, 100, mean + 1), (2.0, 1000, mean)],
    )  # fmt: skip


def standing(names="vanilla,swiglu,elu,gelu,block-sharing,tied-inputs", seeds=3, changed=lambda run: run):
    rows = rows_of(names)
    inner = SimpleNamespace(
        block_bytes=np.full(BLOCKS, 1000.0), data=("my.txt",), valid=(), minutes=None, tune=None,
        has_networks=True,
    )  # fmt: skip
    setup = SimpleNamespace(setup=inner, rows=rows, budget=Budget(1000, None, "tokens"), seeds=seeds)
    bits = {"Vanilla": 2.0, "SwiGLU": 1.9, "ELU": 2.1, "GeLU": 2.0003, "Block sharing": 2.3}
    found = [run(row.preset, bits[row.title], seed) for seed in range(seeds) for row in rows.trained]
    return stand(setup, [changed(each) for each in found])


def test_rows_are_tested_against_the_baseline_and_not_against_the_best():
    found = {row.preset: row for row in standing().rows}
    assert found["narang/vanilla"].verdict == "the baseline"
    assert found["narang/swiglu"].verdict.startswith("better (p")
    assert found["narang/elu"].verdict.startswith("worse (p")
    assert found["narang/gelu"].verdict.startswith("no difference shown (p")
    assert standing().rows[0].preset == "narang/swiglu"


def test_two_seeds_give_differences_without_a_verdict():
    found = {row.preset: row for row in standing(seeds=2).rows}
    assert found["narang/swiglu"].verdict == "no verdict below 3 seeds"
    assert "against Vanilla" not in standing(seeds=2).table().columns
    assert "against Vanilla" in standing().table().columns
    assert found["narang/swiglu"].test.behind == pytest.approx(-0.1, abs=0.01)


def test_rows_of_another_precision_are_named_and_have_no_verdict():
    mixed = standing(changed=lambda run: replace(run, precision="bf16") if "swiglu" in run.model else run)
    found = {row.preset: row for row in mixed.rows}
    assert found["narang/swiglu"].verdict == "no verdict between bf16 and fp32"
    assert found["narang/elu"].verdict.startswith("worse (p")
    assert "Vanilla was computed in fp32, 1 in bf16" in str(mixed)
    assert "Vanilla was computed in fp32, 1 in bf16" in as_markdown(mixed)
    assert "precision" in mixed.table().columns
    assert "precision" not in standing().table().columns


def test_rows_timed_on_another_machine_are_shown_at_the_speed_of_the_baselines():
    mixed = standing(changed=lambda run: replace(run, speed=50.0) if "swiglu" in run.model else run)
    swiglu = next(row for row in mixed.rows if row.preset == "narang/swiglu")
    assert mixed.steps_per_second(swiglu) == pytest.approx(5.0 * 0.5)


def test_what_is_not_there_is_said():
    text = str(standing())
    assert "5 rows of 3 seeds" in text
    assert "Tied encoder/decoder input embeddings: it changes an encoder" in text


def test_the_agreement_names_rows_on_the_other_side():
    found = agree(
        [("V", 2.0, of("narang/vanilla")), ("S", 2.2, of("narang/swiglu")), ("E", 2.3, of("narang/elu")),
         ("G", 1.9, of("narang/glu"))], "V",
    )  # fmt: skip
    assert found.same_side == ("E", "G")
    assert found.other_side == ("S",)
    assert found.rho == pytest.approx(spearman([2, 3, 4, 1], [3, 1, 4, 2]))
    assert "On the other side: S." in str(found)
    assert agree([("V", 2.0, of("narang/vanilla"))], "V") is None


def test_equal_numbers_share_their_rank_and_rho_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    assert ranks([3.0, 1.0, 3.0]).tolist() == [2.5, 1.0, 2.5]
    a, b = [1.0, 2.0, 2.0, 4.0, 9.0], [3.0, 1.0, 4.0, 4.0, 8.0]
    assert spearman(a, b) == pytest.approx(float(stats.spearmanr(a, b).statistic), abs=1e-12)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0.0


def test_more_seeds_find_smaller_differences_and_more_rows_larger_ones():
    assert detectable(0.01, 1) == math.inf
    assert detectable(0.01, 10) < detectable(0.01, 3) < detectable(0.01, 2)
    assert detectable(0.01, 3, rows=40) > detectable(0.01, 3)
    assert "no verdict, with 3" in power_note([2.0, 2.01, 1.99], 2, 40)
    assert "pilot diverged" in power_note([2.0], 3, 40)


def test_a_long_training_gets_a_lower_rate_than_the_best_of_a_short_one():
    even = {"0.001": 3.0, "0.01": 2.0, "0.1": 3.0}
    assert long_rate(even, 1.0) == pytest.approx(0.01)
    assert long_rate(even, 0.08) == pytest.approx(0.01 * 0.08**HORIZON, rel=0.01)
    assert long_rate({"0.01": 2.5, "0.03": 2.0, "0.09": 2.4}, 1.0) == pytest.approx(0.0319, rel=0.01)


def test_rates_that_are_nearly_equally_good_give_nearly_the_same_rate():
    first = long_rate({"0.003": 7.36, "0.01": 6.77, "0.03": 6.80, "0.09": 6.9}, 1.0)
    second = long_rate({"0.003": 7.36, "0.01": 6.77, "0.03": 6.76, "0.09": 6.9}, 1.0)
    assert second == pytest.approx(first, rel=0.3)


def test_a_rate_at_the_end_or_beside_one_that_diverged_is_taken_as_it_is():
    assert long_rate({"0.01": 2.0, "0.03": 2.5}, 1.0) == pytest.approx(0.01)
    assert long_rate({"0.003": 3.0, "0.01": 2.0, "0.03": None}, 1.0) == pytest.approx(0.01)
    assert long_rate({"0.01": None}, 1.0) is None


def test_the_rate_beyond_the_last_is_never_the_one_that_is_chosen():
    flat = {"0.003": 7.398, "0.01": 6.910, "0.03": 6.872, "0.09": 6.865}
    assert long_rate(flat, 1.0) == pytest.approx(0.03)
    low = {"0.001": 2.0, "0.003": 2.1, "0.01": 2.5, "0.03": 3.0}
    assert long_rate(low, 1.0) == pytest.approx(0.003)


def test_no_losses_give_a_rate_outside_those_that_were_tried():
    for losses in itertools.product([6.8, 6.9, 7.4, None], repeat=4):
        rate = long_rate(dict(zip(("0.003", "0.01", "0.03", "0.09"), losses, strict=True)), 1.0)
        assert rate is None or 0.003 <= rate < 0.09


def test_the_table_has_the_same_cells_in_every_form():
    found = standing()
    table = found.table()
    rows = list(csv.reader(io.StringIO(as_csv(table))))
    assert rows[0] == list(table.columns)
    assert len(rows) == 1 + len(found.rows)
    markdown = as_markdown(found)
    assert len(re.findall(r"(?m)^\| ", markdown)) == 2 + len(found.rows)
    assert "Spearman's rho" in markdown
    latex = as_latex(table)
    assert latex.count(r"\\") == 1 + len(found.rows)
    assert r"$\pm$" in latex


def test_latex_and_markdown_escape_what_means_something_there():
    table = standing().table()
    odd = type(table)(("a|b_c", "x", "y"), (("50 % & {", "~", "<"),))
    assert r"50 \% \& \{" in as_latex(odd)
    assert r"a|b\_c" in as_latex(odd)


def test_the_page_has_all_pictures_and_no_script():
    html = page(standing()).html()
    assert html.count("<svg") == 4
    assert "<script" not in html
    for words in ("Loss against time", "published, final loss", "Difference from the baseline", "by rate"):
        assert words in html


def test_a_result_is_found_again_by_its_key_alone(tmp_path):
    made = run("narang/gelu", 2.0)
    keep(tmp_path, "narang-gelu", made)
    found = kept(tmp_path, "narang-gelu", made.key)
    assert found.bits_per_byte == made.bits_per_byte
    assert found.blocks == made.blocks
    assert kept(tmp_path, "narang-gelu", "another") is None
    (tmp_path / "rows" / "narang-gelu.json").write_text('{"key": "key-0", "unknown": 1}')
    assert kept(tmp_path, "narang-gelu", made.key) is None
