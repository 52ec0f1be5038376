"""The inside of taggers and classifiers: what layers know of tags or labels, units, attention, word vectors.

[IITD-2 "Multi-layer RNNs": lower layers hold lower-level features]. A model that reads whole sentences
generates no text, so the sentences are given, with their tags or labels where these are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nextword.core.contracts import END
from nextword.core.errors import DataError
from nextword.data.batches.words import Sentences
from nextword.drawing.page import Table
from nextword.probe import features, vectors
from nextword.probe.result import ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow

Array = np.ndarray[Any, np.dtype[Any]]
_ROWS = 64  # sentences of a batch
_TOKENS = 20_000  # words that are looked at
_TARGETS = 8  # most frequent tags or labels that units are compared with


class WordSubject(Subject):
    """A tagger or classifier, and sentences. ``targets``: a tag for each word, or one label a text."""

    def __init__(
        self,
        name: str,
        model: Any,
        noun: str,
        words: Sequence[Sequence[str]] = (),
        targets: Sequence[Any] = (),
        are_own: bool = False,
    ) -> None:
        super().__init__(name, model, model.vocabulary)
        self.network, self.vocabulary = model.network, model.vocabulary
        self.noun, self.are_own = noun, are_own  # whether the model itself made the targets
        kept = [at for at, each in enumerate(words) if each]
        self.words = [list(words[at]) for at in kept]
        self.targets = [targets[at] for at in kept]

    @property
    def kind(self) -> str:
        """Tagger or classifier."""
        return self.noun

    @property
    def described(self) -> str:
        """The model in one or two words."""
        return self.noun

    @property
    def layers(self) -> int:
        """How many layers the encoder has."""
        stacked = getattr(self.network.encoder, "layers", None)  # of a recurrent encoder
        return len(stacked) if stacked is not None else len(self.states(1)) - 1 if self.words else 0

    @property
    def is_by_word(self) -> bool:
        """Whether every word has a target of its own."""
        return bool(self.targets) and not isinstance(self.targets[0], str)

    def sentences(self, tokens: int) -> list[list[str]]:
        """Return the sentences, up to this many words; there must be some."""
        if not self.words:
            raise DataError(f"a {self.noun} generates no text; give some with --text")
        ends = np.cumsum([len(each) for each in self.words])
        return self.words[: max(1, int(np.searchsorted(ends, tokens, side="right")))]

    def batches(self, tokens: int) -> Iterator[Any]:
        """Yield the sentences as tensors."""
        from nextword.models.network import device_of
        from nextword.models.words import to_tensors

        if self.vocabulary.states:
            raise DataError("the model reads features of language models, which are not looked into")
        packed = Sentences(self.sentences(tokens), self.vocabulary.lexicon)
        for at in range(0, len(packed), _ROWS):
            rows_B = np.arange(at, min(at + _ROWS, len(packed)))
            yield to_tensors(packed.take(rows_B), device_of(self.network))

    def states(self, tokens: int) -> list[tuple[str, Array]]:
        """Return the vectors of all words, then what each layer makes of them."""
        import torch

        found: list[list[Array]] = []
        with torch.inference_mode():
            for words in self.batches(tokens):
                x_BTE = self.network.words(words)
                layers = [x_BTE, *self.network.encoder.layer_outputs(x_BTE, words.lengths_B)]
                real_BT = torch.arange(x_BTE.shape[1], device=x_BTE.device) < words.lengths_B[:, None]
                found = found or [[] for _ in layers]
                for place, h_BTD in enumerate(layers):
                    found[place].append(h_BTD[real_BT].double().cpu().numpy())
        names = ["word vectors", *(f"layer {place}" for place in range(1, len(found)))]
        return [(name, np.concatenate(parts)) for name, parts in zip(names, found, strict=True)]

    def sentence_vectors(self, tokens: int) -> list[Any]:
        """Return ``x_1TE`` of each sentence: what the encoder reads."""
        import torch

        found: list[Any] = []
        with torch.no_grad():
            for words in self.batches(tokens):
                rows_BTE = self.network.words(words).split(1)
                found += [x_1TE[:, :T] for x_1TE, T in zip(rows_BTE, words.lengths_B.tolist(), strict=True)]
        return found

    def row_of_words(self, tokens: int) -> TokenRow:
        """Return the words as one row."""
        pieces = [word + ("\n" if at == len(each) - 1 else " ")
                  for each in self.sentences(tokens) for at, word in enumerate(each)]  # fmt: skip
        return TokenRow(np.arange(END + 1, END + 1 + len(pieces)), tuple(pieces))

    @property
    def source(self) -> str:
        """Whose tags or labels the targets are."""
        what = "tags" if self.is_by_word else "labels"
        return f"the model's own {what}" if self.are_own else f"the {what} of the text"


def numbered(names: Sequence[str]) -> tuple[list[str], Array]:
    """Return the distinct names, the most frequent first, and the number of each."""
    order = [name for name, _ in Counter(names).most_common()]
    places = {name: place for place, name in enumerate(order)}
    return order, np.array([places[name] for name in names], dtype=np.int64)


def probed(subject: WordSubject, tokens: int) -> tuple[list[tuple[str, Array]], dict[str, Array]]:
    """Return the layers and the classes of a linear probe: one row a word, or one a text."""
    layers, sentences = subject.states(tokens or _TOKENS), subject.sentences(tokens or _TOKENS)
    targets = subject.targets[: len(sentences)]
    if subject.is_by_word:
        words = [word for each in sentences for word in each]
        _, tags_N = numbered([tag for each in targets for tag in each])
        found = features.classes([f"{word} " for word in words])
        spelling = features.kinds([word[:1] for word in words])
        return layers, {"tag": tags_N, "kind of the first letter": spelling} | {
            name: row for name, row in found.items() if name == "words of the sentence (thirds)"
        }
    starts = np.cumsum([0, *(len(each) for each in sentences)])
    sizes_N1 = np.diff(starts)[:, None]
    means = [(name, np.add.reduceat(x_ND, starts[:-1], axis=0) / sizes_N1) for name, x_ND in layers]
    _, labels_N = numbered([str(label) for label in targets])
    return means, {"label": labels_N}


def followed(subject: WordSubject, tokens: int) -> tuple[TokenRow, list[tuple[str, Array]], dict[str, Array]]:
    """Return the words, the layers, and for the most frequent tags or labels where they are."""
    tokens = tokens or _TOKENS
    sentences, layers = subject.sentences(tokens), subject.states(tokens)
    targets = subject.targets[: len(sentences)]
    each_word = [
        name for words, target in zip(sentences, targets, strict=True)
        for name in (target if subject.is_by_word else [target] * len(words))
    ]  # fmt: skip
    order, ids_N = numbered(each_word)
    return (
        subject.row_of_words(tokens),
        layers,
        {name: (ids_N == place).astype(np.float64) for place, name in enumerate(order[:_TARGETS])},
    )


def embeddings(subject: WordSubject, settings: ProbeSettings) -> ProbeResult:
    """Show the nearest neighbours of frequent words: those of the text, or of the training text."""
    lexicon = subject.vocabulary.lexicon
    vectors_VE = subject.network.words.table_VE.detach().double().cpu().numpy()
    if vectors_VE.shape[1] == 0 or len(vectors_VE) < 3:
        raise DataError("the model has no word vectors (model.embedding is 0, or it knows no words)")
    times = Counter(word for each in subject.words for word in each)
    known = [word for word, _ in times.most_common() if lexicon.is_known(word) and word[:1].isalpha()]
    asked = known or [word for word in lexicon.words if word[:1].isalpha()]
    ids = dict.fromkeys(lexicon.word_ids(asked).tolist())
    asked_Q = np.array(list(ids)[: settings.words], dtype=np.int64)
    near_QK, cosine_QK = vectors.neighbours(vectors_VE, asked_Q, settings.neighbours, 1)
    names = ["(unknown)", *lexicon.words]
    rows = tuple(
        (names[word], ", ".join(f"{names[i]} {c:.2f}" for i, c in zip(near, cosines, strict=True)))
        for word, near, cosines in zip(asked_Q.tolist(), near_QK.tolist(), cosine_QK.tolist(), strict=True)
    )
    first = f"'{names[asked_Q[0]]}' lies nearest to '{names[near_QK[0, 0]]}' (cosine {cosine_QK[0, 0]:.2f})"
    return ProbeResult(
        "embeddings", subject.name, f"Words as vectors: {subject.name}",
        f"{len(vectors_VE) - 1:,} words have vectors of {vectors_VE.shape[1]} numbers; {first}.",
        'IITD-1 "Window classification"',
        {"words_Q": asked_Q, "near_QK": near_QK, "cosine_QK": cosine_QK},
        {"Q": [names[word] for word in asked_Q]}, (Table(("word", "nearest words and their cosine"), rows),),
    )  # fmt: skip
