"""Three uses of text, made for each kind of Transformer: fill a blank, continue, turn into another sequence.

A row is some letters, a mark, and the same letters from the last to the first, all small or all capital:
"bdag = gadb" or "bdag = GADB". So every use has a least cost that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import torch

from nextword.core.contracts import SPECIALS, START
from nextword.data.batches.batch import NOT_COUNTED, Batch
from nextword.data.batches.corrupted import Corrupted
from nextword.data.batches.pairs import PairRows
from nextword.experiments.small import Floats, Ints
from nextword.models.network import Network
from nextword.tasks.objectives.corrupted import read

LETTERS, SIDE = 8, 4  # letters there are, and letters before and after the mark
LENGTH = 2 * SIDE + 1
MARK = len(SPECIALS)
SMALL = MARK + 1  # the first small letter; capitals come after them
CAPITAL = SMALL + LETTERS
BLANK = CAPITAL + LETTERS
VOCABULARY = BLANK + 1
GIVEN = 2  # letters of a row that is continued
ENCODER, DECODER, BOTH = KINDS = ("encoder only", "decoder only", "encoder and decoder")
FILL, CONTINUE, TURN = USES = ("fill a blank", "continue", "turn into another")


@dataclass(frozen=True)
class Least:
    """What a row costs at least, whatever the model, and how many letters that is."""

    nats: float
    letters: int


# The blank is a letter before the mark, and what follows decides it. One coin decides small or capital.
LEAST = {
    FILL: Least(0.0, 1),
    CONTINUE: Least((SIDE - GIVEN) * log(LETTERS) + log(2), LENGTH - GIVEN),
    TURN: Least(log(2), SIDE),
}


def make_rows(rng: np.random.Generator, rows: int) -> Ints:
    """Return letters, the mark, and the letters backwards, small or capital."""
    letters_BS = SMALL + rng.integers(0, LETTERS, (rows, SIDE))
    more_B1 = rng.choice([0, CAPITAL - SMALL], (rows, 1))
    return np.concatenate([letters_BS, np.full((rows, 1), MARK), letters_BS[:, ::-1] + more_B1], axis=1)


def make_batch(rng: np.random.Generator, kind: str, use: str, rows: int) -> Any:
    """Return new rows of a use as a kind of Transformer reads them."""
    ids_BT = make_rows(rng, rows)
    if use == FILL:
        return fill_batch(kind, ids_BT, rng.integers(0, SIDE, rows))
    if use == CONTINUE:
        return continue_batch(kind, ids_BT, rng.integers(GIVEN, LENGTH, rows))
    return turn_batch(kind, ids_BT)


def fill_batch(kind: str, ids_BT: Ints, place_B: Ints) -> Any:
    """Hide a letter; an encoder predicts it at its place, the others write all letters before the mark again.

    BERT (Devlin et al. 2019) fills so, and BART (Lewis et al. 2020).
    """
    whole_BS, blanked_BT = ids_BT[:, :SIDE], ids_BT.copy()
    blanked_BT[np.arange(len(ids_BT)), place_B] = BLANK
    if kind == BOTH:
        return _pairs(blanked_BT, whole_BS)
    if kind == DECODER:
        both_BT = np.concatenate([blanked_BT, whole_BS], axis=1)
        return Batch(both_BT[:, :-1], _only(both_BT, LENGTH)[:, 1:])
    return _whole(blanked_BT, np.where(blanked_BT == BLANK, ids_BT, NOT_COUNTED))


def continue_batch(kind: str, ids_BT: Ints, place_B: Ints) -> Any:
    """Go on after the first letters; an encoder predicts the one at ``place_B``, where its row ends."""
    if kind == BOTH:
        return _pairs(ids_BT[:, :GIVEN], ids_BT[:, GIVEN:])
    if kind == DECODER:
        return Batch(ids_BT[:, :-1], _only(ids_BT, GIVEN)[:, 1:])
    at_T, place_B1 = np.arange(LENGTH), place_B[:, None]
    blanked_BT = np.where(at_T < place_B1, ids_BT, BLANK)
    return _whole(blanked_BT, np.where(at_T == place_B1, ids_BT, NOT_COUNTED), place_B + 1)


def turn_batch(kind: str, ids_BT: Ints) -> Any:
    """Write the letters backwards; an encoder fills all places at once."""
    first = SIDE + 1
    if kind == BOTH:
        return _pairs(ids_BT[:, :SIDE], ids_BT[:, first:])
    if kind == DECODER:
        return Batch(ids_BT[:, :-1], _only(ids_BT, first)[:, 1:])
    return _whole(np.where(np.arange(LENGTH) < first, ids_BT, BLANK), _only(ids_BT, first))


def _only(ids_BT: Ints, first: int) -> Ints:
    """Count the letters from a place on."""
    return np.where(np.arange(ids_BT.shape[1]) < first, NOT_COUNTED, ids_BT)


def _whole(inputs_BT: Ints, targets_BT: Ints, lengths_B: Ints | None = None) -> Corrupted:
    """Return rows of which every letter sees every other."""
    B, T = inputs_BT.shape
    return Corrupted(inputs_BT, targets_BT, np.full(B, T) if lengths_B is None else lengths_B)


def _pairs(source_BS: Ints, targets_BT: Ints) -> PairRows:
    """Return sources, and targets after START."""
    (B, S), T = source_BS.shape, targets_BT.shape[1]
    inputs_BT = np.concatenate([np.full((B, 1), START), targets_BT[:, :-1]], axis=1)
    return PairRows(source_BS, np.full(B, S), inputs_BT, targets_BT, np.full(B, T))


@torch.inference_mode()
def nats_of(network: Network, batch: Any) -> Floats:
    """Return ``nats_BT``: -log p of what is predicted, 0 where nothing is."""
    network.eval()
    if isinstance(batch, Batch):
        inputs_BT = torch.from_numpy(batch.inputs_BT)
        features_BTD = network.read(inputs_BT, network.start(len(inputs_BT)))[0]
    else:
        features_BTD = read(network, batch)
    head: Any = network.head
    targets_N = torch.from_numpy(batch.targets_BT).flatten()
    counted_N = targets_N != NOT_COUNTED
    logp_NV = head.log_probs(features_BTD.flatten(0, 1)[counted_N])
    nats_N = torch.zeros(len(targets_N), dtype=torch.float64)
    nats_N[counted_N] = -logp_NV.gather(1, targets_N[counted_N][:, None])[:, 0].double()
    found: Floats = nats_N.view(batch.targets_BT.shape).numpy()
    return found


def costs(network: Network, kind: str, use: str, ids_BT: Ints) -> Floats:
    """Return ``nats_BT`` of a use, one column for each letter that is predicted."""
    B = len(ids_BT)
    if use == FILL:
        place_B = np.arange(B) % SIDE
        nats_BT = nats_of(network, fill_batch(kind, ids_BT, place_B))
        written_BS = nats_BT[:, :SIDE] if kind == ENCODER else nats_BT[:, -SIDE:]
        return written_BS[np.arange(B), place_B][:, None]
    if use == TURN:
        return nats_of(network, turn_batch(kind, ids_BT))[:, -SIDE:]
    if kind != ENCODER:
        return nats_of(network, continue_batch(kind, ids_BT, np.full(B, GIVEN)))[:, -LEAST[use].letters :]
    places = [continue_batch(kind, ids_BT, np.full(B, place)) for place in range(GIVEN, LENGTH)]
    return np.stack([nats_of(network, batch).sum(axis=1) for batch in places], axis=1)
