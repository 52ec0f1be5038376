"""Continuous batching: what a request gets does not depend on who else is in the batch."""

import gc
import weakref

import numpy as np
import pytest

from nextword.core.contracts import END
from nextword.core.errors import ContextError
from nextword.decode.engine import Engine, Full
from nextword.decode.generate import collect, generate
from nextword.decode.requests import Request
from nextword.decode.sampling import uniform, uniforms
from nextword.decode.settings import DecodeSettings


@pytest.fixture(scope="module", params=["ngram", "lstm", "transformer", "rnn", "window"])
def model(request, tmp_path_factory):
    """A small model of each family."""
    import nextword

    folder = tmp_path_factory.mktemp(request.param)
    (folder / "t.txt").write_text("the cat sat on the mat .\nthe dog sat on the rug .\n" * 30)
    small = {"model.hidden": 16, "train.steps": 2, "train.precision": "fp32"}
    sets = {"model.order": 3} if request.param == "ngram" else small
    return nextword.train(str(folder / "t.txt"), model=request.param, tokenizer="words", set=sets).model


def finish(engine, *requests):
    for _ in range(2000):
        if engine.is_idle:
            break
        engine.step()
    assert engine.is_idle
    return requests


def settings(seed, **more):
    return DecodeSettings(seed=seed, max_tokens=12, **more)


PROMPTS = [(3, 4, 5), (), (6,), (3, 4, 5, 6, 7, 3, 4), (5, 5)]


def test_batched_rows_are_those_of_generate_token_for_token(model):
    engine = Engine(model, rows=8)
    asked = [Request(ids, settings(i, temperature=0.9, top_p=0.95), texts=2) for i, ids in enumerate(PROMPTS)]
    asked += [Request(ids, settings(0, decode="greedy")) for ids in PROMPTS]
    for request in asked:
        engine.admit(request)
        engine.step()  # they enter at different times
    finish(engine)
    for request in asked:
        samples = request.settings.model_copy(update={"samples": request.texts})
        alone = collect(generate(model, [request.prompt], samples))
        assert [row.written.ids for row in request.rows] == [list(each.ids) for each in alone]
        assert [row.reason for row in request.rows] == [each.reason for each in alone]
        for row, each in zip(request.rows, alone, strict=True):
            assert [token.logprob for token in row.tokens] == pytest.approx(each.logprobs, abs=1e-5)


def test_bias_and_penalties_are_those_of_generate(model):
    more = {"logit_bias": {END: -100.0, 4: 1.5}, "presence_penalty": 0.5, "frequency_penalty": 0.25}
    ways = [more, {**more, "repetition_penalty": 1.3}, {**more, "temperature": 0.7, "top_k": 5}]
    asked = [Request((3, 4), settings(i, **way)) for i, way in enumerate(ways * 2)]
    engine = Engine(model, rows=8)
    for request in asked:
        engine.admit(request)
    finish(engine)
    for request in asked:
        alone = collect(generate(model, [request.prompt], request.settings))
        assert [row.written.ids for row in request.rows] == [list(each.ids) for each in alone]


def test_prompt_that_is_scored_is_continued_like_one_that_is_not(model):
    asked = [Request((3, 4, 5, 6), settings(7), scored=scored) for scored in (True, False)]
    for request in asked:
        engine = Engine(model)
        engine.admit(request)
        finish(engine)
    assert asked[0].rows[0].written.ids == asked[1].rows[0].written.ids
    assert (len(asked[0].read), asked[1].read) == (4, [])


def test_prompt_is_scored_in_pieces_as_in_one(model):
    ids = tuple(3 + i % 5 for i in range(50))
    engine = Engine(model, piece=7)
    plain, with_top = Request(ids, scored=True), Request(ids, scored=True, top=2)
    for request in (plain, with_top):
        engine.admit(request)
    finish(engine)
    logp = np.asarray(model.score(np.array([ids]), np.array([len(ids)]))[0])[0]
    for request in (plain, with_top):
        assert [token.id for token in request.read] == list(ids)
        assert [token.logprob for token in request.read] == pytest.approx(logp.tolist(), abs=1e-5)
    assert all(len(token.top) == 2 for token in with_top.read)
    assert all(token.top[0][1] >= token.top[1][1] for token in with_top.read)


def test_request_that_leaves_frees_its_rows_before_the_next_step(model):
    engine = Engine(model, rows=2)
    long, short = Request((3,), settings(1, min_tokens=12)), Request((3,), settings(2))
    for request in (long, short):
        engine.admit(request)
    engine.step()
    engine.leave(long)
    before = len(long.rows[0].tokens)
    finish(engine)
    assert len(long.rows[0].tokens) == before
    assert not long.is_done
    assert short.is_done


class Leaving(Request):
    """A request that another thread takes back at some moment within a step."""

    looks = 0

    @property
    def has_left(self):
        """Return True from the look on that was chosen."""
        self.looks -= 1
        return self.looks < 0

    @has_left.setter
    def has_left(self, value):
        self.looks = 0 if value else 10**9


def test_request_may_leave_in_the_middle_of_a_step(model):
    for look in range(6):
        engine, long = Engine(model, rows=3), DecodeSettings(seed=1, min_tokens=60, max_tokens=60)
        gone, leaving, other = Request((3,), long), Leaving((3,), long), Request((3,), settings(2))
        for request in (gone, leaving, other):
            engine.admit(request)
        engine.step()
        gone.has_left, leaving.looks = True, look
        finish(engine)
        assert not leaving.is_done
        assert other.is_done


def held(state):
    """Count the bytes of a state's tensors and arrays; each buffer counts once."""
    found = {}

    def look(part):
        if isinstance(part, np.ndarray):
            found[part.ctypes.data] = part.nbytes
        elif hasattr(part, "untyped_storage"):
            found[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
        elif isinstance(part, tuple | list):
            for each in part:
                look(each)

    look(state)
    return sum(found.values())


def test_nothing_of_requests_that_ended_or_left_is_kept(model):
    engine = Engine(model, rows=8)
    asked = [Request(ids, settings(i), texts=2) for i, ids in enumerate(PROMPTS)]
    for request in asked:
        engine.admit(request)
        engine.step()
    engine.leave(asked[-1])
    finish(engine)
    known = [weakref.ref(each) for request in asked for each in (request, *request.rows)]
    assert len(known) > len(asked)
    del asked, request
    gc.collect()
    assert not [each() for each in known if each() is not None]
    assert (engine._state, engine._read_state, engine._logp_RV.size) == (None, None, 0)


def test_rows_that_stay_do_not_keep_the_size_of_those_that_left(model):
    def after(prompt):
        engine, last = Engine(model, rows=8), Request((3, 4), settings(1, min_tokens=12))
        gone = [Request(prompt, settings(i, min_tokens=12)) for i in range(4)]
        for request in (*gone, last):
            engine.admit(request)
        engine.step()
        for request in gone:
            engine.leave(request)
        engine.step()
        assert [row.request for row in engine._rows] == [last]
        return held(engine._state)

    assert after((3, 4, 5, 6) * 20) == after((3, 4))


def test_queue_is_bounded_and_rows_are_taken_in_order(model):
    engine = Engine(model, rows=1, waiting=2)
    first, second = Request((3,), settings(1)), Request((4,), settings(2))
    engine.admit(first)
    engine.admit(second)
    with pytest.raises(Full):
        engine.admit(Request((5,), settings(3)))
    while not second.rows:
        engine.step()
    assert first.is_done


class Moody:
    """A model of four tokens that has no distribution after the token 3."""

    vocab_size = 4

    def start(self, batch, source=None, begin=True):
        return np.zeros(batch, dtype=np.int64)

    def next(self, state):
        if (state == 3).any():
            raise ContextError("no distribution here")
        return np.log(np.tile([0.0, 1e-300, 0.5, 0.5], (len(state), 1)) + 1e-300)

    def step(self, ids_B, state):
        return self.next(np.asarray(ids_B)), np.asarray(ids_B)

    def score(self, ids_BT, lengths_B, state=None):
        last = np.array(
            [row[n - 1] if n else old for row, n, old in zip(ids_BT, lengths_B, state, strict=True)]
        )
        return np.zeros(np.shape(ids_BT)), last

    def reorder(self, state, rows_B):
        return state[rows_B]

    def rows(self, state):
        return len(state)

    def join(self, states):
        return np.concatenate(states)


def test_error_of_one_request_does_not_touch_the_others():
    engine = Engine(Moody(), rows=8)
    bad, good = Request((3,), settings(1)), Request((2,), DecodeSettings(seed=1, max_tokens=1))
    for request in (bad, good):
        engine.admit(request)
    finish(engine)
    assert isinstance(bad.error, ContextError)
    assert good.error is None
    assert good.rows[0].reason in ("end", "length")
    assert END in (2, good.rows[0].written.ids[0])


def test_random_numbers_drawn_together_are_those_drawn_one_by_one():
    for first in (0, 5, 64):
        alone = [uniform(7, 3, first + i) for i in range(10)]
        assert uniforms(7, 3, first, 10) == alone
