"""Compiled scoring of one short sentence or one word: a call takes its bytes and makes no arrays.

A call with every array of a model would cost more than scoring; so the kernels get one row of numbers, the
``head``: addresses and lengths. N-grams are searched in the trie, or looked up in the hash tables of
`ngram.fast.index` where they are in memory. The plain equivalent is `walk.TrieWalk`; a test compares them.

A context is a row of numbers, too (its columns: HELD …): how many words it holds, the length of the last
n-gram and whether its word is unknown, the number of the `calls.Calls` that made it, how many of its words
can still matter (-1: nobody asked yet), then their n-grams as nodes and the words themselves, newest first.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

from nextword.core.contracts import END, START, UNKNOWN
from nextword.formats.arpa.lines import ZERO_LOG10
from nextword.ngram.fast.index import SPILL, place_of
from nextword.ngram.settings import LONGEST
from nextword.system.compiled import compiled
from nextword.text.kernels import next_word

# The head: numbers of the model, then LEVEL columns for each order.
ORDER, SLOTS, SLOT_COUNT, SHIFT, ARENA, ARENA_SIZE, STARTS, STARTS_SIZE, ZEROS, UNIGRAMS, INDEXED = range(11)
BLOCK_IDS, BLOCK_NUMBERS = INDEXED + 1, INDEXED + 2  # room for a block of words, see `_block`
BLOCK = 64  # words
TOUCHED = BLOCK_NUMBERS + 1  # written so that reading ahead has a use
LEFT = TOUCHED + 1  # words that may still be searched in the trie
NUMBER, BYTES, KIND, LETTERS = range(LEFT + 1, LEFT + 5)  # of its states, and of a word: see `direct_kernels`
NOW = LETTERS + 1  # room for the nodes of the sentence that is being scored: the interpreter's lock is held
AHEAD = NOW + LONGEST + 1  # room for the places in the hash tables that are looked at, see `_touch`
FIXED = AHEAD + LONGEST + 1
WORDS, PROBS, BACKOFFS, CHILDREN, SIZE, WIDE, TABLE, PLACES, LEVEL = range(9)
# A context.
HELD, LENGTH, IS_UNKNOWN, MAKER, MATTER, NODES = range(6)
ANY = 1 << 40  # numbers of an array whose length nobody asks for
_START, _END, _UNKNOWN, _ZERO_LOG10, _EMPTY = START, END, UNKNOWN, ZERO_LOG10, np.uint64(2**32 - 1)


@intrinsic
def pointer(context, address):
    """Return an address as a pointer."""
    signature = types.voidptr(address)

    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return signature, generate


def _loader(kind):
    """Return a function that loads the number at a place of an array, given the array's address."""

    @intrinsic
    def load(context, address, place):
        signature = kind(types.int64, types.int64)

        def generate(context, builder, signature, args):
            value = context.get_value_type(kind)
            array = builder.inttoptr(args[0], value.as_pointer())
            return builder.load(builder.gep(array, [args[1]]))

        return signature, generate

    return load


_int32, _uint32, _float32, _float64 = map(_loader, (types.int32, types.uint32, types.float32, types.float64))
load_uint64 = _loader(types.uint64)


@compiled(inline="always")
def _column(head, n, column):
    """Return a number of level n, counted from 0."""
    return head[np.uint64(FIXED + n * LEVEL + column)]


@compiled(inline="always")
def _number(head, n, column, node):
    """Return a probability or weight of a node of the trie."""
    return np.float64(_float32(_column(head, n, column), node))


@compiled(inline="always")
def _weight_of(head, word):
    """Return the weight of a single word as context; it is next to its probability."""
    return np.float64(_float32(head[UNIGRAMS], 2 * word + 1))


@compiled(inline="always")
def _extensions(head, n, node):
    """Return where the extensions of a node of level n (from 0) start and stop."""
    children = _column(head, n, CHILDREN)
    if _column(head, n, WIDE):
        return np.int64(load_uint64(children, node)), np.int64(load_uint64(children, node + 1))
    return np.int64(_uint32(children, node)), np.int64(_uint32(children, node + 1))


@compiled(inline="always")
def vocabulary(head):
    """Return the table of words as `next_word` takes it."""
    return (
        carray(pointer(head[SLOTS]), (head[SLOT_COUNT],), np.uint64),
        np.uint64(head[SHIFT]),
        carray(pointer(head[ARENA]), (head[ARENA_SIZE],), np.uint8),
        carray(pointer(head[STARTS]), (head[STARTS_SIZE],), np.int64),
    )


@compiled(inline="always")
def _in_trie(head, n, node, word):
    """Return the node of level n+1 that extends a node of level n: -1 none, -2 an offset is damaged."""
    low, stop = _extensions(head, n, node)
    if not 0 <= low <= stop <= _column(head, n + 1, SIZE):
        return np.int64(-2)
    words, length = _column(head, n + 1, WORDS), stop - low
    if length == 0:
        return np.int64(-1)
    while length > 1:  # the last word that is not larger; without a branch to guess
        half = length >> 1
        low += half * (_int32(words, low + half) <= word)
        length -= half
    return low if _int32(words, low) == word else np.int64(-1)


@compiled(inline="always")
def _in_table(head, n, node, word):
    """Return the place of an n-gram in the hash table of level n+1, or -1; `_touch` was there before."""
    table = _column(head, n + 1, TABLE)
    wanted = np.uint64(word) << np.uint64(32) | np.uint64(node)  # columns 0 and 1 in one number
    at = head[np.uint64(AHEAD + n)]
    while True:
        found = load_uint64(table, 2 * at)
        if found == wanted:
            return at
        if found >> np.uint64(32) == _EMPTY:
            return np.int64(-1)
        at += 1


@compiled(inline="always")
def _touch(head, nodes, held, word):
    """Read the first place of every n-gram that ends in a word, so that the cache misses overlap."""
    touched = np.uint64(0)
    for n in range(held):
        at = place_of(nodes[n], word, _column(head, n + 1, PLACES) - SPILL)
        head[np.uint64(AHEAD + n)] = at
        touched |= load_uint64(_column(head, n + 1, TABLE), 2 * at)
    head[TOUCHED] = np.int64(touched)


@compiled()
def _advance(head, nodes, held, word):
    """Read a word after the contexts ``nodes[:held]``, from the shortest; they become those after it.

    Returns the product of its probability and weights, log10 of what stands for zeros, and the length of
    its n-gram: 0 if an offset or a word is outside its array, or no more words may be searched in the trie.
    """
    if not 0 <= word < _column(head, 0, SIZE):
        return 0.0, 0.0, 0
    indexed = head[INDEXED] != 0
    if indexed:
        _touch(head, nodes, held, word)
    else:
        head[LEFT] -= 1
        if head[LEFT] < 0:
            return 0.0, 0.0, 0
    product, zeros, found, last = np.float64(_float32(head[UNIGRAMS], 2 * word)), 0.0, 1, np.int64(word)
    for n in range(held):  # ever longer n-grams, as long as they exist
        at = _in_table(head, n, nodes[n], word) if indexed else _in_trie(head, n, nodes[n], word)
        if at < 0:
            if at == -2:
                return 0.0, 0.0, 0
            break
        nodes[n], last = last, at
        product = (
            np.float64(_float32(_column(head, n + 1, TABLE), 4 * at + 2))
            if indexed
            else _number(head, n + 1, PROBS, at)
        )
        found += 1
    if product <= 0.0:
        zeros, product = _float64(head[ZEROS], word) if word < 2 else _ZERO_LOG10, 1.0
    for n in range(found - 1, held):  # the weights of the contexts left over
        if n > 0 and indexed:
            weight = np.float64(_float32(_column(head, n, TABLE), 4 * nodes[n] + 3))
        else:
            weight = _number(head, n, BACKOFFS, nodes[n]) if n else _weight_of(head, nodes[n])
        if weight > 0.0:
            product *= weight
        else:
            zeros += _ZERO_LOG10
    if found < head[ORDER]:
        nodes[found - 1] = last
    return product, zeros, found


@compiled()
def _block(head, sentence, at, end, nodes, weights, p, found):
    """Read up to BLOCK words level by level, so that cache misses of all words overlap.

    Row n of ``nodes`` and ``weights`` is for n-grams of n+1 words, and column k+1 for the block's word k;
    column 0 is the word before. Returns how many words were read, where the next starts, and whether
    the sentence goes on. ``p`` and ``found`` are their probabilities and the lengths of their n-grams.
    """
    order, words = head[ORDER], vocabulary(head)
    count, going = np.uint64(0), True
    while going and count < np.uint64(BLOCK):
        word, at = next_word(sentence, at, words)
        if word < 0:
            going = False
            if not end:
                break
            word = np.int64(_END)
        p[count], found[count] = _float32(head[UNIGRAMS], 2 * word), 1
        count += np.uint64(1)
        nodes[0, count], weights[0, count] = word, _float32(head[UNIGRAMS], 2 * word + 1)
    one, touched = np.uint64(1), np.uint64(0)
    for n in range(1, order):
        table, size = _column(head, n, TABLE), _column(head, n, PLACES) - SPILL
        for k in range(count):
            place = place_of(max(nodes[n - 1, k], 0), nodes[0, k + one], size)
            nodes[n, k + one] = place
            touched |= load_uint64(table, 2 * place)
        for k in range(count):
            context, place = nodes[n - 1, k], nodes[n, k + one]
            nodes[n, k + one] = -1
            if context < 0:
                continue
            p[k] *= weights[n - 1, k]
            if found[k] < n:  # a shorter n-gram is missing
                continue
            wanted = np.uint64(nodes[0, k + one]) << np.uint64(32) | np.uint64(context)
            entry = load_uint64(table, 2 * place)
            while entry != wanted and entry >> np.uint64(32) != _EMPTY:
                place += 1
                entry = load_uint64(table, 2 * place)
            if entry == wanted:
                nodes[n, k + one], weights[n, k + one] = place, _float32(table, 4 * place + 3)
                p[k], found[k] = _float32(table, 4 * place + 2), n + 1
    head[TOUCHED] = np.int64(touched)
    return np.int64(count), at, going


@compiled(inline="always")
def _rooms(head):
    """Return nodes, weights, p and lengths of a block."""
    cells = (LONGEST + 1) * (BLOCK + 1)
    ids = carray(pointer(head[BLOCK_IDS]), (cells + BLOCK,), np.int64)
    numbers = carray(pointer(head[BLOCK_NUMBERS]), (cells + BLOCK,), np.float64)
    return (
        ids[:cells].reshape((LONGEST + 1, BLOCK + 1)),
        numbers[:cells].reshape((LONGEST + 1, BLOCK + 1)),
        numbers[cells:],
        ids[cells:],
    )


@compiled(inline="always")
def _carry(order, nodes, weights, column):
    """Let a column of a block be the word before the next one."""
    for n in range(order - 1):
        nodes[n, 0], weights[n, 0] = nodes[n, column], weights[n, column]


@compiled(inline="always")
def _first(head, nodes, weights, begin):
    """Set the word before the first block: START or none."""
    for n in range(head[ORDER]):
        nodes[n, 0] = -1
    if begin and head[ORDER] > 1:
        nodes[0, 0], weights[0, 0] = _START, _weight_of(head, _START)


@compiled()
def score(head, sentence, begin, end):
    """Compute log10 p of a sentence's bytes; NaN: see `_advance`."""
    if head[INDEXED] == 0:
        return _score_by_words(head, sentence, begin, end)
    nodes, weights, p, found = _rooms(head)
    _first(head, nodes, weights, begin)
    total, product, at, going = 0.0, 1.0, np.int64(0), True
    while going:
        count, at, going = _block(head, sentence, at, end, nodes, weights, p, found)
        for k in range(np.uint64(count)):
            if p[k] <= 0.0:
                return _score_by_words(head, sentence, begin, end)
            product *= p[k]
            if product < 1e-200 or product > 1e200:
                total += math.log10(product)
                product = 1.0
        _carry(head[ORDER], nodes, weights, count)
    return total + math.log10(product)


@compiled()
def _score_by_words(head, sentence, begin, end):
    """Compute `score` word by word."""
    order, held = head[ORDER], 0
    nodes = head[NOW : NOW + order]
    if begin and order > 1:
        nodes[0], held = _START, 1
    table = vocabulary(head)
    total, product, at, going = 0.0, 1.0, 0, True
    while going:
        word, at = next_word(sentence, at, table)
        if word < 0:
            going = False
            if not end:
                break
            word = np.int64(_END)
        p, zeros, found = _advance(head, nodes, held, word)
        if found == 0:
            return np.nan
        held = min(found, order - 1)
        product *= p
        total += zeros
        if product < 1e-200 or product > 1e200:
            total += math.log10(product)
            product = 1.0
    return total + math.log10(product)


@compiled()
def full_scores(head, sentence, begin, end, log10, length, is_unknown):
    """Write log10 p, n-gram length and whether it is unknown for every word; return how many.

    -1: see `_advance`. The arrays must have room for two words more than half the number of bytes.
    """
    if head[INDEXED] == 0:
        return _full_scores_by_words(head, sentence, begin, end, log10, length, is_unknown)
    nodes, weights, p, found = _rooms(head)
    _first(head, nodes, weights, begin)
    at, total, going = np.int64(0), np.uint64(0), True
    while going:
        count, at, going = _block(head, sentence, at, end, nodes, weights, p, found)
        for k in range(np.uint64(count)):
            if p[k] <= 0.0:
                return _full_scores_by_words(head, sentence, begin, end, log10, length, is_unknown)
            log10[total], length[total] = math.log10(p[k]), found[k]
            is_unknown[total] = nodes[0, k + np.uint64(1)] == _UNKNOWN
            total += np.uint64(1)
        _carry(head[ORDER], nodes, weights, count)
    return np.int64(total)


@compiled()
def _full_scores_by_words(head, sentence, begin, end, log10, length, is_unknown):
    """Compute `full_scores` word by word."""
    order, held = head[ORDER], 0
    nodes = head[NOW : NOW + order]
    if begin and order > 1:
        nodes[0], held = _START, 1
    table = vocabulary(head)
    at, count, going = 0, 0, True
    while going:
        word, at = next_word(sentence, at, table)
        if word < 0:
            going = False
            if not end:
                break
            word = np.int64(_END)
        p, zeros, found = _advance(head, nodes, held, word)
        if found == 0:
            return -1
        held = min(found, order - 1)
        log10[count], length[count] = math.log10(p) + zeros, found
        is_unknown[count] = word == _UNKNOWN
        count += 1
    return count


@compiled()
def step(head, before, word, after):
    """Return log10 p of a word after a context and write the context after it; NaN: see `_advance`.

    Both contexts may be the same.
    """
    order, held = head[ORDER], before[HELD]
    words = NODES + order  # where the words start
    for n in range(held):
        after[NODES + n] = before[NODES + n]
    p, zeros, found = _advance(head, after[NODES : NODES + order], held, word)
    if found == 0:
        return np.nan
    held = min(found, order - 1)
    for n in range(held - 1, 0, -1):
        after[words + n] = before[words + n - 1]
    if held:
        after[words] = word
    after[HELD], after[LENGTH], after[IS_UNKNOWN] = held, found, word == _UNKNOWN
    after[MAKER], after[MATTER] = before[MAKER], -1
    return math.log10(p) + zeros


@compiled()
def matter(head, context):
    """Return how many words of a context can still matter; -1 if an offset points outside its array.

    The longest suffix counts that has extensions or a weight of its own.
    """
    words = NODES + head[ORDER]
    for keep in range(context[HELD], 0, -1):
        node = context[words + keep - 1]
        for n in range(keep - 1):
            node = _in_trie(head, n, node, context[words + keep - 2 - n])
            if node < 0:
                return np.int64(-1)
        n = keep - 1
        if _number(head, n, BACKOFFS, node) != 1.0:
            return np.int64(keep)
        low, stop = _extensions(head, n, node)
        if low != stop:
            return np.int64(keep)
    return np.int64(0)
