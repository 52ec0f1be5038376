"""`nextword compress`: what it writes is restored byte for byte."""


def test_compress_and_decompress_give_the_file_back(nextword, saved_run, here):
    data = b"the cat sat\r\n\n a  zebra\t\n" * 5
    (here / "f").write_bytes(data)
    assert nextword("compress", saved_run, "f").out == "f.nwz\n"
    assert nextword("decompress", saved_run, "f.nwz", "-o", "back").out == "back\n"
    assert (here / "back").read_bytes() == data
    done = nextword("compress", saved_run, "f", "-o", "z", "--json")
    assert done.json["compressed"] == (here / "z").stat().st_size
