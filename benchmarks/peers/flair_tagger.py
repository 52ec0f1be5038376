"""Flair's sequence tagger in a process of its own; run by the Python of an environment that has Flair.

    python -m peers.flair_tagger FILE

``FILE`` holds sentences as JSON: a list of [words, tags]. The tagger is a BiLSTM 1x256 with a CRF over word
vectors of size 100, which it learns, and characters read by an LSTM (25 + 25); nothing is reprojected.
"""

from __future__ import annotations

import json
import random
import sys

import torch


class Peer:
    """Training steps on batches of 32 sentences as its trainer draws them, and prediction of sentences."""

    def __init__(self, path: str) -> None:
        from flair.data import Dictionary, Sentence
        from flair.embeddings import CharacterEmbeddings, OneHotEmbeddings, StackedEmbeddings
        from flair.models import SequenceTagger

        self.sentence = Sentence
        with open(path, encoding="utf-8") as file:
            self.examples = json.load(file)
        words = Dictionary(add_unk=True)
        tags = Dictionary(add_unk=False)
        characters = Dictionary(add_unk=True)  # its own list of characters would be downloaded
        for forms, labels in self.examples:
            for form, label in zip(forms, labels, strict=True):
                words.add_item(form)
                for character in form:
                    characters.add_item(character)
                tags.add_item(label)
        embeddings = StackedEmbeddings(
            [OneHotEmbeddings(words, embedding_length=100), CharacterEmbeddings(characters)]
        )
        self.tagger = SequenceTagger(
            embeddings, tags, "pos", hidden_size=256, use_crf=True, reproject_embeddings=False
        )
        self.optimizer = torch.optim.SGD(self.tagger.parameters(), lr=0.1)
        self.sentences = [self._with_tags(forms, labels) for forms, labels in self.examples]
        self.random = random.Random(0)

    def _with_tags(self, forms, labels):
        sentence = self.sentence(forms)
        for token, label in zip(sentence, labels, strict=True):
            token.set_label("pos", label)
        return sentence

    def train(self, steps: int) -> int:
        """Return the words that were learned from."""
        self.tagger.train()
        words = 0
        for _ in range(steps):
            batch = self.random.sample(self.sentences, 32)
            loss, count = self.tagger.forward_loss(batch)
            self.optimizer.zero_grad()
            (loss / count).backward()
            torch.nn.utils.clip_grad_norm_(self.tagger.parameters(), 5.0)
            self.optimizer.step()
            for sentence in batch:
                sentence.clear_embeddings()
            words += sum(map(len, batch))
        return words

    def predict(self, count: int) -> int:
        """Return the words that were tagged, with confidences."""
        made = [self.sentence(forms) for forms, _ in self.examples[:count]]
        self.tagger.predict(made, mini_batch_size=64)
        found = [(token.get_label("pos").value, token.get_label("pos").score) for s in made for token in s]
        return len(found)


if __name__ == "__main__":
    from peers.turns import serve

    serve(Peer(sys.argv[1]))
