"""`nextword filter`: lines kept by their scores."""


def test_filter_keeps_lines_byte_for_byte(nextword, saved_run, here):
    (here / "t.txt").write_bytes(b"the cat sat on the mat .\nzq zq zq zq\nthe  dog\tsat\r\n")
    kept = nextword("filter", saved_run, "t.txt", "--keep", "head:34")
    assert kept.out == "the cat sat on the mat .\n"
    assert nextword("filter", saved_run, "t.txt", "--keep", "best", "--out", "f.txt").code == 0
    done = nextword("filter", saved_run, "t.txt", "--keep", "worst", "--json")
    assert done.json["lines"] == 3
    refused = nextword("filter", saved_run, "t.txt", "--out", "t.txt")
    assert refused.code == 1
    assert "which is also the input" in refused.err


def test_filter_of_a_table_marks_its_rows(nextword, saved_run, here):
    (here / "t.csv").write_text('id,body\n1,the cat sat on the mat .\n2,"zq, zq"\n')
    done = nextword("filter", saved_run, "t.csv", "--keep", "buckets:50", "--set", "data.text_column=body")
    assert done.out == 'id,body,bucket\n1,the cat sat on the mat .,head\n2,"zq, zq",tail\n'
    kept = nextword("filter", saved_run, "t.csv", "--keep", "best", "--set", "data.text_column=body")
    assert kept.out == "id,body\n1,the cat sat on the mat .\n"
