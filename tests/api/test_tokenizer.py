"""`nextword.train_tokenizer`: a tokenizer without a model."""

import nextword


def test_tokenizer_is_a_thing_of_its_own(corpus, tmp_path):
    made = nextword.train_tokenizer(corpus, "characters", out=str(tmp_path / "c.json"))
    assert made.decode(made.encode("books")) == "books"
    assert (tmp_path / "c.json").is_file()
