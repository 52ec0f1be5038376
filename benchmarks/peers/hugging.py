"""`transformers`' GPT-2 from a fresh configuration in the plain loop of nanoGPT's settings.

The loss is computed from the logits of T positions: given labels, the model shifts them itself and so needs
T + 1 positions for as many predictions, which is more work than the others do.
"""

from __future__ import annotations

from torch import Tensor, nn

from peers import nano


class Peer(nano.Peer):
    """The model in the loop of the others, batch by batch."""

    def build(self) -> nn.Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        task, dropout = self.task, self.task.dropout
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=task.vocab, n_positions=task.length, n_embd=task.width, n_layer=task.layers,
                n_head=task.heads, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
                bos_token_id=1, eos_token_id=2,
            )
        )  # fmt: skip

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean nats of the next words."""
        logits_BTV = self.model(input_ids=x).logits
        return nn.functional.cross_entropy(logits_BTV.view(-1, logits_BTV.size(-1)), y.reshape(-1))
