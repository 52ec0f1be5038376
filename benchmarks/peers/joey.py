"""JoeyNMT in a process of its own; run by the Python of an environment that has it.

    python -m peers.joey TASK.json

Its model, batches, loss, clipping, optimizer and search as they are; sentences come as tokens that are split
already, so that nobody is measured on subwords. Weights, where the task names them, are those of our run.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import torch

# Logs and pictures are not needed here; its protobuf is one that today's tensorboard cannot use.
for name, part in (("torch.utils.tensorboard", "SummaryWriter"), ("joeynmt.plotting", "plot_heatmap")):
    sys.modules[name] = ModuleType(name)
    setattr(sys.modules[name], part, None)

from joeynmt.builders import build_gradient_clipper, build_optimizer  # noqa: E402
from joeynmt.datasets import BaseDataset  # noqa: E402
from joeynmt.model import build_model  # noqa: E402
from joeynmt.search import search  # noqa: E402
from joeynmt.vocabulary import Vocabulary  # noqa: E402

SPECIALS = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, unk_id=0,
    pad_id=1, bos_id=2, eos_id=3, sep_id=None, lang_tags=[],
)  # fmt: skip
FIRST = 3  # our first id that is a piece of text; here it has the number FIRST + 1


class Pairs(BaseDataset):
    """Sentences as lists of tokens."""

    def __init__(self, source, target, vocabulary, split):
        encode = vocabulary.sentences_to_ids
        super().__init__(
            "", "source", "target", split, target is not None, {"source": False, "target": False},
            {"source": None, "target": None}, {"source": encode, "target": encode},
        )  # fmt: skip
        self.sides = {"source": source, "target": target}
        self.reset_indices()

    def get_item(self, idx, lang, is_train=None):
        """Return the tokens of one sentence."""
        return self.sides[lang][idx]

    def __len__(self):
        return len(self.sides["source"])


class Peer:
    """Updates of its trainer, and its greedy and beam search."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            task = json.load(file)
        self.task = task
        names = [f"t{index}" for index in range(FIRST, task["vocabulary"])]
        self.vocabulary = Vocabulary(names, SPECIALS)
        texts = ("source", "target", "test")
        self.source, self.target, self.test = ([_named(ids) for ids in task[text]] for text in texts)
        torch.manual_seed(1)
        self.model = build_model(self._config(), self.vocabulary, self.vocabulary)
        self.model.loss_function = ("crossentropy", task["smoothing"])
        if task["weights"]:
            found = np.load(task["weights"])
            weights = {name: torch.from_numpy(found[name]) for name in found.files}
            missing, unexpected = self.model.load_state_dict(weights, strict=False)
            assert not unexpected, unexpected
            assert all(name.endswith(".pe") or name.startswith("trg_embed") for name in missing), missing
        options = {"optimizer": "adam", "learning_rate": task["rate"]}
        self.optimizer = build_optimizer(options, self.model.parameters())
        self.clip = build_gradient_clipper({"clip_grad_norm": 1.0, "clip_grad_val": None})
        self.batches, self.written, self.epoch = iter(()), [], 0

    def _config(self):
        task = self.task
        shape = {"hidden_size": task["hidden"], "num_layers": task["layers"], "dropout": task["dropout"]}
        vectors = {"embedding_dim": task["hidden"], "dropout": task["dropout"]}
        if task["kind"] == "transformer":
            both = {
                **shape, "type": "transformer", "num_heads": task["heads"], "ff_size": task["inner"],
                "layer_norm": "pre", "activation": "relu", "embeddings": {**vectors, "scale": True},
            }  # fmt: skip
            encoder, decoder = dict(both), dict(both)
        else:
            both = {**shape, "type": "recurrent", "rnn_type": "lstm", "embeddings": vectors}
            encoder = {**both, "bidirectional": True}
            decoder = {
                **both, "attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True,
                "hidden_dropout": task["dropout"],
            }  # fmt: skip
        return {"encoder": encoder, "decoder": decoder, "tied_embeddings": True, "tied_softmax": True}

    def weights(self, number: int) -> int:
        """Return how many weights are learned."""
        return sum(weight.numel() for weight in self.model.parameters())

    def train(self, steps: int) -> int:
        """Return the real target tokens that were learned from, the end of a sentence included."""
        self.model.train()
        tokens = 0
        for _ in range(steps):
            batch = self._next()
            batch.sort_by_src_length()
            loss, _, _, correct = self.model(return_type="loss", **vars(batch))
            batch.normalize(loss, "tokens").backward()
            loss.item(), correct.item()  # its trainer adds them up
            self.clip(parameters=self.model.parameters())
            self.optimizer.step()
            self.model.zero_grad()
            tokens += int(batch.ntokens)
        return tokens

    def _next(self):
        batch = next(self.batches, None)
        while batch is None:
            self.epoch += 1
            pairs = Pairs(self.source, self.target, self.vocabulary, "train")
            self.batches = iter(pairs.make_iter(self.task["batch"], "token", seed=self.epoch, shuffle=True))
            batch = next(self.batches, None)
        return batch

    def greedy(self, count: int) -> int:
        """Return the tokens that were written for this many sentences."""
        return self._search(count, 1)

    def beam(self, count: int) -> int:
        """Return the tokens that were written with a beam."""
        return self._search(count, self.task["beam"])

    def _search(self, count, size):
        self.model.eval()
        pairs = Pairs(self.test[:count], None, self.vocabulary, "test")
        length = self.task["length"]
        limits = {"max_output_length": length or -1, "min_output_length": length or 1}
        self.written = [[] for _ in range(count)]
        for batch in pairs.make_iter(self.task["rows"], "sentence"):
            order = batch.sort_by_src_length()
            output, _, _ = search(
                self.model, batch, beam_size=size, beam_alpha=self.task["alpha"], generate_unk=False, **limits
            )  # fmt: skip
            found = self.vocabulary.arrays_to_sentences(output[order])
            for place, index in enumerate(batch.indices[order].tolist()):
                self.written[index] = found[place]
        return sum(map(len, self.written))

    def save(self, number: int) -> int:
        """Write the last texts down, in our ids, without the end."""
        texts = [[int(word[1:]) for word in words if word[0] == "t"] for words in self.written]
        with open(f"{self.task['out']}/joey.json", "w", encoding="utf-8") as file:
            json.dump(texts, file)
        return len(texts)


def _named(ids: list[int]) -> list[str]:
    return [f"t{index}" for index in ids]


if __name__ == "__main__":
    from peers.turns import serve

    serve(Peer(sys.argv[1]))
