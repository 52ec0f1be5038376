"""One cell of the quality table: a text, a model, so many minutes; then what the test text costs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers.task import Task
from support import texts
from support.worker import SAME_ALLOCATOR

HERE = Path(__file__).resolve().parents[1]
DATA = ("wikitext2-words", "wikitext2-raw", "tinyshakespeare", "sotu")
KENLM_ORDER = 6  # the longest n-grams of KenLM as it is built by default
SHARE = {"tinyshakespeare": 0.9, "sotu": 0.95}  # of the text that is trained on


@dataclass
class Texts:
    """A corpus cut for everybody in the same way."""

    name: str
    train: Path  # a file, or a folder of documents
    test: Path
    valid: Path | None = None  # where the corpus has its own
    is_words: bool = False  # measured per word; else per byte

    def joined(self, split: str, work: Path) -> Path:
        """The text as one file, for those who know no documents."""
        path: Path = getattr(self, split)
        if path.is_file():
            return path
        target = work / f"{split}-joined.txt"
        target.write_bytes(b"".join(file.read_bytes() for file in sorted(path.iterdir())))
        return target

    def bytes(self) -> int:
        """Of the test text."""
        files = sorted(self.test.iterdir()) if self.test.is_dir() else [self.test]
        return sum(file.stat().st_size for file in files)


def cut(name: str, work: Path) -> Texts:
    """Training and test text of a corpus, below the folder ``work``."""
    if name.startswith("wikitext2"):
        folder, ending = texts.corpus_folder("wikitext2"), name.partition("-")[2]
        kind = {"words": "txt", "raw": "raw"}[ending]
        train, valid, test = (folder / f"{split}.{kind}" for split in ("train", "valid", "test"))
        for path in (train, valid, test):  # a name that everybody reads as plain text
            shutil.copyfile(path, work / f"{path.stem}.txt")
        return Texts(
            name, *(work / f"{s}.txt" for s in ("train", "test", "valid")), is_words=ending == "words"
        )
    if name == "tinyshakespeare":
        text = plain_text(name)
        at = int(SHARE[name] * len(text))
        (work / "train.txt").write_text(text[:at], encoding="utf-8", newline="")
        (work / "test.txt").write_text(text[at:], encoding="utf-8", newline="")
        return Texts(name, work / "train.txt", work / "test.txt")
    files = texts.corpus_files(name)
    at = int(SHARE[name] * len(files))
    for split, part in (("train", files[:at]), ("test", files[at:])):
        (work / split).mkdir()
        for file in part:
            shutil.copyfile(file, work / split / file.name)
    return Texts(name, work / "train", work / "test")


def plain_text(name: str) -> str:
    """A corpus of one file."""
    with open(texts.corpus_files(name)[0], encoding="utf-8", newline="") as file:
        return file.read()


def numbered(found: Texts, work: Path) -> texts.Numbered:
    """As the peers number it."""
    train, test = found.joined("train", work), found.joined("test", work)
    if found.is_words:
        assert found.valid is not None
        return texts.words(train, found.valid, test)
    return texts.characters(train, test)


def ours(model: str, minutes: float, found: Texts, work: Path, sets: list[str]) -> dict:
    """`nextword train --minutes`, then `nextword eval`, both as a user would."""
    program = [sys.executable, "-m", "nextword"]
    run, options = str(work / "run"), [word for each in sets for word in ("--set", each)]
    if found.is_words:
        options += ["--tokenizer", "words", "--set", "text.unknown=literal"]
    if found.valid is not None:
        options += ["--valid", str(found.valid)]
    began = time.perf_counter()
    command = [*program, "train", str(found.train), "--model", model, "--minutes", str(minutes), *options]
    done = subprocess.run(
        [*command, "--seed", "1", "--out", run], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        return {"failed": done.stderr.strip().split("\n")[-1]}
    out = subprocess.run([*program, "eval", run, str(found.test), "--json"], capture_output=True, check=True)
    report = json.loads(out.stdout)
    notes = [line for line in done.stderr.split("\n") if "auto chose" in line]
    return {
        "seconds": seconds, "perplexity": report["perplexity"], "bits_per_byte": report["bits_per_byte"],
        "tokens": report["tokens"], "note": " ".join(notes),
    }  # fmt: skip


def peer(model: str, minutes: float, found: Texts, work: Path, allocator: bool = False) -> dict:
    """A loop of the peers in its own process, stopped when the minutes are over."""
    ids = numbered(found, work)
    for split in ("train", "test"):
        np.save(work / f"{split}.npy", getattr(ids, split))
    shape = (
        Task("", ids.vocab, "lstm", 2, 200, batch=20, length=35, dropout=0.2, rate=20.0)
        if model == "example"
        else Task("", ids.vocab, "gpt", 4, 128, 4, batch=12, length=64, dropout=0.0, rate=1e-3)
    )
    shape.train = str(work / "train.npy")
    command = [sys.executable, "-m", "support.minutes", model, shape.to_json(), str(minutes)]
    done = subprocess.run(
        [*command, str(work / "test.npy")],
        cwd=HERE, env=os.environ | (SAME_ALLOCATOR if allocator else {}),
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    result = json.loads(done.stdout.split("\n")[-2])
    return numbers(result.pop("nats"), result.pop("tokens"), found) | result


def numbers(nats: float, tokens: int, found: Texts) -> dict:
    """The units of the table. Blocks and columns leave a few tokens out: bytes shrink with them."""
    whole = tokens if found.is_words else len(found_text(found))
    size = found.bytes() * tokens / whole
    return {
        "perplexity": float(np.exp(nats / tokens)), "bits_per_byte": nats / np.log(2) / size, "tokens": tokens
    }  # fmt: skip


def found_text(found: Texts) -> str:
    """The test text as characters."""
    files = sorted(found.test.iterdir()) if found.test.is_dir() else [found.test]
    return "".join(file.read_bytes().decode("utf-8") for file in files)


def kenlm(order: int, unit: str, found: Texts, work: Path) -> dict:
    """lmplz on words, characters or pieces (byte-level BPE of 8,000); the minutes are more than it needs.

    Where it was built for shorter n-grams, the longest it knows are taken. Orders that the kenlm module was
    not built for are scored by ours, which agrees with it (tests/agree/test_kenlm_module.py).
    """
    lmplz = os.environ.get("NEXTWORD_LMPLZ") or shutil.which("lmplz")
    if lmplz is None:
        return {"failed": "lmplz is not on PATH (NEXTWORD_LMPLZ)"}
    from kenlm import Config, Model

    import nextword.kenlm

    began = time.perf_counter()
    lines = {split: units(found.joined(split, work), unit, work) for split in ("train", "test")}
    arpa, text = work / "kenlm.arpa", "\n".join(lines["train"]) + "\n"
    for longest in (order, KENLM_ORDER):
        with open(arpa, "wb") as target:
            done = subprocess.run([lmplz, "-o", str(longest), "-T", str(work), "--discount_fallback"],
                                  input=text.encode(), stdout=target, stderr=subprocess.PIPE)  # fmt: skip
        if done.returncode == 0:
            break
    else:
        return {"failed": done.stderr.decode(errors="replace").strip().split("\n")[-1]}
    seconds, config = time.perf_counter() - began, Config()
    config.show_progress = False
    model = Model(str(arpa), config) if longest <= KENLM_ORDER else nextword.kenlm.Model(str(arpa))
    tokens = sum(len(line.split()) + 1 for line in lines["test"])
    nats = -sum(model.score(line) for line in lines["test"]) * np.log(10)
    return {
        "seconds": seconds,
        "perplexity": float(np.exp(nats / tokens)),
        "bits_per_byte": nats / np.log(2) / found.bytes(),
        "tokens": tokens,
        "note": f"order {longest}",
    }


def units(path: Path, unit: str, work: Path) -> list[str]:
    """Lines of tokens with spaces between them."""
    lines = path.read_text(encoding="utf-8").split("\n")
    lines = lines[:-1] if not lines[-1] else lines
    if unit == "words":  # a literal <unk> is an ordinary word of this benchmark
        return [line.replace("<unk>", "<unknown>") for line in lines]
    if unit == "characters":
        return [" ".join("_" if c.isspace() else c for c in line.replace("_", "-")) for line in lines]
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    saved = work / "pieces.json"
    if not saved.exists():
        pieces = Tokenizer(models.BPE())
        pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        pieces.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=8000, initial_alphabet=alphabet, show_progress=False)
        pieces.train_from_iterator(lines, trainer)
        pieces.save(str(saved))
    encoded = Tokenizer.from_file(str(saved)).encode_batch(lines)
    return [" ".join(each.tokens) for each in encoded]
