"""`transformers`' GPT-2 from a fresh configuration in the plain loop of nanoGPT's settings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from peers import nano


class Peer(nano.Peer):
    """The model computes its own loss from labels, as its documentation shows."""

    def build(self) -> nn.Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        task, dropout = self.task, self.task.dropout
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=task.vocab, n_positions=task.length + 1, n_embd=task.width, n_layer=task.layers,
                n_head=task.heads, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
                bos_token_id=1, eos_token_id=2,
            )
        )  # fmt: skip

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """It shifts the labels itself, so it is given the T + 1 ids of each row."""
        ids_BT = torch.cat([x, y[:, -1:]], dim=1)
        return self.model(input_ids=ids_BT, labels=ids_BT).loss
