"""A script as users of the kenlm module write it, with every call it has; test_kenlm_module runs it.

usage: kenlm_script.py MODULE MODEL; prints one value a line
"""

import copy
import importlib
import pickle
import sys

kenlm = importlib.import_module(sys.argv[1])
path = sys.argv[2]

config = kenlm.Config()
config.arpa_complain = kenlm.ARPALoadComplain.NONE
config.load_method = kenlm.LoadMethod.LAZY
config.show_progress = False
model = kenlm.LanguageModel(path, config)
model = kenlm.Model(path, config)
print("order", model.order)
print("path", model.path.decode())
print("repr", repr(model))

sentences = [
    "the cat sat on the mat",
    "the unheard zyzzy sat",
    "",
    "   the \t cat  ",
    "dog",
    "a cat saw the dog on the mat the cat sat",
    "naïve 日本語",
    "the mat </s>",
    "<unk> cat",
]
for sentence in sentences:
    for bos in (True, False):
        for eos in (True, False):
            print("score", model.score(sentence, bos=bos, eos=eos))
            for prob, length, oov in model.full_scores(sentence, bos=bos, eos=eos):
                print("full", prob, length, oov)
    print("perplexity", model.perplexity(sentence))
    print("bytes", model.score(sentence.encode("utf8")))

for word in ("the", "cat", "zyzzy", "<s>", "</s>", "<unk>", b"mat"):
    print("in", word in model)

state, other = kenlm.State(), kenlm.State()
model.BeginSentenceWrite(state)
total = 0.0
for word in ["the", "cat", "sat", "on", "the", "zyzzy", "mat"]:
    total += model.BaseScore(state, word, other)
    state, other = other, state
    print("running", total)
model.NullContextWrite(state)
for word in ["the", "cat", "zyzzy", "</s>"]:
    full = model.BaseFullScore(state, word, other)
    state, other = other, state
    print("one", full.log_prob, full.ngram_length, full.oov)


def after(text: str, begin: bool = True) -> object:
    now, then = kenlm.State(), kenlm.State()
    (model.BeginSentenceWrite if begin else model.NullContextWrite)(now)
    for word in text.split():
        model.BaseScore(now, word, then)
        now, then = then, now
    return now


contexts = [
    "",
    "the",
    "the cat",
    "a cat",
    "on the cat",
    "zyzzy",
    "x zyzzy",
    "mat",
    "the mat",
    "dog zyzzy the",
    "the dog",
]
states = [after(text) for text in contexts] + [after(text, False) for text in contexts]
for one in states:
    print("equal", [one == two for two in states], [one != two for two in states])
    print(
        "hash",
        len({one, copy.copy(one)}),
        hash(one) == hash(copy.copy(one)),
        one <= one,
        one < one,
        one >= one,
    )
print(
    "distinct",
    len(set(states)),
    sorted(states)[0] == min(states),
    (states[1] < states[2]) != (states[2] < states[1]),
)

again = pickle.loads(pickle.dumps(model))
print("pickled", again.score(sentences[0]))
for wrong in ("no/such/file.arpa", __file__):
    try:
        kenlm.Model(wrong, config)
    except OSError as error:
        print("error", str(error).startswith(f"Cannot read model '{wrong}' ("))
try:
    model.score(3)
except TypeError as error:
    print("type", error)
