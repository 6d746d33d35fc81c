"""Connectors: what of a real MCP server is asked, within which bounds, and what is refused."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from my_agent.diagnosis.connectors import arguments, sessions, tools
from my_agent.diagnosis.connectors.calls import Answer, call
from my_agent.diagnosis.connectors.tools import available
from tests.support.processes import ROOT, environment, free_port, running

ALLOWED = [
    *(
        "query",
        "labels",
        "coloured",
        "numbers",
        "failing",
        "hanging",
        "crashing",
        "long",
    ),
    *("secret", "other_secret", "write_rule", "delete_series", "gone"),
]
Named = Callable[..., None]


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve over HTTP in a process of its own until the end of the block, and give the URL."""
    port = free_port()
    command = [sys.executable, "-m", "tests.support.mcp_server", str(port)]
    with running(command, port, folder, environment()) as found:
        yield f"{found.url}/mcp"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("mcp")) as found:
        yield found


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "pids"


@pytest.fixture(params=["command", "url"])
def name(
    request: pytest.FixtureRequest, url: str, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> Named:
    """Return a function that names the server as the connector `metrics` of the tenant `acme`."""
    monkeypatch.setattr(tools, "_known", type(tools._known)())

    def named(**changes: Any) -> None:
        about: dict[str, Any] = {"name": "metrics", "tools": ALLOWED, "tenants": ["acme"]}
        # A command of Python takes a second to start on a busy machine.
        about |= {"seconds": 60}
        if request.param == "url":
            about["url"] = url
        else:
            about["command"] = [sys.executable, "-m", "tests.support.mcp_server"]
            about["environment"] = ["PYTHONPATH", "MCP_SERVER_PIDS"]
        value = json.dumps([about | changes])
        monkeypatch.setenv("DIAGNOSIS_CONNECTORS", value)

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MCP_SERVER_PIDS", str(pids))
    named()
    return named


def alive(pids: Path) -> list[int]:
    """Return which of the started commands still run."""
    started = map(int, pids.read_text().split()) if pids.exists() else []
    found = []
    for each in started:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(each).status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


async def test_tool_answers_and_nothing_is_left_behind(name: Named, pids: Path) -> None:
    found = await call("acme", "metrics.query", {"expression": "up", "minutes": 7})
    assert found == Answer("up over 7 min: 0.97")
    assert alive(pids) == []


async def test_only_allowed_tools_that_read_are_available(name: Named) -> None:
    found = {each.name: each for each in await available("acme")}
    assert set(found) == {f"metrics.{each}" for each in ALLOWED} - {
        "metrics.write_rule",
        "metrics.delete_series",
        "metrics.gone",
    }
    query = found["metrics.query"]
    assert query.description == "Evaluate an expression."
    assert query.schema["required"] == ["expression"]


@pytest.mark.parametrize("tool", ["write_rule", "delete_series"])
async def test_allowed_tool_that_changes_something_is_refused(name: Named, tool: str) -> None:
    found = await call("acme", f"metrics.{tool}", {})
    assert found.refusal == f"metrics.{tool} is refused: its server says that it changes something"


async def test_tool_that_is_not_allowed_does_not_exist(name: Named) -> None:
    name(tools=["labels"])
    assert [each.name for each in await available("acme")] == ["metrics.labels"]
    found = await call("acme", "metrics.query", {"expression": "up"})
    assert found == Answer(refusal="There is no tool 'metrics.query'")


async def test_other_tenant_sees_no_tool_and_starts_nothing(name: Named, pids: Path) -> None:
    assert await available("other") == []
    found = await call("other", "metrics.query", {"expression": "up"})
    assert found == Answer(refusal="There is no tool 'metrics.query'")
    assert not pids.exists()


async def test_every_tenant_is_written_out(name: Named) -> None:
    name(tenants=["*"], tools=["labels"])
    assert await call("other", "metrics.labels", {}) == Answer("job, instance")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, '"expression" is a required property'),
        ({"expression": "up", "minutes": 61}, "minutes: 61 is greater than the maximum of 60"),
        ({"expression": 3}, 'expression: 3 is not of type "string"'),
        ({"expression": "u" * 20_001}, "The arguments have more than 20,000 characters"),
        ({"expression": {1, 2}}, "The arguments are not JSON"),
    ],
)
async def test_wrong_arguments_are_refused(name: Named, given: dict[str, Any], told: str) -> None:
    found = await call("acme", "metrics.query", given)
    assert found.refusal == f"metrics.query: {told}"


async def test_call_that_takes_too_long_is_refused_and_ended(name: Named, pids: Path) -> None:
    name(seconds=3)
    found = await call("acme", "metrics.hanging", {})
    assert found == Answer(refusal="metrics did not answer within 3 s")
    assert alive(pids) == []


async def test_cancelled_call_leaves_nothing_behind(
    name: Named, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    offered = tools.offered

    async def noted(*arguments: Any) -> Any:
        found = await offered(*arguments)
        asked.set()
        return found

    monkeypatch.setattr(tools, "offered", noted)
    task = asyncio.create_task(call("acme", "metrics.hanging", {}))
    await asyncio.wait_for(asked.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(pids) == []
    assert not sessions._closing


async def test_long_answer_is_cut(name: Named) -> None:
    name(max_chars=1_000)
    assert await call("acme", "metrics.long", {"chars": 1_000}) == Answer("x" * 1_000)
    found = await call("acme", "metrics.long", {"chars": 500_000})
    assert found == Answer("x" * 1_000, is_cut=True)


async def test_huge_answer_ends_the_session(name: Named, pids: Path) -> None:
    found = await call("acme", "metrics.long", {"chars": 2 * sessions.MAX_BYTES})
    assert found.text == ""
    assert found.refusal
    assert "within" not in found.refusal
    assert alive(pids) == []


async def test_signs_that_nobody_sees_are_dropped(name: Named) -> None:
    found = await call("acme", "metrics.coloured", {})
    assert found.text == "red\nnul: bidi: tag: kept:\té"


async def test_error_of_a_tool_is_a_refusal_with_its_words(name: Named) -> None:
    found = await call("acme", "metrics.failing", {})
    assert found.text == ""
    assert found.refusal.startswith("metrics.failing failed: ")
    assert found.refusal.endswith("bad expression")


async def test_answer_in_json_is_a_text(name: Named) -> None:
    found = await call("acme", "metrics.numbers", {})
    assert json.loads(found.text) == {"up": 3, "down": 1}


async def test_tool_that_is_gone_is_refused(name: Named) -> None:
    found = await call("acme", "metrics.gone", {})
    assert found == Answer(refusal="metrics has no tool 'gone' now")


async def test_calls_at_once_do_not_disturb_each_other(name: Named, pids: Path) -> None:
    name(at_once=2, seconds=120)
    asked = [call("acme", "metrics.query", {"expression": f"up{n}"}) for n in range(4)]
    asked.append(call("acme", "metrics.failing", {}))
    *found, failed = await asyncio.gather(*asked)
    assert [each.text for each in found] == [f"up{n} over 5 min: 0.97" for n in range(4)]
    assert failed.refusal
    assert alive(pids) == []


async def test_command_that_crashes_during_a_call_is_a_refusal(
    name: Named, pids: Path, tmp_path: Path
) -> None:
    with serving(tmp_path) as own:
        if "url" in os.environ["DIAGNOSIS_CONNECTORS"]:
            name(url=own)
        found = await call("acme", "metrics.crashing", {})
        assert found.text == ""
        assert found.refusal.startswith(("metrics could not be asked", "metrics.crashing failed"))
    assert alive(pids) == []


@pytest.mark.parametrize("name", ["command"], indirect=True)
async def test_line_that_never_ends_is_ended(name: Named) -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    name(command=[sys.executable, "-c", code], environment=[])
    found = await call("acme", "metrics.query", {})
    assert found == Answer(refusal="metrics could not be asked")


async def test_secrets_are_named_variables(
    name: Named, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "hidden")
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("METRICS_TOKEN_FILE", str(tmp_path / "token"))
    if "url" in json.loads(os.environ["DIAGNOSIS_CONNECTORS"])[0]:
        name(headers={"Authorization": "METRICS_TOKEN"})
    else:
        name(environment=["PYTHONPATH", "METRICS_TOKEN"])
    assert await call("acme", "metrics.secret", {}) == Answer("s3cret")
    assert await call("acme", "metrics.other_secret", {}) == Answer("nothing")
    monkeypatch.delenv("METRICS_TOKEN_FILE")
    found = await call("acme", "metrics.secret", {})
    assert found == Answer(refusal="metrics: METRICS_TOKEN is not set")


@pytest.mark.parametrize("name", ["url"], indirect=True)
async def test_server_that_is_down_is_asked_once_in_a_while(
    name: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    name(url=f"http://127.0.0.1:{free_port()}/mcp")
    asked = []
    ask = sessions.ask

    async def counted(*arguments: Any) -> Any:
        asked.append(1)
        return await ask(*arguments)

    monkeypatch.setattr(sessions, "ask", counted)
    assert await available("acme") == []
    assert await available("acme") == []
    assert len(asked) == 1
    assert await call("acme", "metrics.query", {}) == Answer(refusal="metrics could not be asked")


@pytest.mark.parametrize("name", ["command"], indirect=True)
async def test_command_that_is_not_installed_is_refused(name: Named) -> None:
    name(command=["no-such-command-of-mcp"])
    found = await call("acme", "metrics.query", {})
    assert found == Answer(refusal="metrics: its command is not installed")


@pytest.mark.parametrize(
    ("schema", "given", "told"),
    [
        ({"type": "object"}, {"any": 1}, ""),
        ({"properties": {"q": {"type": "string"}}}, {"q": 1}, 'q: 1 is not of type "string"'),
        ({"properties": {"q": {"pattern": "(a+)+$"}}}, {"q": "a" * 60 + "!"}, "does not match"),
        ({"properties": {"q": {"pattern": "(?=a)b"}}}, {}, "The tool's JSON Schema is not valid"),
        ({"type": "thing"}, {}, "The tool's JSON Schema is not valid"),
        ({"$ref": "http://127.0.0.1:1/schema"}, {}, "The tool's JSON Schema is not valid"),
        ({"$ref": "file:///etc/hostname"}, {}, "The tool's JSON Schema is not valid"),
        ({}, {"q": float("nan")}, "The arguments are not JSON"),
        ({}, {"q": object()}, "The arguments are not JSON"),
        ({}, {"q": "x" * arguments.MOST}, "more than 20,000 characters"),
    ],
)
def test_arguments_are_checked(schema: dict[str, Any], given: dict[str, Any], told: str) -> None:
    found = arguments.problem(schema, given)
    assert told in found
    assert bool(found) == bool(told)
