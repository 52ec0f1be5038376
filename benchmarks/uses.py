"""Other uses of the task translate, each with its measure, a baseline and CPU minutes of training.

python benchmarks/uses.py --data FOLDER [--minutes 6] [--only phones,answers] [--texts 500] prints a table;
what a model writes for some texts goes to standard error. The folders of the data are those that
`nextword data list` names; pairs and runs are written to --out. `support/cpu_clock.py` counts the minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

from support.command import nextword

from nextword.core import catalog
from nextword.data.recipes.recipe import divide, pairs_of, write_pairs
from nextword.evaluation.pairs.brackets import read_tree, right_branching
from nextword.evaluation.translation import measured

WORDS = ("--tokenizer", "words", "--set", "text.joint=false")
GRU = ("--model", "gru-torch")
TASKS = (1, 2, 4, 6, 15, 16)  # of bAbI
SHOWN = 8  # texts of a test set
DECODINGS = {  # of replies
    "greedy": ("decode=greedy",),
    "sampled at 0.7": ("decode=sample", "temperature=0.7", "seed=1"),
    "sampled": ("decode=sample", "seed=1"),
    "diverse beam": ("decode=beam", "beam_size=8", "groups=4", "diversity=1"),
}
COMMON = 800  # utterances: a word in more of them tells little


def rows(path):
    return [line.rstrip("\n").split("\t")[:2] for line in open(path, encoding="utf-8")]


def references_of(pairs):
    found = {}
    for source, target in pairs:
        found.setdefault(source, []).append(target)
    return found


def baseline(pairs, guess, measure):
    found = references_of(pairs)
    guesses = [guess(source, targets) for source, targets in found.items()]
    return measured(guesses, list(found.values()), measure)


def trained(args, name, measure, files, *options):
    run = args.out / "runs" / name
    what = ["--task", "translate", "--set", f"data.measure={measure}", "--minutes", args.minutes]
    options = (*what, "--out", run, "--overwrite", *options)
    _, seconds = nextword("train", *files, *options, module="support.cpu_clock")
    return run, seconds


def evaluated(run, file, *decode):
    """Evaluate greedily, or as asked."""
    decode = decode or ("decode=greedy",)
    sets = [part for each in decode for part in ("--set", f"decode.{each}")]
    return json.loads(nextword("eval", run, file, *sets, "--json")[0])


def show(run, file):
    """Print what a model writes for some texts."""
    shown = list(references_of(rows(file)).items())[:: max(1, len(rows(file)) // SHOWN)][:SHOWN]
    given = "".join(f"{source}\n" for source, _ in shown)
    written = nextword("predict", run, "-", "--decode", "greedy", given=given)[0].split("\n")
    for (source, targets), text in zip(shown, written, strict=False):
        print(f"{source[-200:]}\n  writes: {text}\n  given:  {targets[0]}", file=sys.stderr, flush=True)


def some(args, name, path, pairs=None):
    """Write the pairs of some sources of a test set, spread over it."""
    file, every = args.out / f"{name}-test.tsv", references_of(pairs or rows(path))
    chosen = list(every.items())[:: max(1, len(every) // args.texts)][: args.texts]
    write_pairs(file, [(source, target) for source, targets in chosen for target in targets])
    return file


def letters(pairs):
    """The most frequent phone of each letter, where a word has as many letters as phones."""
    counts = {}
    for source, target in pairs:
        if len(source.split()) == len(target.split()):
            for letter, phone in zip(source.split(), target.split(), strict=True):
                counts.setdefault(letter, Counter())[phone] += 1
    return {letter: each.most_common(1)[0][0] for letter, each in counts.items()}


def phones(args):
    pairs = pairs_of(catalog.find("recipe", "letters"), [str(args.data / "cmudict" / "cmudict.tsv")])
    learned, held = divide(pairs, 0.05, "spread")
    write_pairs(args.out / "sounds.tsv", learned)
    test = some(args, "sounds", None, held)
    run, seconds = trained(args, "sounds", "phones", [args.out / "sounds.tsv"], *GRU, *WORDS)
    best = letters(learned)
    base = baseline(rows(test), lambda s, _: " ".join(best.get(x, "") for x in s.split()), "phones").values()
    show(run, test)
    found = evaluated(run, test)
    shown = [f"phones {each['phone_error']:.1%}, words {each['word_error']:.1%}" for each in (found, base)]
    yield "letters to sounds (cmudict)", "errors of phones, of words", *shown, "a phone a letter", seconds


def answers(args):
    recipe, folder = catalog.find("recipe", "stories"), args.data / "babi"
    files = {
        k: {part: str(next(folder.glob(f"qa{k}_*_{part}.txt"))) for part in ("train", "test")} for k in TASKS
    }
    write_pairs(args.out / "stories.tsv", pairs_of(recipe, [each["train"] for each in files.values()]))
    run, seconds = trained(args, "answers", "answers", [args.out / "stories.tsv"], *GRU, *WORDS)
    for k in TASKS:
        test = some(args, f"stories-{k}", None, pairs_of(recipe, [files[k]["test"]]))
        usual = Counter(target for _, target in pairs_of(recipe, [files[k]["train"]])).most_common(1)[0][0]
        base = sum(target == usual for _, target in rows(test)) / len(rows(test))
        show(run, test)
        found = evaluated(run, test)["exact_match"]
        yield f"answers (bAbI, task {k})", "right", f"{found:.1%}", f"{base:.1%}", "the usual answer", seconds


def parses(args):
    pairs = pairs_of(catalog.find("recipe", "numbered-trees"), [str(args.data / "treebank" / "wsj.mrg")])
    learned, held = divide(pairs, 0.1, "last")
    write_pairs(args.out / "trees.tsv", learned)
    test = some(args, "trees", None, held)
    rare = ("--set", "text.min_count=2")
    run, seconds = trained(args, "parses", "parse", [args.out / "trees.tsv"], *WORDS, *rare)
    guess = lambda _, targets: right_branching(read_tree(targets[0]).leaves)  # noqa: E731
    base = baseline(rows(test), guess, "parse").extra
    show(run, test)
    found = evaluated(run, test)
    shown = f"{found['bracket_f1']:.3f} ({found['trees']:.0%} are trees), "
    shown += f"repaired {found['bracket_f1_repaired']:.3f}"
    yield "parses (treebank)", "bracket F1", shown, f"{base['bracket_f1']:.3f}", "right-branching", seconds


def subjects(args):
    folder = args.data / "aeslc"
    test = some(args, "subjects", folder / "test.tsv")
    sets = (
        "data.too_long=cut",
        "data.longest=50",
        "model.copying=true",
        "text.lowercase=true",
        "text.size=4000",
    )
    options = ("--valid", folder / "dev.tsv", *(part for each in sets for part in ("--set", each)))
    run, seconds = trained(args, "subjects", "summary", [folder / "train.tsv.gz"], *options)
    base = baseline(rows(test), lambda text, _: re.split(r"(?<=[.!?])\s", text)[0], "summary").extra
    show(run, test)
    found = evaluated(run, test)
    shown = [f"{e['rouge_1']:.3f}, {e['rouge_2']:.3f}, {e['rouge_l']:.3f}" for e in (found, base)]
    yield "subject lines (aeslc)", "ROUGE-1, 2, L", *shown, "the first sentence", seconds


def retrieved(learned):
    """The reply to the utterance with the most similar words, weighted by how rare they are."""
    found_in = {}
    for at, (said, _) in enumerate(learned):
        for word in set(said.lower().split()):
            found_in.setdefault(word, []).append(at)
    weight = {word: math.log(len(learned) / len(places)) for word, places in found_in.items()}
    length = [math.sqrt(sum(weight[w] ** 2 for w in set(said.lower().split()))) or 1.0 for said, _ in learned]

    def reply(said, _):
        scores = Counter()
        for word in set(said.lower().split()):
            if len(found_in.get(word, ())) < COMMON:
                for at in found_in.get(word, ()):
                    scores[at] += weight[word] ** 2 / length[at]
        return learned[max(scores, key=lambda at: scores[at])][1] if scores else learned[0][1]

    return reply


def varied(found):
    return f"{found['distinct_1']:.3f}, {found['distinct_2']:.3f} ({found['different_replies']:.0%} differ)"


def replies(args):
    pairs = rows(args.data / "cornell-movie" / "pairs.tsv")
    learned, held = pairs[:-1500], pairs[-1500:]
    write_pairs(args.out / "replies.tsv", learned)
    test = some(args, "replies", None, held)
    run, seconds = trained(args, "replies", "dialogue", [args.out / "replies.tsv"])
    base = varied(baseline(rows(test), retrieved(learned), "dialogue").extra)
    show(run, test)
    for how, decode in DECODINGS.items():
        found = evaluated(run, test, *decode)
        shown = f"perplexity {found['perplexity']:.0f}, {varied(found)}"
        yield f"replies (cornell-movie), {how}", "distinct 1 and 2", shown, base, "retrieval", seconds


USES = {"phones": phones, "answers": answers, "parses": parses, "replies": replies, "subjects": subjects}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("uses"))
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--texts", type=int, default=500, help="texts of a test set, at most")
    parser.add_argument("--only", default=",".join(USES))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    print("| use | measure | trained | baseline | which is | CPU minutes |\n" + "|---" * 6 + "|", flush=True)
    for name in args.only.split(","):
        for *cells, seconds in USES[name](args):
            print("| " + " | ".join([*cells, f"{seconds / 60:.1f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
