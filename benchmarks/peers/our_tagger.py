"""Our tagger of the same shapes in a process of its own: ``python -m peers.our_tagger FILE``."""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import islice
from pathlib import Path


class Peer:
    """The updates of our trainer, and our predictor."""

    def __init__(self, path: str) -> None:
        from nextword.core.events import returned
        from nextword.core.task import Preparation
        from nextword.runs.settings import plan
        from nextword.tasks.tag import TASK
        from nextword.training.optimizers import make_optimizer

        with open(path, encoding="utf-8") as file:
            self.examples = json.load(file)
        sets = {
            "model.layers": 1, "model.hidden": 256, "model.embedding": 100, "model.spelling": "lstm",
            "model.spelling_width": 50, "train.precision": "fp32", "data.hold_out": 0.0,
        }  # fmt: skip
        settings = plan("lstm", sets=sets, task="tag")
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "train.conll"
            blocks = ("".join(f"{w}\t{t}\n" for w, t in zip(*each, strict=True)) for each in self.examples)
            table.write_text("\n".join(blocks))
            settings, prepared = returned(
                TASK.prepare(TASK.examples([str(table)], [], settings), settings, Preparation())
            )
        self.network = TASK.build(settings, prepared)
        self.batches = returned(TASK.batches(settings, prepared, self.network))
        self.objective = TASK.objective(settings, self.batches)
        self.optimizer = make_optimizer(self.network, settings.train)
        self.rate = settings.train.rate
        self.vocabulary, self.epoch, self.at = prepared.vocabulary, 0, 0

    def train(self, steps: int) -> int:
        """Return the words that were learned from."""
        import torch

        self.network.train()
        words = 0
        for batch in islice(self._forever(), steps):
            loss, _ = self.objective.at(self.network, 0.0)(self.network, batch, None)
            self.optimizer.clear()
            (loss.total / batch.tokens).backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step(self.rate)
            words += batch.tokens
        return words

    def _forever(self):
        while True:
            for batch in self.batches.batches(self.epoch, self.at):
                self.at += 1
                yield batch
            self.epoch, self.at = self.epoch + 1, 0

    def predict(self, count: int) -> int:
        """Return the words that were tagged, with confidences."""
        from nextword.models.tagger import Tagger
        from nextword.tasks.taggers import TagPredictor

        predictor = TagPredictor(Tagger(self.network, self.vocabulary), self.vocabulary)
        lines = (" ".join(words) for words, _ in self.examples[:count])
        return sum(len(found.values["tokens"]) for found in predictor.predict(lines))


if __name__ == "__main__":
    from nextword.system.before_torch import make_ready

    make_ready(lambda *_: None)
    from peers.turns import serve

    serve(Peer(sys.argv[1]))
