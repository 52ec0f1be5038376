"""lm-evaluation-harness gives the log-likelihoods of our own scores: over HTTP, unchanged, and in process.

NEXTWORD_LM_EVAL names a Python that has it (`make conformance` makes one); without it nothing is compared.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from places import ROOT
from served import TEXT, serving

import nextword
from nextword.api.lm_eval import loglikelihoods
from nextword.core.contracts import START

PYTHON = os.path.abspath(os.environ.get("NEXTWORD_LM_EVAL", ROOT / ".venv-conformance" / "bin" / "python"))
pytestmark = [
    pytest.mark.agree,
    pytest.mark.slow,
    pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs lm_eval; make conformance installs it"),
]
SMALL = {"model.hidden": 16, "train.steps": 10, "train.precision": "fp32"}
FAMILIES = {"ngram": {"model.order": 3}, "lstm": SMALL, "transformer": SMALL}
DOCUMENTS = [
    {"question": "the cat sat on the", "choices": [" mat", " rug", " dog"], "answer": 0},
    {"question": "the dog", "choices": [" sat", " saw the cat", " ."], "answer": 0},
    {"question": "the", "choices": [" cat sat", " mat ."], "answer": 0},
]
TASK = """task: nextword_choices
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
target_delimiter: ""
metric_list: [{{metric: acc}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of three families, and a task of our own."""
    made = tmp_path_factory.mktemp("lm_eval")
    (made / "t.txt").write_text(TEXT)
    for name, sets in FAMILIES.items():
        nextword.train(str(made / "t.txt"), model=name, tokenizer="bpe", out=str(made / name), set=sets)
    (made / "tasks").mkdir()
    (made / "d.jsonl").write_text("".join(json.dumps(each) + "\n" for each in DOCUMENTS))
    (made / "tasks" / "choices.yaml").write_text(TASK.format(path=made / "d.jsonl"))
    return made


def expected(run):
    """Log p of each choice after its question, by the run itself."""
    made = []
    for each in DOCUMENTS:
        before = [int(i) for i in run.tokenizer.encode(each["question"])]
        for choice in each["choices"]:
            ids = [int(i) for i in run.tokenizer.encode(each["question"] + choice)]
            scores = [token.logprob for token in run.score(each["question"] + choice).tokens]
            made.append(sum(scores[len(before) : len(ids)]))
    return made


def harness(*command, cwd):
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(cwd / "hf")}
    done = subprocess.run(
        [PYTHON, *command], cwd=cwd, env={**os.environ, **offline}, capture_output=True, text=True,
        timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", FAMILIES)
def test_over_http_unchanged(folder, name):
    with serving(folder / name) as site:
        arguments = (
            f"model={name},base_url={site.address}/v1/completions,tokenizer_backend=remote,"
            "tokenized_requests=True,num_concurrent=1,max_retries=1"
        )
        harness(
            "-m", "lm_eval", "--model", "local-completions", "--model_args", arguments, "--tasks",
            "nextword_choices", "--include_path", str(folder / "tasks"), "--output_path",
            str(folder / f"out-{name}"), "--log_samples", cwd=folder,
        )  # fmt: skip
    samples = sorted((folder / f"out-{name}").rglob("samples_*.jsonl"))[-1].read_text().strip().split("\n")
    rows = sorted(map(json.loads, samples), key=lambda row: row["doc_id"])
    found = [float(each[0][0]) for row in rows for each in row["resps"]]
    assert found == pytest.approx(expected(nextword.load(folder / name)), abs=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_in_process(folder, name):
    said = harness(
        "-m", "nextword", "lm-eval", str(folder / name), "nextword_choices", "--include",
        str(folder / "tasks"), "--json", cwd=folder,
    )  # fmt: skip
    run = nextword.load(folder / name)
    right = 0
    for each in DOCUMENTS:
        before = [START, *map(int, run.tokenizer.encode(each["question"]))]
        ids = [[START, *map(int, run.tokenizer.encode(each["question"] + c))] for c in each["choices"]]
        scores = [logp for logp, _ in loglikelihoods(run, [(before, one[len(before) :]) for one in ids])]
        right += scores.index(max(scores)) == each["answer"]
    assert json.loads(said)["nextword_choices"]["acc,none"] == pytest.approx(right / len(DOCUMENTS))
