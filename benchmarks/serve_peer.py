"""`nextword serve` beside `transformers serve`: 64 clients, chats of 64 tokens, models of equal size.

    python benchmarks/serve_peer.py [--seconds 20] [--clients 64] [--tokens 64] [--batching] [--python P]

P is a Python with transformers[serving] and accelerate, which have an environment of their own.

Theirs is a GPT-2 (4 layers of 128, random weights, 2,000 subwords), which `transformers serve` runs by its
own `generate`, or with --batching by its own continuous batching; ours a Transformer of that size. Both
stream, on 127.0.0.1. Printed: answers a second, and the server's processor time of each, since wall time says
little while other programs run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from serve import WORDS, Server, ask, body_of, train

TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def make_gpt2(folder: Path, text: Path) -> Path:
    """Write a GPT-2 and a tokenizer of the text as `transformers` stores them."""
    import tokenizers
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    library = tokenizers.ByteLevelBPETokenizer()
    library.train([str(text)], vocab_size=2000, special_tokens=["<pad>", "<s>", "</s>"], show_progress=False)
    made = PreTrainedTokenizerFast(
        tokenizer_object=library._tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    made.chat_template = TEMPLATE
    made.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(made), n_positions=512, n_embd=128, n_layer=4, n_head=4, bos_token_id=1,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


class Theirs(Server):
    """`transformers serve` as a process of its own."""

    def __init__(self, model: Path, batching: bool, python: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        program = [python, "-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1"]
        program += [str(model), "--port", str(self.port), "--log-level", "error"]
        program += ["--device", "cpu", "--default-seed", "0"] + ["--continuous-batching"] * batching
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(program, env={**own, "HF_HUB_OFFLINE": "1"})
        for _ in range(600):
            time.sleep(0.2)
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5)
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("transformers serve ended at its start") from None
        raise SystemExit("transformers serve does not answer")

    def stop(self) -> int:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait(30)


async def load(port: int, model: str, clients: int, seconds: float, tokens: int):
    """Let clients chat until the time is over; return answers by status, their characters, and seconds."""
    statuses: Counter[int] = Counter()
    written, numbers = 0, iter(range(10**9))
    began = time.perf_counter()

    async def client() -> None:
        nonlocal written
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < began + seconds:
            number = next(numbers)
            prompt = json.loads(body_of(model, number, tokens, True))["prompt"]
            asked = {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": True}
            asked |= {"max_tokens": tokens, "seed": number, "temperature": 1.0}
            status, text, _ = await ask(reader, writer, json.dumps(asked).encode(), "/v1/chat/completions")
            statuses[status] += 1
            written += len(text)
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return statuses, written, time.perf_counter() - began


def measure(name: str, server: Server, model: str, options) -> float:
    """Ask, print a line, and return the processor time of an answer in milliseconds."""
    try:
        asyncio.run(load(server.port, model, 2, 1.0, 4))  # warm
        before = server.seconds()
        statuses, written, took = asyncio.run(
            load(server.port, model, options.clients, options.seconds, options.tokens)
        )
        used = 1000 * (server.seconds() - before) / max(1, statuses[200])
    finally:
        server.stop()
    print(
        f"{name:20} {statuses[200] / took:7.2f} answers/s, {used:8.1f} ms of processor time an answer; "
        f"statuses {dict(statuses)}; {written / max(1, statuses[200]):.0f} characters an answer",
        flush=True,
    )
    return used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batching", action="store_true", help="theirs with its own continuous batching")
    parser.add_argument("--runs", default="", help="a folder with runs of an earlier time")
    parser.add_argument("--python", default=sys.executable, help="a Python that has `transformers serve`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nextword-") as name:
        folder = Path(name)
        runs = Path(options.runs) if options.runs else folder
        if not options.runs:
            train(folder, 200_000)
        (folder / "words.txt").write_text((runs / "text.txt").read_text("utf-8") + " ".join(WORDS), "utf-8")
        model = make_gpt2(folder / "gpt2", folder / "words.txt")
        ours = measure("nextword serve", Server([runs / "transformer"], 64), "transformer", options)
        peer = Theirs(model, options.batching, options.python)
        theirs = measure("transformers serve", peer, str(model), options)
    print(f"processor time of an answer: theirs is {theirs / ours:.1f} times ours")


if __name__ == "__main__":
    main()
