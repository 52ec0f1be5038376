"""Requests made from /openapi.json: schemathesis finds nothing that the schema does not promise.

Its plugin for pytest does not know today's pytest, so the cases are drawn by hypothesis directly.
"""

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis")
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance  # noqa: E402

pytestmark = [pytest.mark.agree, pytest.mark.filterwarnings("ignore")]
# What takes long is made small where it is allowed; what is too much stays so, and must be refused.
LIMITS = {"max_tokens": (3, 16_384), "max_completion_tokens": (3, 16_384), "n": (2, 64), "best_of": (2, 64)}
OF_THE_MODEL = {
    "too_many",
    "too_long",
    "invalid_token",
    "contradiction",
    "invalid_input",
}  # a schema cannot say it
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.fixture(scope="session")
def operations(site):
    """Every operation of a server that the schema describes."""
    schema = schemathesis.openapi.from_url(f"{site.address}/openapi.json")
    return [each.ok() for each in schema.get_all_operations()]


def tried(operation, mode, count):
    """Send this many cases of an operation; return how many were sent."""
    sent = []

    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        body = case.body
        if isinstance(body, dict) and isinstance(body.get("model"), str):
            if len(body["model"]) % 2 and len(body["model"]) < 200:  # every other time one that exists
                body["model"] = "counts"
            for name, (small, most) in LIMITS.items():
                if type(body.get(name)) is int and small < body[name] <= most:
                    body[name] = small
        answer = case.call(timeout=60)
        code = answer.json()["error"]["code"] if answer.status_code == 422 else ""
        excluded = [positive_data_acceptance] if answer.status_code == 400 or code in OF_THE_MODEL else []
        if answer.status_code == 413:  # refused for its size, whatever is in it
            excluded = [positive_data_acceptance, negative_data_rejection]
        case.validate_response(answer, excluded_checks=excluded)
        sent.append(case)

    check()
    return len(sent)


def every(operations, total):
    """Divide cases between the operations; those without parameters have only one."""
    count = max(2, round(total / len(operations) / 2))
    return sum(tried(each, mode, count) for each in operations for mode in modes(each))


def modes(operation):
    """Return the modes that can make cases: without a body there is nothing to get wrong."""
    return MODES if operation.method.upper() == "POST" else MODES[:1]


def test_answers_are_what_the_schema_promises(operations):
    assert every(operations, 360) >= 200


@pytest.mark.slow
def test_answers_to_many_more_are_what_the_schema_promises(operations):
    assert every(operations, 3600) >= 2000
