"""A GPT in the manner of nanoGPT, written afresh: model, batches at chance offsets, AdamW, the plain loop.

Its settings for a CPU: rate 1e-3 after 100 steps of warm-up, cosine to a tenth, betas 0.9 and 0.99, weight
decay 0.1 on matrices, clipping at 1, no bias, tied embeddings; float32 and no compilation.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from peers.task import Task, ids_of


class Attention(nn.Module):
    """Causal self-attention through PyTorch's own fused function."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.c_attn = nn.Linear(width, 3 * width, bias=False)
        self.c_proj = nn.Linear(width, width, bias=False)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(C, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        y = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class Block(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attn = Attention(width, heads, dropout)
        self.c_fc, self.c_proj = (
            nn.Linear(width, 4 * width, bias=False),
            nn.Linear(4 * width, width, bias=False),
        )
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.dropout(self.c_proj(self.gelu(self.c_fc(self.ln_2(x)))))


class GPT(nn.Module):
    """Learned positions, tied output."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(task.vocab, task.width), nn.Embedding(task.length, task.width)
        self.drop = nn.Dropout(task.dropout)
        self.h = nn.ModuleList(Block(task.width, task.heads, task.dropout) for _ in range(task.layers))
        self.ln_f = nn.LayerNorm(task.width, bias=False)
        self.lm_head = nn.Linear(task.width, task.vocab, bias=False)
        self.wte.weight = self.lm_head.weight
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                scale = 1 / math.sqrt(2 * task.layers) if name.endswith("c_proj.weight") else 1.0
                nn.init.normal_(weight, mean=0.0, std=0.02 * scale)

    def forward(self, ids_BT: Tensor, targets_BT: Tensor) -> Tensor:
        x = self.drop(self.wte(ids_BT) + self.wpe(torch.arange(ids_BT.size(1))))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets_BT.view(-1))


class Peer:
    """The loop, one step at a time."""

    def __init__(self, task: Task) -> None:
        torch.manual_seed(task.seed)
        self.task, self.done, self.ids = task, 0, ids_of(task)
        self.model = self.build()
        self.optimizer = self.configure()

    def build(self) -> nn.Module:
        """The model; another peer's differs here."""
        return GPT(self.task)

    def configure(self) -> torch.optim.Optimizer:
        """Weight decay for matrices only."""
        weights = list(self.model.parameters())
        groups = [
            {"params": [w for w in weights if w.dim() >= 2], "weight_decay": 0.1},
            {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.task.rate, betas=(0.9, 0.99))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean nats of the next words."""
        return self.model(x, y)

    def batch(self) -> tuple[Tensor, Tensor]:
        """Blocks at chance offsets, gathered one by one."""
        T = self.task.length
        starts = torch.randint(len(self.ids) - T, (self.task.batch,))
        x = torch.stack([torch.from_numpy(self.ids[i : i + T].astype(np.int64)) for i in starts])
        y = torch.stack([torch.from_numpy(self.ids[i + 1 : i + 1 + T].astype(np.int64)) for i in starts])
        return x, y

    def rate(self) -> float:
        """Warm-up, then a cosine down to a tenth."""
        warmup = min(100, self.task.steps // 2)
        if self.done < warmup:
            return self.task.rate * (self.done + 1) / (warmup + 1)
        share = min(1.0, (self.done - warmup) / max(1, self.task.steps - warmup))
        least = self.task.rate / 10
        return least + 0.5 * (1 + math.cos(math.pi * share)) * (self.task.rate - least)

    def step(self) -> float:
        """One update; the loss in nats per token."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.done += 1
        self.model.train()
        loss = self.loss(*self.batch())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    @torch.no_grad()
    def nats(self, ids: np.ndarray) -> tuple[float, int]:
        """Nats of a text, and the tokens counted, in windows that overlap by half.

        Every token but the first ones has at least half a context before it, as when ours is measured;
        nanoGPT's own estimate, in blocks without overlap, gives less context and higher numbers.
        """
        self.model.eval()
        rows, T = torch.as_tensor(ids.astype(np.int64)), self.task.length
        total, count = 0.0, 0
        for begin in range(0, len(rows) - 1, T // 2):
            x, y = rows[begin : begin + T][None], rows[begin + 1 : begin + 1 + T][None]
            x, new = x[:, : y.size(1)], count - begin  # the first `new` targets were counted before
            wanted, kept = y.clone(), y.size(1) - new
            wanted[:, :new] = -100  # left out of the mean
            total += self.loss(x, wanted).item() * kept
            count += kept
            if begin + T + 1 >= len(rows):
                break
        return total, count
