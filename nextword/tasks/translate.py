"""Sequence to sequence: an example is a pair of texts, and the target is written token by token.

Translation, summarization, dialogue, question answering, letters to sounds [PENN "Sequence to sequence",
MAUSAM "Uses"]: whatever turns one text into another.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from nextword.core import config
from nextword.core.errors import ConfigError, DamagedError, DataError, FormatError
from nextword.core.events import Done, Event, Note, Stage
from nextword.core.family import Budget, Family
from nextword.core.settings import Settings
from nextword.core.task import (
    DEFAULT_OPTIONS,
    Choice,
    Division,
    Prediction,
    PredictOptions,
    Preparation,
    Scores,
    Task,
)
from nextword.data.batches.pairs import PairBatches
from nextword.data.encode import DataFacts, hash_ids
from nextword.data.languages import Language, swapped
from nextword.data.paired import (
    PairExamples,
    PairTextSettings,
    PairVocabulary,
    measured_pairs,
    prepared_pairs,
    within_length,
)
from nextword.data.pairs import Pair, PairDataSettings, PairedText
from nextword.data.part import Part
from nextword.decode.settings import DecodeSettings
from nextword.runs.settings import RunSettings, with_open
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun
from nextword.tasks import sizes
from nextword.text.subwords import default_size
from nextword.text.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from nextword.runs.saved import Trained

# Settings of a decoder that a language model does not decide.
_OWN = {"context", "dropout", "carry", "overlap", "order", "encoder", "ahead", "ahead_weight"}
TOKENIZER, SOURCE_TOKENIZER, LANGUAGES = "tokenizer.json", "source-tokenizer.json", "languages.json"
_MOST_HELD_OUT = 2000  # pairs
_LEAST_HELD_OUT = 2
_SAMPLES = 5  # pairs that a comparison shows
_PAIRS_PER_SECOND = 2000  # of the whole command: more pairs could not be learned from
_LOOKED_AT = 500  # pairs that are looked at for swapped languages


@dataclass(frozen=True)
class PairFiles:
    """The files of an encoder-decoder."""

    pairs: PairedText | Part[Pair]
    valid: PairedText | None = None

    @property
    def size(self) -> int | None:
        """Return the bytes of the training pairs."""
        return self.pairs.size


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs as ids, with what turns text into them."""

    vocabulary: PairVocabulary
    facts: DataFacts
    learned: PairExamples
    measured: PairExamples | None

    def digest(self) -> str:
        """Return the SHA-256 of what is learned from."""
        ids = self.learned.ids
        return hash_ids([ids.source.starts_N, ids.source.ids, ids.target.starts_N, ids.target.ids])


class Translation(Task):
    """The task ``translate``."""

    name, noun, decides, higher = "translate", "translation model", "bleu", True
    families = "translator"
    formats = ("text", "jsonl")
    writes = True
    starts_from = ("lm",)  # a language model's weights may begin the decoder

    @property
    def shared_sizes(self) -> Collection[str]:  # type: ignore[override]
        """Return the settings that a language model decides: its parts and sizes, but for its window."""
        from nextword.models.seq2seq_transformer import TransformerTranslatorSettings

        return {f"model.{name}" for name in {"embedding", *TransformerTranslatorSettings.model_fields} - _OWN}

    def groups(self, family: Family) -> dict[str, type[Settings]]:
        """Return the settings tree of a family."""
        return {
            "model": family.Settings, "text": PairTextSettings, "data": PairDataSettings,
            "train": family.Training,
        }  # fmt: skip

    def idle(self, family: Family) -> Collection[str]:
        """Return settings that only language models use, and a weight that only attention mlp has."""
        never = {"train.length", "train.batches", "train.bptt", "model.carry", "model.overlap"}
        return never if "coverage" in family.Settings.model_fields else never | {"train.coverage_weight"}

    def choose(self, keys: Iterable[str], minutes: float | None) -> Choice:
        """Choose the Transformer."""
        recurrent = {"model.context", "model.attend", "model.attention", "model.readout"}
        if recurrent & set(keys):
            return Choice("lstm", "the settings you gave belong to recurrent decoders")
        return Choice("transformer", "it translates best for its time, from a few minutes on")

    def examples(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> PairFiles:
        """Open the files."""
        data = cast(PairDataSettings, settings.data)
        return PairFiles(PairedText(files, data), PairedText(valid, data) if valid else None)

    def prepare(
        self, examples: PairFiles, settings: RunSettings, how: Preparation
    ) -> Generator[Event, None, tuple[RunSettings, PreparedPairs]]:
        """Read the pairs, learn the tokenizers, and turn both sides into ids."""
        yield Stage("read the pairs")
        data = cast(PairDataSettings, settings.data)
        learned = examples.pairs.read()
        if how.seconds is not None and not how.whole and len(learned) > _PAIRS_PER_SECOND * how.seconds:
            most = int(_PAIRS_PER_SECOND * how.seconds)
            yield Note(f"there is no time for all of {len(learned):,} pairs; the first {most:,} are used")
            learned = learned[:most]
        if examples.valid is not None:
            measured = examples.valid.read()
        else:
            learned, measured = held_out_pairs(learned, data.hold_out)
        for text in (examples.pairs, examples.valid):
            yield from map(Note, text.remarks if isinstance(text, PairedText) else ())
        known = how.vocabulary or _known(how.known, settings)
        settings = _with_size(settings, learned, how)
        vocabulary, pairs, held = yield from prepared_pairs(
            learned, measured, cast(PairTextSettings, settings.text), known, data
        )
        pairs = yield from within_length(pairs, data)
        if not len(pairs):
            raise DataError(
                f"all pairs are longer than {data.longest} tokens; use --set data.too_long=cut, or a larger "
                "data.longest",
                examples.pairs.names[0],
            )
        if examples.valid is not None:
            yield from _warn_if_swapped(vocabulary, measured, "--valid")
        words = sum(len(pair.source.split()) + len(pair.target.split()) for pair in learned)
        facts = DataFacts(
            examples.pairs.names, examples.pairs.sha256, examples.pairs.size or 0, words, pairs.tokens,
            len(pairs),
        )  # fmt: skip
        settings = settings.with_tokenizer(vocabulary.target.name)
        return settings, PreparedPairs(vocabulary, facts, pairs, held)

    def sized(self, settings: RunSettings, prepared: PreparedPairs, tokens: float) -> Mapping[str, Any]:
        """Return batches small enough for many steps, and large enough for some pairs where they are long."""
        learned = prepared.learned
        read = tokens / (learned.tokens / max(1, len(learned)))
        length = learned.positions / cast(Any, settings.find_family()).row_length
        return {"train.batch": sizes.TRANSLATED.batch(read, len(learned), length)}

    def is_enough(self, settings: RunSettings, tokens: float, epoch: int, weights: int) -> bool:
        """Return whether time and pairs suffice for this many weights."""
        return sizes.TRANSLATED.is_enough(tokens, epoch, weights)

    def most_epochs(self, settings: RunSettings, steps: float) -> float:
        """Return the epochs after which more do not help."""
        return sizes.TRANSLATED.epochs(steps)

    def regularized(self, settings: RunSettings, epochs: float) -> Mapping[str, Any]:
        """Return the dropout for this many passes over the pairs."""
        return {"model.dropout": sizes.TRANSLATED.dropout(epochs)}

    def figures(self, prepared: PreparedPairs) -> Mapping[str, int]:
        """Return the number of pairs and the size of the vocabulary."""
        return {"pairs": len(prepared.learned), "vocabulary": prepared.vocabulary.vocab_size}

    def build(self, settings: RunSettings, prepared: PreparedPairs) -> Any:
        """Make a network with its first weights."""
        from nextword.tasks.translators import first_weights

        return first_weights(settings, prepared)

    def batches(
        self, settings: RunSettings, prepared: PreparedPairs, network: Any
    ) -> Generator[Event, None, PairBatches]:
        """Return batches of pairs whose sides are of similar lengths."""
        train: Any = settings.train
        positions = train.batch * cast(Any, settings.find_family()).row_length
        made = PairBatches(prepared.learned.ids, positions, train.seed)
        yield Note(f"batches of similar lengths: {made.real_share:.0%} of the positions are tokens")
        return made

    def objective(self, settings: RunSettings, batches: Any) -> Any:
        """Return -log p(target | source)."""
        from nextword.tasks.translators import TranslationLoss

        train: Any = settings.train
        if getattr(settings.model, "coverage", False) and train.reads.kind != "teacher":
            raise ConfigError(
                f"'train.forcing' is '{train.forcing}', and model.coverage learns from true targets only; "
                "use teacher, or leave model.coverage out"
            )
        return TranslationLoss(cast(Any, settings.train))

    def held_out(self, settings: RunSettings, prepared: PreparedPairs) -> Any:
        """Return the held-out pairs."""
        from nextword.tasks.translators import HeldOutPairs

        if prepared.measured is None:
            return None
        return HeldOutPairs(prepared.measured, prepared.vocabulary, cast(Any, settings.train).metric)

    def model(self, network: Any) -> Any:
        """Return the trained network as a language model that reads a source."""
        from nextword.models.seq2seq import Translator

        return Translator(network, network.vocabulary)

    def warm_start(
        self, network: Any, settings: RunSettings, prepared: PreparedPairs, start: Trained
    ) -> Iterator[Event]:
        """Copy the weights of another translation model, or of a language model into the decoder."""
        from nextword.tasks.translators import start_from_run

        return start_from_run(network, settings, prepared, start)

    def fit(self, settings: RunSettings, prepared: PreparedPairs, budget: Budget) -> Iterator[Event]:
        """Refuse: every family learns by steps."""
        raise ConfigError(f"the translation model '{settings.family}' cannot be fitted without steps")

    def save(self, vocabulary: PairVocabulary, folder: NewRun) -> None:
        """Write the tokenizers, and what the languages look like."""
        vocabulary.target.save(str(folder.path / TOKENIZER))
        if not vocabulary.joint:
            vocabulary.source.save(str(folder.path / SOURCE_TOKENIZER))
        sides = {"source": vocabulary.source_language, "target": vocabulary.target_language}
        folder.write_json(LANGUAGES, {side: language.to_json() for side, language in sides.items()})

    def open(self, folder: RunFolder) -> PairVocabulary:
        """Read the tokenizers back."""
        try:
            target = load_tokenizer(folder.file(TOKENIZER))
            source = load_tokenizer(folder.file(SOURCE_TOKENIZER)) if SOURCE_TOKENIZER in folder else target
            sides = folder.read_json(LANGUAGES)
            languages = (Language.from_json(sides["source"]), Language.from_json(sides["target"]))
        except (FormatError, KeyError, TypeError) as error:
            raise DamagedError(f"{error}; train the run again") from error
        return PairVocabulary(source, target, *languages)

    def load(self, folder: RunFolder, settings: RunSettings) -> tuple[Any, PairVocabulary]:
        """Return the model and its vocabulary."""
        vocabulary = self.open(folder)
        return settings.find_family().load(folder, settings.model, vocabulary), vocabulary

    def phrase(self, vocabulary: PairVocabulary) -> str:
        """Return the sizes and names of the vocabularies."""
        target = f"{vocabulary.target.vocab_size:,} {vocabulary.target.name}"
        if vocabulary.joint:
            return f"{target} for both sides"
        return f"{vocabulary.source.vocab_size:,} {vocabulary.source.name} to {target}"

    def about(self, vocabulary: PairVocabulary) -> Mapping[str, Any]:
        """Return name and size of the tokenizers."""
        return {
            "tokenizer": vocabulary.target.name, "vocabulary": vocabulary.target.vocab_size,
            "source_vocabulary": vocabulary.source.vocab_size, "joint": vocabulary.joint,
        }  # fmt: skip

    def usage(self, settings: RunSettings) -> Sequence[str]:
        """Return the commands that a model card shows."""
        return ("nextword predict . FILE", "nextword eval . SOURCE TARGET")

    def evaluate(self, run: Trained, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
        """Translate the sources of files and compare with their targets."""
        from nextword.tasks.translators import measure

        data, decode = _changed(run, sets)
        began = time.perf_counter()
        yield Stage("read the pairs")
        text = PairedText(files, data)
        pairs = text.read()
        yield from map(Note, text.remarks)
        yield from _warn_if_swapped(run.vocabulary, pairs, "these files")
        found = yield from measure(
            run.model, measured_pairs(pairs, run.vocabulary, data), run.vocabulary, decode, data
        )
        yield Done(replace(found, seconds=time.perf_counter() - began))

    def predictor(self, run: Trained, options: PredictOptions = DEFAULT_OPTIONS) -> Any:
        """Return what translates raw text."""
        from nextword.tasks.translation import TranslationPredictor

        return TranslationPredictor(run.model, run.vocabulary, options, cast(Any, run.settings.data))

    def shown(self, prediction: Prediction) -> str:
        """Return the translation."""
        return prediction.text

    def compared(self, minutes: float | None) -> Sequence[str]:
        """Return one family of each kind."""
        return ("gru", "lstm", "transformer")

    def divide(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> Division:
        """Measure the pairs of ``valid``, or a part of the files."""
        data = cast(PairDataSettings, settings.data)
        text = PairedText(files, data)
        learned = text.read()
        held = PairedText(valid, data).read() if valid else []
        if not valid:
            learned, held = held_out_pairs(learned, sizes.COMPARED)
        if not held:
            raise DataError(
                f"there are only {len(learned):,} pairs, too few to hold some out; use --valid",
                learned[0].path,
            )
        parts = [sha256(repr([each[:2] for each in part]).encode()).hexdigest() for part in (learned, held)]
        size = sum(len(each.source) + len(each.target) + 2 for each in learned)
        where = ", ".join(valid) if valid else "the same files"
        return Division(
            PairFiles(Part(text.names, parts[0], size, learned)), held,
            sha256("".join(parts).encode()).hexdigest(),
            f"trained on {len(learned):,} pairs of {', '.join(files)}, "
            f"measured on {len(held):,} of {where}",
            [(each.source, each.target) for each in islice(held, _SAMPLES)],
        )  # fmt: skip

    def scores(self, run: Trained, held: list[Pair]) -> Scores:
        """Translate the held-out sources greedily; each counts with its chrF."""
        from nextword.core.events import returned
        from nextword.tasks.translators import measure

        decode = DecodeSettings(decode="greedy", max_tokens=1000, max_ratio=2.0)
        examples = measured_pairs(held, run.vocabulary, cast(PairDataSettings, run.settings.data))
        found = returned(measure(run.model, examples, run.vocabulary, decode))
        values = {"bleu": found.bleu, "chrf": found.chrf, "perplexity": found.perplexity}
        return Scores(values, found.each("chrf").tolist(), "chrF of a text")


def held_out_pairs(pairs: list[Pair], share: float) -> tuple[list[Pair], list[Pair]]:
    """Hold out every n-th pair, but not more than are needed."""
    if not share or len(pairs) * share < _LEAST_HELD_OUT:
        return pairs, []
    every = max(2, round(1 / share), len(pairs) // _MOST_HELD_OUT)
    return [each for at, each in enumerate(pairs) if at % every != every - 1], pairs[every - 1 :: every]


def _known(known: Any, settings: RunSettings) -> PairVocabulary | None:
    """Return the vocabulary of the run that training starts from, unless another tokenizer is asked for."""
    from nextword.core import catalog

    is_other = settings.text.tokenizer in catalog.names("tokenizer") and "text.tokenizer" in settings.named
    if known is None or is_other:
        return None
    return known if isinstance(known, PairVocabulary) else PairVocabulary(known, known)


def _with_size(settings: RunSettings, pairs: Sequence[Pair], how: Preparation) -> RunSettings:
    """Choose the number of subwords by the size of the text, where nobody has named it."""
    text = cast(PairTextSettings, settings.text)
    if text.tokenizer not in sizes.LEARNED or text.size:
        return settings
    size = sum(len(pair.source) + len(pair.target) for pair in islice(pairs, 1_000_000))
    chosen: dict[str, Any] = {"text.size": sizes.TRANSLATED.subwords(default_size(size), how.seconds)}
    if how.seconds is not None:
        chosen["text.fit_bytes"] = sizes.learned_bytes(how.seconds)
    return with_open(settings, chosen)


def _warn_if_swapped(vocabulary: PairVocabulary, pairs: Sequence[Pair], what: str) -> Iterator[Note]:
    looked = pairs[:: max(1, len(pairs) // _LOOKED_AT)]
    sources, targets = [pair.source for pair in looked], [pair.target for pair in looked]
    if swapped(vocabulary.source_language, vocabulary.target_language, sources, targets):
        yield Note(
            f"the sources of {what} look like the targets of training, and the targets like its sources; "
            "if the languages are swapped, give them the other way round"
        )


def _changed(run: Trained, sets: Mapping[str, Any]) -> tuple[PairDataSettings, DecodeSettings]:
    """Return how an evaluation reads its files and writes: as training and `predict` do, or as asked."""
    from nextword.tasks.translation import DECODING

    data = cast(PairDataSettings, run.settings.data)
    given = {f"data.{name}": value for name, value in data}
    given |= {f"decode.{name}": value for name, value in DECODING.items()}
    built = config.build({"data": PairDataSettings, "decode": DecodeSettings}, given, sets)
    return cast(PairDataSettings, built["data"]), cast(DecodeSettings, built["decode"])


TASK = Translation()
