"""`nextword lab`: the experiments, listed and run."""


def test_lab_lists_its_experiments_and_runs_one(nextword, here):
    assert {"counts", "sparsity"} <= {row["name"] for row in nextword("lab", "list", "--json").json}
    done = nextword("lab", "counts", "--out", "pictures", "--json")
    assert done.json["holds"]
    assert list((here / "pictures").iterdir())
    assert "did you mean 'counts'" in nextword("lab", "count").err
