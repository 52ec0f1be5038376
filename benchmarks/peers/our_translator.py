"""Our encoder-decoder of the same shapes in a process of its own: ``python -m peers.our_translator TASK``."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import Any


class Peer:
    """The updates of our trainer, and our decoding as `predict` uses it."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self.task = json.load(file)
        self.written: list[list[int]] = []
        self.models: dict[str, Any] = {}
        if self.task["pairs"]:
            self._prepare()

    def _prepare(self) -> None:
        """Make the network, the batches and the optimizer of a training."""
        from nextword.core.events import returned
        from nextword.core.task import Preparation
        from nextword.models import precision
        from nextword.runs.settings import plan
        from nextword.tasks.translate import TASK
        from nextword.training.optimizers import make_optimizer

        settings = plan(self.task["family"], sets=self.task["sets"], task="translate")
        examples = TASK.examples([self.task["pairs"]], [], settings)
        settings, prepared = returned(TASK.prepare(examples, settings, Preparation()))
        self.network = TASK.build(settings, prepared)
        if settings.train.precision == "auto":
            sets = {**self.task["sets"], "train.precision": precision.faster_type(self.network)}
            settings = plan(self.task["family"], sets=sets, task="translate")
        self.batches = returned(TASK.batches(settings, prepared, self.network))
        self.objective = TASK.objective(settings, self.batches)
        self.optimizer = make_optimizer(self.network, settings.train)
        self.rate, self.epoch, self.at = settings.train.rate, 0, 0

    def weights(self, number: int) -> int:
        """Return how many weights are learned."""
        return sum(weight.numel() for weight in self.network.parameters())

    def train(self, steps: int) -> int:
        """Return the real target tokens that were learned from, END included."""
        import torch

        self.network.train()
        tokens = 0
        for batch in islice(self._forever(), steps):
            loss, _ = self.objective.at(self.network, 0.0)(self.network, batch, None)
            self.optimizer.clear()
            (loss.total / batch.tokens).backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step(self.rate)
            tokens += batch.tokens
        return tokens

    def _forever(self) -> Any:
        while True:
            for batch in self.batches.batches(self.epoch, self.at):
                self.at += 1
                yield batch
            self.epoch, self.at = self.epoch + 1, 0

    def greedy(self, count: int) -> int:
        """Return the tokens that were written for this many sentences."""
        return self._search(count, "fp32", decode="greedy")

    def beam(self, count: int) -> int:
        """Return the tokens that were written with a beam."""
        return self._search(count, "fp32", decode="beam", beam_size=self.task["beam"])

    def greedy8(self, count: int) -> int:
        """Return the same in int8."""
        return self._search(count, "int8", decode="greedy")

    def beam8(self, count: int) -> int:
        """Return the same in int8."""
        return self._search(count, "int8", decode="beam", beam_size=self.task["beam"])

    def _search(self, count: int, precision: str, **asked: Any) -> int:
        from nextword.decode.settings import DecodeSettings
        from nextword.tasks.translation import DECODING, translate

        run, sources = self._opened(precision)
        how = {**DECODING, "length_penalty": self.task["alpha"], **asked}
        if length := self.task["length"]:
            how |= {"min_tokens": length, "max_tokens": length, "max_ratio": 0.0}
        settings = DecodeSettings(**how)
        import numpy as np

        self.written = [[] for _ in range(count)]
        for rows_B, found in translate(run.model, sources.keep(np.arange(count)), run.vocabulary, settings):
            for row, texts in zip(rows_B.tolist(), found, strict=True):
                self.written[row] = list(texts[0].ids)
        return sum(map(len, self.written))

    def _opened(self, precision: str) -> Any:
        if precision not in self.models:
            from nextword.data.paired import encode_sources
            from nextword.models.int8 import use_int8
            from nextword.runs.saved import load

            run = load(self.task["run"])
            if precision == "int8":
                assert not use_int8(run.model.network)
            with open(self.task["texts"], encoding="utf-8") as file:
                texts = file.read().rstrip("\n").split("\n")
            self.models[precision] = run, encode_sources(texts, run.vocabulary.source)
        return self.models[precision]

    def save(self, number: int) -> int:
        """Write the last texts down, without END."""
        with open(f"{self.task['out']}/ours.json", "w", encoding="utf-8") as file:
            json.dump([ids[:-1] if ids[-1:] == [2] else ids for ids in self.written], file)
        return len(self.written)


if __name__ == "__main__":
    from nextword.system.before_torch import make_ready

    make_ready(lambda *_: None)
    from peers.turns import serve

    serve(Peer(sys.argv[1]))
