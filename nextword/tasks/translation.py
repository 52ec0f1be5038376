"""Translating many texts with a trained model, in order and in bounded memory; forced scores of targets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nextword.core.contracts import UNKNOWN, Aligner, LanguageModel, Source
from nextword.core.errors import ConfigError
from nextword.core.task import DEFAULT_OPTIONS, Prediction, PredictOptions
from nextword.data.batches.ahead import read_ahead
from nextword.data.batches.batch import Ints
from nextword.data.batches.pairs import PairSequences, Sequences
from nextword.data.languages import swapped
from nextword.data.lines import read_lines
from nextword.data.paired import PairVocabulary, encode_now, encode_sources, shortened
from nextword.data.pairs import PairDataSettings, PairedText
from nextword.data.paths import STDIN
from nextword.data.paths import Source as InputFile
from nextword.decode.generate import Generated, collect, generate, texts_and_rows
from nextword.decode.settings import DecodeSettings
from nextword.decode.speculate import Draft
from nextword.evaluation.lines.scores import LN10, LineScore, TokenScore
from nextword.models.distributions import as_numpy
from nextword.text.sentences import joined, sentences

_log = logging.getLogger("nextword")
DECODING = {"decode": "beam", "beam_size": 5, "max_tokens": 1000, "max_ratio": 2.0}
"""How `predict` and `eval` decode by default."""
SENTENCES = "sentences"
"""What `predict` splits texts into on request."""
_CHUNK, _CHUNK_LETTERS = 2048, 1 << 18  # texts and letters that are read ahead and sorted by length
_ROWS = 64  # texts that are translated at once
_POSITIONS = 1 << 13  # source tokens of such a batch, at most
_LOOKED_AT = 500  # texts that are looked at for swapped languages
_TABLES = ("csv", "tsv", "jsonl", "parquet")


def by_length(lengths_N: Ints, rows: int = _ROWS) -> Iterator[Ints]:
    """Yield rows of similar length, a batch at a time, the longest first."""
    order, at = np.argsort(-lengths_N, kind="stable"), 0
    while at < len(order):
        many = min(rows, max(1, _POSITIONS // max(1, int(lengths_N[order[at]]))))
        yield order[at : at + many]
        at += many


def translate(
    model: LanguageModel,
    sources: Sequences,
    vocabulary: PairVocabulary,
    settings: DecodeSettings,
    draft: Draft | None = None,
) -> Iterator[tuple[Ints, list[list[Generated]]]]:
    """Yield the rows of each batch and what was written for each: the best text, or the n best."""
    texts, rows = texts_and_rows(settings)
    many = _ROWS * rows
    settings = settings.model_copy(update={"batch": max(settings.batch, many)})
    for rows_B in by_length(sources.lengths_N):
        ids_BS, lengths_B = sources.take(rows_B, fill=0)
        source = Source(ids_BS, lengths_B)
        written: list[list[Generated]] = [[] for _ in rows_B]
        for text in collect(generate(model, [()] * len(rows_B), settings, vocabulary.target, source, draft)):
            written[text.row // texts].append(text)
        yield rows_B, written


def forced_scores(model: LanguageModel, pairs: PairSequences) -> Iterator[tuple[Ints, Ints, Any, Ints]]:
    """Yield rows, targets, ``logp_BT`` and lengths of each batch: log p(target | source), token by token."""
    for rows_B in by_length(pairs.source.lengths_N + pairs.target.lengths_N):
        batch = pairs.take(rows_B)
        ids_BT = np.where(batch.targets_BT < 0, 0, batch.targets_BT)
        state = model.start(len(rows_B), Source(batch.source_BS, batch.source_lengths_B))
        logp_BT, _ = model.score(ids_BT, batch.lengths_B, state)
        yield rows_B, ids_BT, logp_BT, batch.lengths_B


def score_pairs(
    model: LanguageModel, vocabulary: PairVocabulary, text: PairedText, tokens: bool, log10: bool
) -> Iterator[LineScore]:
    """Yield log p(target | source) of every pair, in order and in bounded memory; END counts."""
    scale = 1 / LN10 if log10 else 1.0
    line = 0
    for chunk in read_ahead(text.stream(), _CHUNK, lambda pair: len(pair.target), _CHUNK_LETTERS):
        ids = encode_now(chunk, vocabulary)
        ids = PairSequences(shortened(ids.source, text.settings), ids.target)
        found: list[LineScore | None] = [None] * len(chunk)
        for rows_B, ids_BT, logp_BT, lengths_B in forced_scores(model, ids):
            for row, row_ids, logp_T, length in zip(
                rows_B.tolist(), ids_BT, as_numpy(logp_BT, np.float64), lengths_B.tolist(), strict=True
            ):
                own = row_ids[:length].tolist()
                pieces = (vocabulary.target.piece(index) for index in own) if tokens else ()
                each = zip(pieces, logp_T, own, strict=False)
                found[row] = LineScore(
                    line + row + 1, chunk[row].target, float(logp_T[:length].sum()) * scale, length,
                    own.count(UNKNOWN), log10,
                    tuple(TokenScore(piece, float(p) * scale, index != UNKNOWN) for piece, p, index in each),
                )  # fmt: skip
        yield from (each for each in found if each is not None)
        line += len(chunk)


def alignment(model: Any, source: Source, ids: Sequence[int]) -> Any:
    """Return ``weights_TS``: where in its source each token of one target looked when it was predicted."""
    state, found = model.start(1, source), []
    for index in ids:
        found.append(as_numpy(model.attention(state), np.float64)[0])
        _, state = model.step(np.array([index]), state)
    return np.stack(found)


class TranslationPredictor:
    """Translates texts, in order, in bounded memory; batches inside are sorted by length."""

    def __init__(
        self,
        model: Any,
        vocabulary: PairVocabulary,
        options: PredictOptions = DEFAULT_OPTIONS,
        data: PairDataSettings | None = None,
    ) -> None:
        self.model, self.vocabulary, self.options = model, vocabulary, options
        self.data = data or PairDataSettings()
        self.settings: DecodeSettings = options.decode or DecodeSettings(**DECODING)
        self._foreign = self._cut = 0
        self._swapped = False

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Yield one prediction for each text."""
        translate = self._by_sentence if self.options.split == SENTENCES else self.translate
        for number, chunk in enumerate(read_ahead(inputs, _CHUNK, len, _CHUNK_LETTERS)):
            if number == 0:
                sides = self.vocabulary.source_language, self.vocabulary.target_language
                self._swapped = swapped(*sides, chunk[:_LOOKED_AT])
            yield from translate(chunk)
        self._warn()

    def predict_file(self, file: str) -> Iterator[Prediction]:
        """Yield one prediction for each line of a file, or for each source of a table."""
        if file in STDIN or InputFile(file).format not in _TABLES:
            return self.predict(read_lines(file))
        auto = self.data.model_copy(update={"format": "auto"})
        return self.predict(pair.source for pair in PairedText([file], auto, untargeted=True).stream())

    def write(self, predictions: Iterable[Prediction]) -> Iterator[str]:
        """Yield one line for each prediction."""
        return (f"{each.text}\n" for each in predictions)

    def _by_sentence(self, texts: Sequence[str]) -> Iterator[Prediction]:
        """Translate the sentences of texts, each alone, and join what belongs to one text."""
        split = [sentences(text) for text in texts]
        found = iter(self.translate([sentence for parts in split for sentence in parts]))
        for parts in split:
            own = [next(found) for _ in parts]
            values: dict[str, Any] = {
                "text": joined([each.values["text"] for each in own]),
                "score": round(sum(each.values["score"] for each in own), 6),
                "sentences": [
                    {"source": source, **each.values} for source, each in zip(parts, own, strict=True)
                ],
            }
            yield Prediction(joined([each.text for each in own]), values)

    def translate(self, texts: Sequence[str]) -> list[Prediction]:
        """Translate some texts; an empty one stays empty."""
        real = [at for at, text in enumerate(texts) if text.strip()]
        found = [Prediction("", {"text": "", "score": 0.0}) for _ in texts]
        self._foreign += sum(self.vocabulary.source_language.is_foreign(texts[at]) for at in real)
        sources = shortened(encode_sources([texts[at] for at in real], self.vocabulary.source), self.data)
        limit = getattr(self.model, "source_limit", None)
        if limit is not None and len(real):
            self._cut += int((sources.lengths_N > limit).sum())
            sources = sources.cut(limit)
        for rows_B, written in translate(
            self.model, sources, self.vocabulary, self.settings, self.options.draft
        ):
            aligned = self._aligned(sources, rows_B, written) if self.options.alignment else {}
            for row, texts_of_row in zip(rows_B.tolist(), written, strict=True):
                found[real[row]] = self._prediction(texts_of_row, aligned.get(row))
        return found

    def _aligned(self, sources: Sequences, rows_B: Ints, written: list[list[Generated]]) -> dict[int, Any]:
        """Return where in its source each token of the best texts looked, by row."""
        if not isinstance(self.model, Aligner):
            raise ConfigError("this run does not attend to its source, so that there is no alignment to show")
        found = {}
        for row, texts in zip(rows_B.tolist(), written, strict=True):
            ids_1S, lengths_1 = sources.take(np.array([row]), fill=0)
            weights_TS = alignment(self.model, Source(ids_1S, lengths_1), texts[0].ids)
            found[row] = {
                "source": [self.vocabulary.source.piece(int(index)) for index in ids_1S[0]],
                "target": [self.vocabulary.target.piece(index) for index in texts[0].ids],
                "weights": [[round(float(weight), 4) for weight in row_S] for row_S in weights_TS],
            }
        return found

    def _prediction(self, written: Sequence[Generated], aligned: Any = None) -> Prediction:
        best = written[0]
        values: dict[str, Any] = {"text": best.text, "score": _score(best)}
        if len(written) > 1:
            values["hypotheses"] = [self._scored(each) for each in written]
        if aligned is not None:
            values["alignment"] = aligned
        return Prediction(" ".join(best.text.split("\n")), values)

    def _scored(self, text: Generated) -> dict[str, Any]:
        """Return one of several texts with the log-probabilities of its tokens."""
        pieces = [self.vocabulary.target.piece(index) for index in text.ids]
        logprobs = [round(logprob, 4) for logprob in text.logprobs]
        return {"text": text.text, "score": _score(text), "pieces": pieces, "logprobs": logprobs}

    def _warn(self) -> None:
        """Say once what was wrong with some sources."""
        if self._swapped and not self._foreign:
            _log.warning(
                "the sources look like the targets of training; if the languages are swapped, use a run that "
                "was trained the other way round"
            )
        if self._foreign:
            seen = ", ".join(name.lower() for name in self.vocabulary.source_language.scripts)
            _log.warning(
                f"{_sources(self._foreign, 'is', 'are')} in another script than any seen in training "
                f"({seen}); what comes of it means little"
            )
        if self._cut:
            _log.warning(
                f"{_sources(self._cut, 'has', 'have')} more than {self.model.source_limit:,} tokens, which "
                "is all that this run can read, and what is behind was left out; --split sentences may help"
            )


def _sources(count: int, one: str, several: str) -> str:
    return f"1 source {one}" if count == 1 else f"{count:,} sources {several}"


def _score(written: Generated) -> float:
    return round(written.logprob if written.score is None else written.score, 6)
