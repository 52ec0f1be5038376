"""`nextword export`: ARPA files that `import` reads back."""

import gzip

import pytest


def test_export_and_import_keep_the_numbers(nextword, corpus, saved_run, here):
    before = nextword("eval", saved_run, corpus, "--json").json["nll"]
    for name in ("m.arpa", "m.arpa.gz"):
        assert nextword("export", saved_run, "--to", "arpa", "--out", name).out == f"{name}\n"
        assert nextword("import", name, "--out", f"run-{name}").code == 0
        assert nextword("eval", f"run-{name}", corpus, "--json").json["nll"] == pytest.approx(
            before, abs=1e-5
        )
    assert gzip.decompress((here / "m.arpa.gz").read_bytes()) == (here / "m.arpa").read_bytes()
