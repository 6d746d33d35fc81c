"""Connectors: how they are named, which arguments and texts pass, and how many calls run at once."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from my_agent.diagnosis.connector import Connector
from my_agent.diagnosis.connectors import pipe, places, texts
from my_agent.diagnosis.settings import DiagnosisSettings

COMPLETE: dict[str, Any] = {
    "name": "prometheus",
    "url": "https://mcp.internal/mcp",
    "tools": ["query"],
    "tenants": ["acme"],
}


def test_connectors_are_read_from_a_variable_or_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert DiagnosisSettings.from_environment().connectors == ()
    monkeypatch.setenv("DIAGNOSIS_CONNECTORS", json.dumps([COMPLETE]))
    (found,) = DiagnosisSettings.from_environment().connectors
    assert (found.name, found.seconds, found.max_chars) == ("prometheus", 10.0, 20_000)
    (tmp_path / "connectors.json").write_text(json.dumps([COMPLETE | {"seconds": 3}]))
    monkeypatch.setenv("DIAGNOSIS_CONNECTORS_FILE", str(tmp_path / "connectors.json"))
    (found,) = DiagnosisSettings.from_environment().connectors
    assert found.seconds == 3


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{", "It is not JSON"),
        ('{"name": "x"}', "valid tuple"),
        (json.dumps([COMPLETE, COMPLETE]), "Two connectors have the same name: prometheus"),
        (json.dumps([{**COMPLETE, "tenants": []}]), "tenants"),
        (json.dumps([{k: v for k, v in COMPLETE.items() if k != "tenants"}]), "tenants"),
        (json.dumps([{**COMPLETE, "tools": []}]), "tools"),
        (json.dumps([{**COMPLETE, "name": "a.b"}]), "name"),
        (json.dumps([{**COMPLETE, "command": ["x"]}]), "either `url` or `command`"),
        (json.dumps([{**COMPLETE, "url": None}]), "either `url` or `command`"),
        (json.dumps([{**COMPLETE, "url": "file:///etc/passwd"}]), "must begin with http://"),
        (json.dumps([{**COMPLETE, "url": "https://u:p@mcp.internal/"}]), "credentials"),
        (json.dumps([{**COMPLETE, "environment": ["HOME"]}]), "has no `environment`"),
        (json.dumps([{**COMPLETE, "headers": {"X-Key": "a b"}}]), "headers"),
        (json.dumps([{**COMPLETE, "every": True}]), "every"),
    ],
)
def test_connector_that_says_too_little_or_too_much_is_refused(
    value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIAGNOSIS_CONNECTORS", value)
    with pytest.raises(ValidationError, match=told):
        DiagnosisSettings.from_environment()


def test_only_named_tenants_are_served() -> None:
    assert Connector(**COMPLETE).serves("acme")
    assert not Connector(**COMPLETE).serves("other")
    assert not Connector(**COMPLETE).serves("")
    assert Connector(**COMPLETE | {"tenants": ["*"]}).serves("other")


@pytest.mark.parametrize(
    ("text", "kept", "is_cut"),
    [
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd", False),
        ("\x1b[1;31mred\x1b[0m \x9b\x07bell", "red bell", False),
        ("left\u202eright\u200b\U000e0041", "leftright", False),
        ("half \ud800 of a pair", "half  of a pair", False),
        ("x" * 11, "x" * 10, True),
        ("\0" * 1_000 + "x", "", True),
    ],
)
def test_text_of_a_tool_has_no_invisible_characters(text: str, kept: str, is_cut: bool) -> None:
    assert texts.plain(text, 10_000 if not is_cut else 10) == (kept, is_cut)


async def test_one_tenant_never_has_all_places() -> None:
    connector = Connector(**COMPLETE | {"at_once": 2})
    release, held = asyncio.Event(), list[str]()

    async def work(tenant: str) -> None:
        async with places.taken(connector, tenant):
            held.append(tenant)
            await release.wait()

    tasks = [asyncio.create_task(work("acme")) for _ in range(5)]
    tasks.append(asyncio.create_task(work("other")))
    while len(held) < 2:
        await asyncio.sleep(0)
    assert sorted(held) == ["acme", "other"]
    release.set()
    await asyncio.gather(*tasks)
    assert held.count("acme") == 5


def test_pipe_passes_on_what_fits() -> None:
    def piped(most: int, code: str) -> "subprocess.CompletedProcess[bytes]":
        inner = [sys.executable, "-c", code]
        command = [sys.executable, "-I", "-S", pipe.__file__, str(most), *inner]
        return subprocess.run(command, input=b"given", capture_output=True, check=False)

    echo = "import sys; sys.stdout.write(sys.stdin.read()); sys.exit(7)"
    found = piped(5, echo)
    assert (found.returncode, found.stdout) == (7, b"given")
    found = piped(4, echo)
    assert found.returncode == 1
    assert b"wrote more than 4 bytes" in found.stderr
