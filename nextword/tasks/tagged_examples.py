"""Tagged sentences on their way to a tagger: files, held-out sentences, words and tags, checks, arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import cast

from nextword.core.errors import DataError
from nextword.data import spans
from nextword.data.conll import TagDataSettings, Tagged, TaggedText
from nextword.data.encode import DataFacts
from nextword.data.part import Part
from nextword.data.tagged import TaggedSentences, TagVocabulary
from nextword.runs.settings import RunSettings
from nextword.tasks.vectors import GivenVectors
from nextword.text.lexicon import Lexicon, LexiconSettings

_LEAST_HELD_OUT = 2  # sentences


@dataclass(frozen=True)
class TagFiles:
    """The files of a tagger."""

    text: TaggedText | Part[Tagged]
    valid: TaggedText | None = None

    @property
    def size(self) -> int | None:
        """Return the bytes of the training text."""
        return self.text.size


@dataclass(frozen=True)
class PreparedTags:
    """Sentences as arrays, with what turns them into numbers."""

    vocabulary: TagVocabulary
    facts: DataFacts
    learned: TaggedSentences
    measured: TaggedSentences | None
    vectors: GivenVectors | None = None

    def digest(self) -> str:
        """Return the SHA-256 of what is learned from."""
        return self.facts.sha256


def hold_out(sentences: list[Tagged], share: float) -> tuple[list[Tagged], list[Tagged]]:
    """Hold out every n-th sentence."""
    if not share or len(sentences) * share < _LEAST_HELD_OUT:
        return sentences, []
    every = max(2, round(1 / share))
    return (
        [each for at, each in enumerate(sentences) if at % every != every - 1],
        sentences[every - 1 :: every],
    )


def make_vocabulary(
    sentences: list[Tagged], settings: RunSettings, known: TagVocabulary | None
) -> TagVocabulary:
    """Collect the words and tags of the sentences; those of ``known``, a run to start from, come first."""
    data = cast(TagDataSettings, settings.data)
    counts = Counter(tag for each in sentences for tag in each.tags)
    if len(counts) < 2 and known is None:
        only = next(iter(counts))
        raise DataError(
            f"every word has the tag '{only}', so there is nothing to learn; choose another column with "
            "--set data.column=NAME",
            sentences[0].path,
        )
    if len(counts) > 2000 and len(counts) > 0.3 * counts.total():
        raise DataError(
            f"there are {len(counts):,} different tags on {counts.total():,} words, which looks like the "
            "wrong column; choose another with --set data.column=NAME",
            sentences[0].path,
        )
    try:
        scheme = "none" if data.bio == "none" else spans.find_scheme(each.tags for each in sentences)
    except spans.TagError as error:
        where = sentences[error.sentence]
        raise DataError(str(error), where.path, where.line_of(error.word)) from error
    lexicon = Lexicon.of((each.words for each in sentences), cast(LexiconSettings, settings.text))
    tags = tuple(sorted(counts, key=lambda tag: (-counts[tag], tag)))
    if known is None:
        return TagVocabulary(lexicon, tags, scheme)
    if scheme != known.scheme and any(tag != "O" for tag in tags):
        raise DataError(
            f"the tags have the scheme '{scheme}', and those of the run to start from '{known.scheme}'; "
            "convert the tags, or train without --from",
            sentences[0].path,
        )
    merged = known.lexicon.merged(lexicon)
    return replace(known, lexicon=merged, tags=tuple(dict.fromkeys((*known.tags, *tags))))


def checked(sentences: list[Tagged], scheme: spans.Name, bio: str) -> tuple[list[Tagged], int]:
    """Repair tags that are not legal, or refuse them."""
    if scheme == "none":
        return sentences, 0
    made, repairs = [], 0
    for each in sentences:
        places = spans.illegal_steps(each.tags, scheme)
        if places and bio == "strict":
            at = min(places[0], len(each.tags) - 1)
            raise DataError(
                f"the tag '{each.tags[at]}' of '{each.words[at]}' may not stand there in {scheme.upper()}; "
                "mend it, or use --set data.bio=repair",
                each.path,
                each.line_of(at),
            )
        repairs += bool(places)
        made.append(each._replace(tags=spans.repaired(each.tags, scheme)) if places else each)
    return made, repairs


def check_known(sentences: list[Tagged], vocabulary: TagVocabulary) -> None:
    """Refuse a file none of whose tags the tagger knows: it is not tagged, or this is another column."""
    found = {tag for each in sentences for tag in each.tags}
    if not found & set(vocabulary.tags):
        shown = ", ".join(f"'{tag}'" for tag in sorted(found)[:3])
        known = ", ".join(sorted(vocabulary.tags)[:8])
        raise DataError(
            f"none of the tags here ({shown}, …) was seen in training ({known}, …); choose the column of the "
            "tag with --set data.column=NAME, and tag a text without tags with: nextword predict RUN FILE",
            sentences[0].path,
            sentences[0].line,
        )


def to_arrays(sentences: list[Tagged], vocabulary: TagVocabulary) -> TaggedSentences:
    """Turn words and tags into numbers."""
    return TaggedSentences([each.words for each in sentences], [each.tags for each in sentences], vocabulary)
