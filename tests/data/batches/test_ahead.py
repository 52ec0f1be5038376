"""Reading ahead stays within its limits."""

from nextword.data.batches.ahead import read_ahead


def test_lists_are_limited_by_number_and_by_size():
    texts = ["a"] * 5 + ["b" * 10, "c", "d"]
    found = list(read_ahead(iter(texts), 3, len, 8))
    assert [len(each) for each in found] == [3, 3, 2]
    assert [text for each in found for text in each] == texts


def test_nothing_is_read_before_it_is_needed():
    read = []
    found = read_ahead((read.append(n) or n for n in range(100)), 4, lambda n: 1, 1000)
    next(found)
    assert len(read) == 4


def test_no_inputs_give_no_lists():
    assert list(read_ahead([], 3, len, 8)) == []
