"""The runtime has every name that `langgraph_api` imports from it and accepts every call.

The conformance tests check what the operations do. This file shows quickly what a new
langgraph-api release changed: it reads the call sites from the installed source. The stock edition
is checked in the same way: a call that only our edition refuses is our fault.
"""

import ast
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
OPERATIONS = {"Assistants", "Threads", "Runs", "Crons"}
# Import `langgraph_runtime` as langgraph_api does and describe each name.
DESCRIBE = """
import importlib, inspect, json, sys
from langgraph_runtime import ops
def describe(dotted):
    module, _, rest = dotted.partition(":")
    target = importlib.import_module(module)
    for part in rest.split(".") if rest else ():
        target = getattr(target, part, None)
    if target is None:
        return None
    if not inspect.isfunction(target):
        return []
    return [[p.name, p.kind.value, p.default is not p.empty]
            for p in inspect.signature(target).parameters.values()]
print(json.dumps({dotted: describe(dotted) for dotted in json.load(sys.stdin)}))
"""


# Each `module:name` of a runtime and its parameters (name, kind, optional), or None if missing.
Description = dict[str, list[tuple[str, int, bool]] | None]


class Call(NamedTuple):
    """One call of an operation: its place, its name, and its positional and keyword arguments."""

    where: str
    operation: str
    positional: int
    keywords: tuple[str, ...]


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield every module of langgraph_api, except its gRPC client, without importing any."""
    spec = importlib.util.find_spec("langgraph_api")
    if spec is None or spec.origin is None:
        raise LookupError("langgraph_api is not installed")
    package = Path(spec.origin).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith("grpc/"):
            yield name, ast.parse(path.read_text())


def imported_names() -> set[str]:
    """Return every `module:name` that langgraph_api imports from the runtime."""
    return {
        f"{node.module}:{alias.name}"
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langgraph_runtime.")
        for alias in node.names
    }


def dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def calls() -> list[Call]:
    """Return every call such as `Runs.put(...)` or `Threads.State.get(...)`."""
    return [
        Call(
            f"{path}:{node.lineno}",
            dotted_name(node.func),
            len(node.args),
            tuple(word.arg for word in node.keywords if word.arg),
        )
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and dotted_name(node.func).split(".")[0] in OPERATIONS
        and "." in dotted_name(node.func)
        and not any(isinstance(argument, ast.Starred) for argument in node.args)
        and all(word.arg for word in node.keywords)
    ]


def described(names: set[str], edition: str) -> Description:
    """Describe these names in a fresh interpreter, because editions cannot share one."""
    answer = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        cwd=ROOT,
        env={
            **os.environ,
            "LANGGRAPH_RUNTIME_EDITION": edition,
            "REDIS_URI": "unused",
            "DATABASE_URI": "sqlite://",
        },
        input=json.dumps(sorted(names)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found: Description = json.loads(answer.stdout.splitlines()[-1])
    return found


def signature(parameters: list[tuple[str, int, bool]]) -> inspect.Signature:
    kinds = list(inspect._ParameterKind)
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                kinds[kind],
                default=None if optional else inspect.Parameter.empty,
            )
            for name, kind, optional in parameters
        ]
    )


@pytest.fixture(scope="module", params=["inmem", "sql"])
def runtime(request: pytest.FixtureRequest) -> Description:
    operations = {f"langgraph_runtime.ops:{call.operation}" for call in calls()}
    return described(imported_names() | operations, request.param)


def test_call_sites_are_found(runtime: Description) -> None:
    assert {"langgraph_runtime.database:connect", "langgraph_runtime.ops:Runs.put"} <= set(runtime)
    assert len(calls()) > 50


def test_every_imported_name_exists(runtime: Description) -> None:
    assert sorted(name for name, found in runtime.items() if found is None) == []


def test_every_call_is_accepted(runtime: Description) -> None:
    refused = []
    for call in calls():
        parameters = runtime[f"langgraph_runtime.ops:{call.operation}"]
        if parameters is None:
            continue  # reported by test_every_imported_name_exists
        try:
            signature(parameters).bind(*range(call.positional), **dict.fromkeys(call.keywords))
        except TypeError as error:
            refused.append(f"{call.where}: {call.operation}: {error}")
    assert refused == []
