"""CTranslate2 with our exported weights in a process of its own: ``python -m peers.ct2 TASK.json``."""

from __future__ import annotations

import json
import os
import sys


class Peer:
    """Greedy and beam search of batches of tokens, in float32 or int8."""

    def __init__(self, path: str) -> None:
        import ctranslate2

        with open(path, encoding="utf-8") as file:
            self.task = json.load(file)
        with open(f"{self.task['exported']}/shared_vocabulary.json", encoding="utf-8") as file:
            names = json.load(file)
        self.ids = {name: index for index, name in enumerate(names)}
        self.test = [[names[index] for index in ids] for ids in self.task["test"]]
        threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
        self.translator = ctranslate2.Translator(
            self.task["exported"], device="cpu", compute_type=self.task["type"], inter_threads=1,
            intra_threads=threads,
        )  # fmt: skip
        self.written: list[list[int]] = []

    def greedy(self, count: int) -> int:
        """Return the tokens that were written for this many sentences, the end of each included."""
        return self._search(count, 1)

    def beam(self, count: int) -> int:
        """Return the tokens that were written with a beam."""
        return self._search(count, self.task["beam"])

    def _search(self, count: int, size: int) -> int:
        length = self.task["length"]
        found = self.translator.translate_batch(
            self.test[:count], max_batch_size=self.task["rows"], beam_size=size,
            max_decoding_length=length or 100, min_decoding_length=length,
            length_penalty=self.task["alpha"],
        )  # fmt: skip
        self.written = [[self.ids[name] for name in each.hypotheses[0]] for each in found]
        return sum(map(len, self.written)) + (0 if length else count)

    def save(self, number: int) -> int:
        """Write the last texts down."""
        with open(f"{self.task['out']}/ct2.json", "w", encoding="utf-8") as file:
            json.dump(self.written, file)
        return len(self.written)


if __name__ == "__main__":
    from peers.turns import serve

    serve(Peer(sys.argv[1]))
