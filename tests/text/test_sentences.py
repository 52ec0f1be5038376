"""Texts are split where sentences end, in several scripts, and joined again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.text.sentences import joined, sentences

SPLIT = [
    "A man sleeps. | Two dogs run! | Why?",
    "He said “Stop!” | Then he left.",
    "“Stop!” he said.",
    "It cost 3.50 euros. | She paid.",
    "Dr. Smith and J. R. Tolkien met Mr. Brown in the U.S. Capitol. | They talked, e.g. about rings.",
    "Well... | Nobody knew…  | Really?! | Yes (of course.) | No.",
    "Wir treffen uns am 3. Mai, d.h. bald. | Kommst du?",
    "Il est parti. | « Où ? » | Personne ne sait.",
    "राम ने रावण को मारा। | सीता घर गई। | क्यों? | डॉ. सिंह आए॥",
    "他来了。 | 她走了！ | “真的吗？” | 是的。",
    "彼は言った。 | 「行こう。」 | 彼女は笑った。",
    "یہ ایک جملہ ہے۔ | یہ دوسرا ہے۔",
    "كيف حالك؟ | أنا بخير.",
    "Он ушёл. | Она осталась, т.е. ждала.",
    "The cat sat. | He said no. | Then see No. 5, and fig. 2.",
    "see www.example.org for more",
    "no mark at all",
]


@pytest.mark.parametrize("marked", SPLIT)
def test_sentences_end_where_they_should(marked):
    expected = [part.strip() for part in marked.split("|")]
    spaced = "".join(f"{part} " for part in expected)
    assert sentences(spaced) == expected


def test_scripts_without_spaces_need_none():
    assert sentences("他来了。她走了！是的") == ["他来了。", "她走了！", "是的"]
    assert sentences("राम गया।सीता गई।") == ["राम गया।", "सीता गई।"]


def test_sentences_are_joined_as_their_script_is():
    assert joined(["A man.", "A dog."]) == "A man. A dog."
    assert joined(["他来了。", "她走了！"]) == "他来了。她走了！"
    assert joined(["One.", "", "Two."]) == "One. Two."
    assert joined([]) == ""


@given(st.text(alphabet='ab AB.!?。। \n\t1"”)', max_size=40))
def test_nothing_but_whitespace_is_lost(text):
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(part == part.strip() and part for part in sentences(text))
