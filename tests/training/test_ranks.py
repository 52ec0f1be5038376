"""The rows of ranks: every row of a batch belongs to exactly one, for any number of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.errors import ConfigError
from nextword.data.batches.batch import Batch
from nextword.system.launch import Launch, launched
from nextword.training.ranks import DisconnectedRank, Ranks

PLACE = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def batch(rows, length=4):
    ids = np.arange(rows * (length + 1)).reshape(rows, length + 1)
    return Batch(ids[:, :-1], ids[:, 1:], ids[:, :-1] % 3 == 0)


@given(st.integers(0, 40), st.integers(1, 12))
def test_parts_are_all_rows_in_their_order_and_nearly_equal(rows, world):
    parts = [range(rows)[DisconnectedRank(rank, world).part(rows)] for rank in range(world)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert rows == 0 or len(parts[0]) > 0


@given(st.integers(1, 9), st.integers(1, 6))
def test_ranks_learn_together_from_every_word_of_a_batch_once(rows, world):
    whole = batch(rows)
    parts = [DisconnectedRank(rank, world).rows_of(whole) for rank in range(world)]
    assert sum(part.tokens for part in parts) == whole.tokens
    assert all(len(part.inputs_BT) for part in parts)  # each has something to read
    for name in ("inputs_BT", "targets_BT", "resets_BT"):
        together = np.concatenate([getattr(part, name) for part in parts if part.tokens])
        assert np.array_equal(together, getattr(whole, name))


def test_one_process_has_the_batch_itself_and_nothing_to_agree_on():
    alone, whole = Ranks(), batch(3)
    assert alone.rows_of(whole) is whole
    assert (alone.key, alone.all_gather(1, 2), alone.total(0.1), alone.broadcast("a")) == (
        (),
        [(1, 2)],
        0.1,
        "a",
    )
    assert alone.first_message("") == ""


def test_what_torchrun_and_slurm_say_is_understood():
    assert launched({}) == Launch()
    found = launched({
        **PLACE, "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
        "TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "2",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    })  # fmt: skip
    assert found == Launch(3, 4, 1, 2, "localhost", 29500, True, 1, True)
    assert (found.share(8), found.share(1), found.is_first) == (4, 1, False)
    slurm = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0", "SLURM_CPUS_PER_TASK": "3"}
    found = launched(PLACE | slurm)
    assert (found.rank, found.world, found.port, found.share(8)) == (1, 2, 29500, 3)
    assert launched(slurm) == Launch()  # a job's script that names no master starts single processes


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is 'x'"),
        ({"RANK": "2", "WORLD_SIZE": "2", **PLACE}, "rank 2 of 2"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR and MASTER_PORT"),
    ],
)
def test_wrong_variables_are_told_with_what_to_do(environment, said):
    with pytest.raises(ConfigError, match=said):
        launched(environment)
