"""The runtime has every name that `langgraph_api` takes from it, accepts every call, and yields what is unpacked.

The conformance tests check what the operations do, and the probe of `tests.canary` calls each with
every version of the API. This file shows quickly what a new release changed: it reads the call sites
from the installed source. It does not see the keywords inside of a `**` argument.
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
# Attributes of `self` by which `langgraph_api` passes operations on.
ALIASES = {"_threads": "Threads", "_runs": "Runs"}
# `threadhold.http.middleware` leaves its routes out.
LEFT_OUT = "operator_routes.py"
# Import `langgraph_runtime` as langgraph_api does and describe each name.
DESCRIBE = """
import importlib, inspect, json, sys, typing
from langgraph_runtime import ops
def describe(dotted):
    module, _, rest = dotted.partition(":")
    target = importlib.import_module(module)
    for part in rest.split(".") if rest else ():
        target = getattr(target, part, None)
    if target is None:
        return None
    if not inspect.isfunction(target):
        return {"parameters": [], "yields": None}
    parameters = [[p.name, p.kind.value, p.default is not p.empty]
                  for p in inspect.signature(target).parameters.values()]
    items = typing.get_args(typing.get_type_hints(target).get("return"))
    is_tuple = len(items) == 1 and typing.get_origin(items[0]) is tuple
    return {"parameters": parameters, "yields": len(typing.get_args(items[0])) if is_tuple else None}
print(json.dumps({dotted: describe(dotted) for dotted in json.load(sys.stdin)}))
"""


class Described(NamedTuple):
    """A function of the runtime: parameters (name, kind, optional), and how many things it yields at once."""

    parameters: list[tuple[str, int, bool]]
    yields: int | None


class Call(NamedTuple):
    """One call of an operation: its place, its name, and its positional and keyword arguments."""

    where: str
    operation: str
    positional: int
    keywords: tuple[str, ...]
    # Whether there may be more arguments, of `*` or `**`.
    is_open: bool


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield every module of langgraph_api, except its gRPC client, without importing any."""
    spec = importlib.util.find_spec("langgraph_api")
    if spec is None or spec.origin is None:
        raise LookupError("langgraph_api is not installed")
    package = Path(spec.origin).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith("grpc/") and name != LEFT_OUT:
            yield name, ast.parse(path.read_text())


def nodes() -> Iterator[tuple[str, ast.AST]]:
    return ((path, node) for path, tree in sources() for node in ast.walk(tree))


def imported_names() -> set[str]:
    """Return every `module:name` that langgraph_api imports from the runtime."""
    return {
        f"{node.module}:{alias.name}"
        for _, node in nodes()
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langgraph_runtime.")
        for alias in node.names
    }


def operation_of(node: ast.expr) -> str | None:
    """Return the operation that an expression names, such as `Threads.State.get`, or None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or not names:
        return None
    if node.id == "self":
        names[0] = ALIASES.get(names[0], "")
    else:
        names.insert(0, node.id)
    return ".".join(names) if names[0] in OPERATIONS and len(names) > 1 else None


def calls() -> list[Call]:
    """Return every call such as `Runs.put(...)`, `Threads.State.get(...)` or `self._threads.get(...)`."""
    return [
        Call(
            f"{path}:{node.lineno}",
            operation,
            sum(not isinstance(each, ast.Starred) for each in node.args),
            tuple(word.arg for word in node.keywords if word.arg),
            any(isinstance(each, ast.Starred) for each in node.args)
            or not all(word.arg for word in node.keywords),
        )
        for path, node in nodes()
        if isinstance(node, ast.Call) and (operation := operation_of(node.func))
    ]


def unpacked() -> dict[str, int]:
    """Return each operation whose items are unpacked by an `async for`, and into how many names."""
    return {
        operation: len(node.target.elts)
        for _, node in nodes()
        if isinstance(node, ast.AsyncFor)
        and isinstance(node.target, ast.Tuple)
        and isinstance(node.iter, ast.Call)
        and (operation := operation_of(node.iter.func))
    }


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


@pytest.fixture(scope="module")
def runtime() -> dict[str, Described | None]:
    """What langgraph_api takes from the runtime, described in a fresh interpreter."""
    operations = {f"langgraph_runtime.ops:{call.operation}" for call in calls()}
    answer = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        cwd=ROOT,
        env={
            **os.environ,
            "LANGGRAPH_RUNTIME_EDITION": "sql",
            "REDIS_URI": "unused",
            "DATABASE_URI": "sqlite://",
        },
        input=json.dumps(sorted(imported_names() | operations)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout.splitlines()[-1])
    return {name: each and Described(**each) for name, each in found.items()}


def test_call_sites_are_found(runtime: dict[str, Described | None]) -> None:
    assert {"langgraph_runtime.database:connect", "langgraph_runtime.ops:Runs.put"} <= set(runtime)
    found = calls()
    assert len(found) > 60
    assert {"Threads.Stream.join_event_streaming", "Runs.get"} <= {each.operation for each in found}
    assert any(each.is_open for each in found)
    assert unpacked().get("Runs.Stream.join") == 3


def test_every_name_exists(runtime: dict[str, Described | None]) -> None:
    assert sorted(name for name, found in runtime.items() if found is None) == []


def test_every_call_is_accepted(runtime: dict[str, Described | None]) -> None:
    refused = []
    for call in calls():
        described = runtime[f"langgraph_runtime.ops:{call.operation}"]
        if described is None:
            continue  # reported by test_every_name_exists
        expected = signature(described.parameters)
        try:
            bind = expected.bind_partial if call.is_open else expected.bind
            bind(*range(call.positional), **dict.fromkeys(call.keywords))
        except TypeError as error:
            refused.append(f"{call.where}: {call.operation}: {error}")
    assert refused == []


def test_every_operation_yields_as_many_things_as_are_unpacked(
    runtime: dict[str, Described | None],
) -> None:
    wrong = {}
    for operation, count in unpacked().items():
        described = runtime[f"langgraph_runtime.ops:{operation}"]
        if described is not None and described.yields != count:
            wrong[operation] = (described.yields, count)
    assert wrong == {}
