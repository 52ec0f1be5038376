"""`Run.compress` and `Run.decompress`: any bytes come back."""

import pytest


@pytest.mark.parametrize("data", [b"", b"the students\r\n\tread  \n", bytes(range(256)), b"no end"])
def test_compress_gives_any_bytes_back_in_memory_and_saved(run, data, tmp_path):
    coded = run.compress(data)
    assert run.decompress(coded) == data
    assert run.save(tmp_path / "r").decompress(coded) == data  # the same model, so the same fingerprint
