"""How a training is shown: a bar on a terminal, plain lines elsewhere."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from nextword.cli import show
from nextword.core.errors import Stopped
from nextword.core.events import Done, Note, Stage, Step, Valid


def step(number, seconds=1.0, left=9.0, steps=None):
    return Step(
        step=number, steps=steps, seconds=seconds, seconds_left=left, tokens=1000 * number, loss=4.25,
        rate=0.01, norm=0.5, tokens_per_second=12_345.6, memory=450_000_000,
    )  # fmt: skip


def valid(number, seconds=1.0, best=True, shown="2.125 bits per byte"):
    return Valid(
        step=number,
        seconds=seconds,
        tokens=1,
        values={},
        shown=shown,
        best=best,
    )


def test_each_validation_is_a_plain_line(capsys):
    made = show.follow([Stage("train"), step(7), valid(7), step(8), Note("ready"), Done("it")])
    assert made == "it"
    assert capsys.readouterr().err.splitlines() == [
        "step 7: loss 4.250 nats per token, held out 2.125 bits per byte, 12,346 tokens/s, norm 0.5, 450 MB, "
        "0:09 left",
        "ready",
    ]


def test_a_long_silence_is_broken(capsys):
    show.follow([step(1, 1), step(2, 20), step(3, 31, steps=9, left=None), step(4, 40)])
    assert (
        capsys.readouterr().err
        == "step 3 of 9: loss 4.250 nats per token, 12,346 tokens/s, norm 0.5, 450 MB\n"
    )


def test_a_measurement_is_shown_as_its_task_says_it(capsys):
    show.follow([valid(3, best=False, shown="4.500 nats per token")])
    assert capsys.readouterr().err == "step 3: held out 4.500 nats per token (not the best)\n"


@pytest.mark.parametrize(("seconds", "shown"), [(7, "0:07"), (65, "1:05"), (3723, "1:02:03"), (-1, "0:00")])
def test_time_left_reads_like_a_clock(seconds, shown):
    assert show._time(seconds) == shown


def test_the_bar_shows_loss_quality_speed_and_time_left(monkeypatch):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=160)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    events = [
        Stage("train"),
        step(1),
        valid(1),
        step(2, 5.0, 5.0),
        Note("half"),
        step(9, 1, None, 10),
        Done(3),
    ]
    assert show._with_bars([*events, Done(3)]) == 3
    shown = screen.getvalue()
    for part in (
        "train",
        "loss 4.250",
        "2.125 bits per byte",
        "12,346 tokens/s",
        "norm 0.5",
        "450 MB",
        "half",
    ):
        assert part in shown, part


def test_interrupt_while_an_event_is_shown_goes_to_whoever_knows_what_was_kept(monkeypatch):
    def events():
        try:
            yield Note("one")
        except KeyboardInterrupt as stop:
            raise Stopped("one is kept") from stop

    def interrupted(text):
        raise KeyboardInterrupt

    monkeypatch.setattr("nextword.cli.show.note", interrupted)
    with pytest.raises(Stopped, match="one is kept"):
        show.follow(events())


def test_line_has_bits_per_byte_and_no_perplexity_beside_the_loss(capsys):
    measured = valid(3, shown="perplexity 9.00, 2.1250 bits per byte")
    show.follow([step(3), replace(measured, values={"perplexity": 9.0, "bits_per_byte": 2.125})])
    line = capsys.readouterr().err
    assert "held out 2.1250 bits per byte," in line
    assert "loss 4.250 nats per token" in line
    assert "perplexity" not in line


ROWS = [
    {"name": "ffn", "count": 3, "allowed": "relu, gelu, swiglu, experts, switch, memory"},
    {"name": "mixer"},
]


def test_table_has_a_line_a_row_where_it_is_read_by_a_program(capsys):
    show.table(ROWS)
    assert capsys.readouterr().out.split("\n") == [
        "name   count  allowed",
        "ffn        3  relu, gelu, swiglu, experts, switch, memory",
        "mixer      -  -",
        "",
    ]


def test_table_folds_its_last_column_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    show.table(ROWS)
    assert capsys.readouterr().out.split("\n") == [
        "name   count  allowed",
        "ffn        3  relu, gelu, swiglu,",
        "              experts, switch, memory",
        "mixer      -  -",
        "",
    ]
