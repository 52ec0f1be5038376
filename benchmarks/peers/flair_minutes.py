"""Flair's tagger and classifier with some CPU seconds; run by the Python of an environment that has Flair.

    python -m peers.flair_minutes tag|classify FOLDER SECONDS

As its trainer does: shuffled batches of 32, the rate is halved after four passes without a better result on
the held-out sentences, and the best weights are kept; but by AdamW from 0.003, since SGD from 0.1 learns too
little in minutes. Nothing is pretrained: word vectors of size 100 are learned, and a tagger also reads
characters. Files as in `peers.classic`; of a tagger the examples are [words, tags], with spans or without.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import time
from pathlib import Path

import torch
from flair.data import Dictionary, Sentence
from flair.embeddings import (
    CharacterEmbeddings,
    DocumentRNNEmbeddings,
    OneHotEmbeddings,
    StackedEmbeddings,
)
from flair.models import SequenceTagger, TextClassifier

BATCH, PATIENCE = 32, 3


class Learner:
    """A model of either task, with sentences to learn from."""

    def __init__(self, task: str, folder: Path) -> None:
        self.is_tagger = task == "tag"
        rows = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("train", "dev", "test")}
        self.gold = [targets for _, targets in rows["dev"]]
        self.has_spans = self.is_tagger and any("O" in targets for targets in self.gold)
        self.several = not self.is_tagger and any("," in targets for targets in self.gold)
        words, characters = Dictionary(add_unk=True), Dictionary(add_unk=True)
        targets = Dictionary(add_unk=False)
        self.sentences = {name: [self._sentence(each) for each in every] for name, every in rows.items()}
        for sentence, (_, target) in zip(self.sentences["train"], rows["train"], strict=True):
            for token in sentence:
                words.add_item(token.text)
                for character in token.text:
                    characters.add_item(character)
            names = {tag[2:] for tag in target if tag != "O"} if self.has_spans else target
            for name in sorted(set(names)) if self.is_tagger else target.split(","):
                targets.add_item(name)
        targets.span_labels = self.has_spans
        vectors = OneHotEmbeddings(words, embedding_length=100)
        if self.is_tagger:
            both = StackedEmbeddings([vectors, CharacterEmbeddings(characters)])
            self.model = SequenceTagger(both, targets, "y", hidden_size=256, reproject_embeddings=False)
        else:
            document = DocumentRNNEmbeddings([vectors], hidden_size=256, bidirectional=True, rnn_type="LSTM")
            self.model = TextClassifier(
                document, label_type="y", label_dictionary=targets, multi_label=self.several
            )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.003)

    def _sentence(self, row: list) -> Sentence:
        given, target = row
        sentence = Sentence(given) if self.is_tagger else Sentence(given or ".", use_tokenizer=False)
        if self.is_tagger and not self.has_spans:
            for token, tag in zip(sentence, target, strict=True):
                token.add_label("y", tag)
        elif self.is_tagger:
            starts = [at for at, tag in enumerate(target) if tag.startswith("B-")]
            for start in starts:
                stop = start + 1
                while stop < len(target) and target[stop].startswith("I-"):
                    stop += 1
                sentence[start:stop].add_label("y", target[start][2:])
        else:
            for label in target.split(","):
                sentence.add_label("y", label)
        return sentence

    def learn(self, batch: list[Sentence]) -> None:
        """Make one step."""
        loss, count = self.model.forward_loss(batch)
        self.optimizer.zero_grad()
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        for sentence in batch:
            sentence.clear_embeddings()

    def predict(self, name: str) -> list:
        """Return the tags of every sentence, or its label."""
        made = [Sentence([token.text for token in each]) for each in self.sentences[name]]
        self.model.predict(made, mini_batch_size=64, label_name="found")
        if not self.is_tagger:
            every = [[label.value for label in each.get_labels("found")] for each in made]
            return [",".join(sorted(each)) for each in every]
        if not self.has_spans:
            return [[token.get_label("found").value for token in each] for each in made]
        found = []
        for sentence in made:
            tags = ["O"] * len(sentence)
            for span in sentence.get_spans("found"):
                for token in span:
                    begins = token.idx == span.tokens[0].idx
                    tags[token.idx - 1] = f"{'B' if begins else 'I'}-{span.get_label('found').value}"
            found.append(tags)
        return found

    def quality(self) -> float:
        """Return the share that is right on the held-out sentences: of spans, among words that have one."""
        found = self.predict("dev")
        if not self.is_tagger:
            return sum(a == b for a, b in zip(found, self.gold, strict=True)) / len(found)
        pairs = [(a, b) for x, y in zip(found, self.gold, strict=True) for a, b in zip(x, y, strict=True)]
        marked = [a == b for a, b in pairs if (a, b) != ("O", "O")]
        return sum(marked) / max(1, len(marked))


def main(task: str, folder: Path, seconds: float) -> None:
    """Learn for so many CPU seconds, then predict the test sentences with the best weights."""
    began = time.process_time()
    torch.manual_seed(1)
    learner, draw = Learner(task, folder), random.Random(1)
    best, kept, bad = -1.0, copy.deepcopy(learner.model.state_dict()), 0
    while time.process_time() - began < seconds:
        order = learner.sentences["train"][:]
        draw.shuffle(order)
        learner.model.train()
        for at in range(0, len(order), BATCH):
            if time.process_time() - began > seconds:
                break
            learner.learn(order[at : at + BATCH])
        learner.model.eval()
        found = learner.quality()
        if found > best:
            best, kept, bad = found, copy.deepcopy(learner.model.state_dict()), 0
        elif (bad := bad + 1) > PATIENCE:
            bad = 0
            for group in learner.optimizer.param_groups:
                group["lr"] *= 0.5
    spent = time.process_time() - began
    learner.model.load_state_dict(kept)
    (folder / "found.json").write_text(json.dumps(learner.predict("test")))
    print(json.dumps({"cpu": spent}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
