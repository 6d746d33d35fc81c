"""Requests generated from the server's OpenAPI description never cause a 5xx.

The number of examples is bounded; `test_bad_input*.py` keep what fuzzing has found.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.internal.conjecture.utils import many
from schemathesis import GenerationMode

from tests.support import databases
from tests.support.garbage import complaint
from tests.support.served import served

EXAMPLES = 2  # of each kind for each operation
IDS = {"thread_id": "/threads", "assistant_id": "/assistants", "cron_id": "/runs/crons"}


@dataclass
class Fuzzed:
    """A server that gets generated requests, and the answers that were wrong."""

    database: str
    client: httpx.Client
    ids: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)

    def send(self, operation: str, case: Any) -> None:
        """Send a generated request and record what is wrong with its answer."""
        # Other clients refuse to send these requests too.
        with suppress(httpx.InvalidURL, httpx.LocalProtocolError, TypeError, ValueError):
            request = self.client.build_request(**_request(case))
            answer = self.client.send(request, stream=True)
            with closing(answer):
                self.sent[operation] = self.sent.get(operation, 0) + 1
                if answer.status_code >= 400:  # streams may have no end
                    answer.read()
                    if why := complaint(answer):
                        where = f"{self.database}: {operation} {_request(case)}"
                        self.wrong.setdefault(where[:2000], why)


def _request(case: Any) -> dict[str, Any]:
    """Convert a case to the arguments of httpx."""
    found = case.as_transport_kwargs(base_url="http://fuzz.invalid")
    sent = {
        "method": found["method"],
        "url": found["url"].removeprefix("http://fuzz.invalid"),
        "params": found.get("params"),
        "headers": dict(found.get("headers") or {}),
    }
    if "json" in found:
        sent["json"] = found["json"]
    elif found.get("data") is not None:
        data = found["data"]
        sent["content"] = data if isinstance(data, bytes | str) else str(data)
    return sent


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Fuzzed]]:
    """Start a server on each database. Both get the same requests: generating them takes long."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(_fuzzed(kind, tmp_path_factory.mktemp("fuzz")))
            for kind in databases.KINDS
        ]


@contextmanager
def _fuzzed(kind: str, folder: Path) -> Iterator[Fuzzed]:
    with (
        databases.on(kind),
        served(folder) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        known = {"graph_id": "echo", "assistant_id": "echo", "schedule": "0 0 1 1 *"}
        ids = {}
        for name, path in IDS.items():
            body = {"graph_id": "echo"} if name == "assistant_id" else known
            body = {} if name == "thread_id" else body
            ids[name] = str(client.post(path, json=body).json()[name])
        yield Fuzzed(kind, client, ids)
        assert client.get("/ok").is_success


def _more(elements: Any) -> bool:
    """Return whether hypothesis draws another element."""
    if not hasattr(elements, "walk"):
        elements.walk = iter(elements.__enter__())
    if next(elements.walk, "none") != "none":
        return True
    elements.__exit__(None)
    return False


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hypothesis-jsonschema 0.23 draw objects: it calls a method that hypothesis has removed."""
    if not hasattr(many, "more"):
        monkeypatch.setattr(many, "more", _more, raising=False)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("objects")
def test_generated_requests_never_cause_a_5xx(fuzzed: list[Fuzzed], rng: random.Random) -> None:
    description = fuzzed[0].client.get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(description)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) > 50
    chosen = rng.randrange(2**32)
    rng.shuffle(operations)
    for operation in operations:
        _fuzz(fuzzed, operation, GenerationMode.NEGATIVE, chosen)
    # Every operation that can get an invalid request got one.
    for each in fuzzed:
        assert len(each.sent) > 40, sorted(each.sent)
    for operation in operations:
        _fuzz(fuzzed, operation, GenerationMode.POSITIVE, chosen)
    assert {where: why for each in fuzzed for where, why in each.wrong.items()} == {}


def _fuzz(fuzzed: list[Fuzzed], operation: Any, mode: GenerationMode, chosen: int) -> None:
    bounds = settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @seed(chosen)
    @bounds
    @given(case=operation.as_strategy(generation_mode=mode))
    def fire(case: Any) -> None:
        for each in fuzzed:
            # Half of the requests name objects that exist, where more can go wrong.
            if len(each.sent) % 2 and operation.method.upper() != "DELETE":
                for name, value in each.ids.items():
                    if name in (case.path_parameters or {}):
                        case.path_parameters[name] = value
            each.send(operation.label, case)

    # An operation that takes nothing, or any text, has no invalid request.
    with suppress(Unsatisfiable):
        fire()
