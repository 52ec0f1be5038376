"""``lm-eval``: the tasks of lm-evaluation-harness (Gao et al.) with a run, in process.

The harness has no entry points for models, so a run is handed to it as an object. Its packages do not fit
ours, so it is never a dependency: who wants it installs both into an environment of their own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from nextword.api.opened import Name, Opened, language_model
from nextword.core.contracts import END, START
from nextword.core.errors import ConfigError
from nextword.decode.engine import Engine
from nextword.decode.generate import collect, generate
from nextword.decode.requests import Request
from nextword.decode.settings import DecodeSettings

_TOKENS = 256  # generated at most, where a task does not say


def evaluate(
    run: Opened | Name,
    tasks: Sequence[str],
    *,
    include: str | None = None,
    limit: int | None = None,
    fewshot: int | None = None,
) -> dict[str, Any]:
    """Measure a run with tasks of the harness; return its results by task.

    ``include`` is a folder with tasks of one's own; ``limit`` measures the first examples only.
    """
    harness = _harness()
    manager = harness["TaskManager"](include_path=include)
    known = set(manager.all_tasks)
    for task in tasks:
        if task not in known:
            raise ConfigError(f"unknown task '{task}' of lm-eval; list them with: lm_eval ls tasks")
    found = harness["simple_evaluate"](
        model=model_of(run), tasks=list(tasks), task_manager=manager, limit=limit, num_fewshot=fewshot,
        bootstrap_iters=0, log_samples=False,
    )  # fmt: skip
    results: dict[str, Any] = json.loads(json.dumps(found["results"], default=str))
    return results


def model_of(run: Opened | Name) -> Any:
    """Return a run as a model of the harness."""
    opened = language_model(run, forward=True)
    base: Any = _harness()["TemplateLM"]

    class NextwordModel(base):  # type: ignore[misc] # the class is known only where the harness is installed
        """A run behind the three questions of the harness."""

        eot_token_id = END
        prefix_token_id = START

        def tok_encode(self, string: str, add_special_tokens: bool | None = None, **more: Any) -> list[int]:
            return [int(each) for each in opened.tokenizer.encode(string)]

        def _loglikelihood_tokens(self, requests: Sequence[Any], **more: Any) -> list[tuple[float, bool]]:
            pairs = [(context, rest) for _, context, rest in requests]
            return loglikelihoods(opened, pairs)

        def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
            pairs = [([START], self.tok_encode(request.args[0])) for request in requests]
            return [logp for logp, _ in loglikelihoods(opened, pairs)]

        def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
            return [continued(opened, *request.args) for request in requests]

    return NextwordModel()


def loglikelihoods(
    run: Opened, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]
) -> list[tuple[float, bool]]:
    """Return log p of each continuation after its context, and whether each of its tokens is the likeliest.

    Ids may begin with START, which is read and not predicted.
    """
    asked = []
    for context, rest in pairs:
        ids = (*context, *rest)
        asked.append((Request(ids[1:] if ids[:1] == (START,) else ids, scored=True, top=1), len(rest)))
    engine = Engine(run.model, waiting=len(asked) + 1)
    for request, _ in asked:
        engine.admit(request)
    while not engine.is_idle:
        engine.step()
    made = []
    for request, count in asked:
        if request.error is not None:
            raise request.error
        tokens = request.read[len(request.read) - count :]
        is_greedy = all(token.logprob == token.top[0][1] for token in tokens)
        made.append((math.fsum(token.logprob for token in tokens), is_greedy))
    return made


def continued(run: Opened, context: str, how: dict[str, Any]) -> str:
    """Continue a context until one of the texts that end it."""
    until = how.get("until") or []
    stop = tuple(each for each in ([until] if isinstance(until, str) else until) if each)
    samples = bool(how.get("do_sample")) and float(how.get("temperature", 1.0)) > 0
    settings = DecodeSettings(
        decode="sample" if samples else "greedy", max_tokens=int(how.get("max_gen_toks", _TOKENS)), stop=stop,
        temperature=float(how.get("temperature", 1.0)) if samples else 1.0, seed=0,
    )  # fmt: skip
    ids = [int(each) for each in run.tokenizer.encode(context)]
    return collect(generate(run.model, [ids], settings, run.tokenizer))[0].text


def _harness() -> dict[str, Any]:
    """Import what is needed of lm-evaluation-harness, or say how to get it."""
    try:
        from lm_eval import simple_evaluate
        from lm_eval.api.model import TemplateLM
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise ConfigError(
            "nextword lm-eval needs the package 'lm_eval', which is not installed; its packages do not fit "
            "the pinned ones, so make an environment for both: python3 -m venv .venv-conformance && "
            ".venv-conformance/bin/pip install 'lm-eval[api]' '.[neural]'"
        ) from error
    return {"simple_evaluate": simple_evaluate, "TemplateLM": TemplateLM, "TaskManager": TaskManager}
