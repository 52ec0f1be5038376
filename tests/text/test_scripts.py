"""Languages without spaces between words are noticed."""

import pytest

from nextword.text.scripts import unspaced_note


@pytest.mark.parametrize(
    "text",
    [
        "人人生而自由，在尊严和权利上一律平等。 他们赋有理性和良心，并应以兄弟关系的精神相对待。",
        "すべての人間は、生まれながらにして自由であり、 かつ、尊厳と権利とについて平等である。",
        "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน ในเกียรติศักดิ์และสิทธิ",
    ],
)
def test_text_without_spaces_between_words_is_noted(text):
    assert "--tokenizer characters or --tokenizer bpe" in unspaced_note(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all human beings are born free and equal",
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다",
        "人人 生 而 自由 ， 在 尊严 和 权利 上 一律 平等 。",
        "the word 人人生而自由在尊严和权利上 is quoted in a long English sentence here",
    ],
)
def test_text_with_words_is_not_noted(text):
    assert unspaced_note(text.split()) is None
