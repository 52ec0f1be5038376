"""The page in Chromium: time to the first paint, and from a key to the bars of each model.

    python benchmarks/page.py [RUN...] [--keys 40]

Without runs, an n-gram over words, one over subwords, an LSTM and a Transformer are trained on the built-in
corpus for a few seconds each. Every key is typed after the bars of the one before are drawn. Medians and 90th
percentiles in milliseconds by the browser's clock, the server in another process; and, since other programs
may use the machine, the processor time of a key in the server and in the page. Needs chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
TEXT = "We have made great progress in this country, and the people of the United States must "
MODELS = {
    "ngram": ["--model", "ngram"],
    "ngram-bpe": ["--model", "ngram", "--tokenizer", "bpe"],
    "lstm": ["--model", "lstm", "--minutes", "0.3"],
    "transformer": ["--model", "transformer", "--minutes", "0.3"],
}
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# Type one letter, and wait until every card has its own answer: then it writes what is left under its bars.
KEY = """(text) => new Promise((done) => {
  const field = document.getElementById("text"), begun = performance.now(), found = {};
  const cards = [...document.querySelectorAll("article")];
  const watch = new MutationObserver((changes) => {
    for (const change of changes) {
      const card = change.target.classList?.contains("rest") && change.target.closest("article");
      if (card) found[card.getAttribute("aria-label")] ??= performance.now() - begun;
    }
    if (Object.keys(found).length === cards.length) finish();
  });
  const timer = setTimeout(finish, 3000);
  function finish() { clearTimeout(timer); watch.disconnect(); requestAnimationFrame(() => done(found)); }
  watch.observe(document.querySelector(".cards"), { subtree: true, childList: true });
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def trained(folder: Path) -> list[Path]:
    """Train small models of each kind."""
    program = [sys.executable, "-m", "nextword"]
    get = [*program, "data", "get", "sotu", "-o", str(folder / "speeches")]
    subprocess.run(get, check=True, capture_output=True)
    text = folder / "text.txt"
    speeches = sorted((folder / "speeches").glob("19*.txt"))
    text.write_text("".join(path.read_text("utf-8") for path in speeches), encoding="utf-8")
    for name, options in MODELS.items():
        print(f"training {name} …", flush=True)
        command = [*program, "train", str(text), *options, "--out", str(folder / "runs" / name)]
        subprocess.run(command, check=True, capture_output=True)
    return [folder / "runs" / name for name in MODELS]


def serve(runs: list[Path]) -> tuple[subprocess.Popen[str], str]:
    """Start a server in a process of its own; return its address."""
    command = [sys.executable, "-m", "nextword", "serve", *map(str, runs), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, str(json.loads(process.stdout.readline())["address"])


def seconds_of(process: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy(session: Any) -> float:
    """Return the processor time of the page's main thread so far, in seconds."""
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in found if each["name"] == "TaskDuration"))


def measure(address: str, server: int, keys: int) -> tuple[list[float], dict[str, list[float]], list[float]]:
    """Return first paints of several visits, milliseconds from each key to the bars of each model, and the
    processor time of a key in the server and in the page, in milliseconds.
    """
    paints: list[float] = []
    times: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for _ in range(7):
            page = browser.new_page()
            page.goto(address)
            page.wait_for_selector(".bar")
            paints.append(float(page.evaluate(PAINT)))
            page.close()
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector(".bar")
        time.sleep(1)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = [seconds_of(server), busy(session)]
        for end in range(1, keys + 1):
            found: dict[str, Any] = page.evaluate(KEY, TEXT[:end])
            for name, value in found.items():
                times.setdefault(name, []).append(float(value))
        spent = [seconds_of(server) - before[0], busy(session) - before[1]]
        browser.close()
    return paints, times, [1000 * each / keys for each in spent]


def main() -> None:
    """Print one line for the first paint and one for each model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--keys", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        process, address = serve(args.runs or trained(Path(name)))
        try:
            paints, times, spent = measure(address, process.pid, min(args.keys, len(TEXT)))
        finally:
            process.terminate()
            process.wait(30)
    middle, most = statistics.median(paints), max(paints)
    print(f"first paint: median {middle:.0f} ms of {len(paints)} visits, worst {most:.0f} ms")
    print(f"processor time of a key: server {spent[0]:.0f} ms ({len(times)} models), page {spent[1]:.1f} ms")
    for model, values in times.items():
        middle, most = statistics.median(values), sorted(values)[int(0.9 * (len(values) - 1))]
        print(f"{model}: key to bars, median {middle:.0f} ms, 9 of 10 within {most:.0f} ms")


if __name__ == "__main__":
    main()
