"""Loss curves at equal settings: the peers' plain models and loops with our first weights, on our batches.

AdamW without weight decay, a constant rate, clipping at 1, no dropout. (SGD at rate 20 is chaotic: rounding
alone drives two such runs apart.)
"""

from __future__ import annotations

from typing import Any

import torch
from peers import example, nano
from peers.task import Task
from torch import Tensor, nn

from nextword.core.config import parse_sets
from nextword.core.events import Measure, returned
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.encode import encode
from nextword.data.source import Source
from nextword.runs.settings import plan
from nextword.tasks.lm import PreparedText
from nextword.training import loop
from nextword.training.job import make_job
from nextword.training.order import Conditions

SETTINGS = [
    "train.optimizer=adamw", "train.weight_decay=0", "train.schedule=constant", "train.warmup=0",
    "train.decay=0", "train.clip=1", "train.unigram=false", "train.log_every=1", "train.precision=fp32",
]  # fmt: skip


def curves(task: Task, sets: list[str], steps: int) -> tuple[list[float], list[float]]:
    """Losses of ours and of the plain loop, step by step."""
    job = job_of(task, [*sets, *SETTINGS, f"train.steps={steps}"])
    job.network.head.closed_V.zero_()  # the peers can write START, too
    model: nn.Module = plain_lstm(task, job) if task.kind == "lstm" else plain_gpt(task, job)
    theirs = plain_losses(task, model, job, steps)
    ours = [e.values["loss"] for e in loop.fit(job) if isinstance(e, Measure) and "loss" in e.values]
    return ours, theirs


def job_of(task: Task, sets: list[str]) -> Any:
    """What our trainer would do, ready to begin."""
    family = "lstm" if task.kind == "lstm" else "transformer"
    settings = plan(family, seed=task.seed, sets=parse_sets(sets))
    text = returned(encode(Source.for_training([task.text], settings.data), settings.text, settings.data))
    return returned(make_job(settings, PreparedText(text), Conditions()))[1]


def plain_losses(task: Task, model: nn.Module, job: Any, steps: int) -> list[float]:
    """The loop everybody writes."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=job.settings.rate, betas=job.settings.betas, weight_decay=0)
    hidden = tuple(torch.zeros(task.layers, task.batch, task.width) for _ in range(2))
    losses: list[float] = []
    for _, _, batch in loop.iterate_batches(job.batches, 0, 0):
        if len(losses) == steps:
            break
        x, y = torch.from_numpy(batch.inputs_BT), torch.from_numpy(batch.targets_BT)
        if task.kind == "lstm":
            logp, hidden = model(x.T, tuple(part.detach() for part in hidden))
            loss = nn.functional.nll_loss(logp, y.T.reshape(-1), ignore_index=NOT_COUNTED)
        else:
            loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def plain_lstm(task: Task, job: Any) -> nn.Module:
    """The example's model with our weights; its second bias, which ours has not, stays zero."""
    own = job.network
    model = example.WordModel(own.vocab_size, task.width, task.layers, 0.0)
    with torch.no_grad():
        model.encoder.weight.copy_(own.embedding.weight_VE)
        model.decoder.weight.copy_(own.head.weight_VD)
        model.decoder.bias.copy_(own.head.bias_V)
        for number, layer in enumerate(own.layers):
            getattr(model.rnn, f"weight_ih_l{number}").copy_(layer.x_to_gates.weight)
            getattr(model.rnn, f"weight_hh_l{number}").copy_(layer.h_to_gates.weight)
            getattr(model.rnn, f"bias_ih_l{number}").copy_(layer.x_to_gates.bias)
            getattr(model.rnn, f"bias_hh_l{number}").zero_().requires_grad_(False)
    return model


class Biased(nano.GPT):
    """nanoGPT's model with the output bias that ours has; START and the like are counted where ours are."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.bias = nn.Parameter(torch.zeros(task.vocab))

    def forward(self, ids_BT: Tensor, targets_BT: Tensor) -> Tensor:
        x = self.wte(ids_BT) + self.wpe(torch.arange(ids_BT.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x)) + self.bias
        return nn.functional.cross_entropy(
            logits.view(-1, logits.size(-1)), targets_BT.reshape(-1), ignore_index=NOT_COUNTED
        )


def plain_gpt(task: Task, job: Any) -> nn.Module:
    """nanoGPT's model with our weights."""
    own = dict(job.network.named_parameters())
    task.vocab = job.network.vocab_size
    model = Biased(task)
    with torch.no_grad():
        model.wte.weight.copy_(own["embedding.weight_VE"])
        model.wpe.weight.copy_(own["position.table_WD"])
        model.ln_f.weight.copy_(own["stack.norm.gain_D"])
        model.bias.copy_(own["head.bias_V"])
        for number, block in enumerate(model.h):
            start = f"stack.blocks.{number}."
            block.attn.c_attn.weight.copy_(own[f"{start}mixer.from_x.weight"])
            block.attn.c_proj.weight.copy_(own[f"{start}mixer.out.weight"])
            block.c_fc.weight.copy_(own[f"{start}ffn.inner.weight"])
            block.c_proj.weight.copy_(own[f"{start}ffn.out.weight"])
            block.ln_1.weight.copy_(own[f"{start}around_mixer.norm.gain_D"])
            block.ln_2.weight.copy_(own[f"{start}around_ffn.norm.gain_D"])
    return model
