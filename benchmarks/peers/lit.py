"""`litgpt`'s GPT from a fresh configuration in the plain loop of nanoGPT's settings."""

from __future__ import annotations

from torch import Tensor, nn

from peers import nano


class Peer(nano.Peer):
    """Its own model and its own chunked cross-entropy, as its pre-training calls them."""

    def build(self) -> nn.Module:
        from litgpt import GPT, Config

        task = self.task
        config = Config(
            name="peer", block_size=task.length, n_layer=task.layers, n_embd=task.width, n_head=task.heads,
            vocab_size=task.vocab, padded_vocab_size=task.vocab, bias=False, lm_head_bias=False,
        )  # fmt: skip
        model = GPT(config)
        for weight in model.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, mean=0.0, std=0.02)
        return model

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        from litgpt.utils import chunked_cross_entropy

        return chunked_cross_entropy(self.model(x), y)
