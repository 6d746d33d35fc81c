"""The patterns of the project: all that are compiled, and those of calls of `re`."""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = (*("hooks", "langgraph_runtime_sql", "my_agent", "server", "threadhold", "tools"),)
_CALLS = ("sub", "subn", "match", "search", "fullmatch", "split", "findall", "finditer", "compile")


@dataclass(frozen=True)
class Found:
    """A pattern, where it is, and how it is used: `match`, `fullmatch` or `search`."""

    where: str
    pattern: re.Pattern[Any]
    how: str


class _Unknown(dict[str, Any]):
    """The names of a module; one that is not of the module is a text that is no pattern."""

    def __missing__(self, name: str) -> str:
        builtin = vars(importlib.import_module("builtins"))
        return builtin.get(name, "x")


def sources() -> Iterator[tuple[str, Path, ast.Module]]:
    """Yield name, file and tree of each module of the project."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            # A project that `threadhold init` writes, and migrations, which Alembic imports.
            if "template" in path.parts or "migrations" in path.parts:
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield name, path, ast.parse(path.read_text())


def patterns() -> list[Found]:
    """Return the patterns of the project, each once."""
    found: dict[tuple[str, int, str], Found] = {}
    trees = list(sources())
    public = _uses([tree for _, _, tree in trees])
    for name, path, tree in trees:
        # A private name is used in its module only.
        private = {each: how for each, how in _uses([tree]).items() if each.startswith("_")}
        uses = public | private
        module = sys.modules.get(name) or _imported(name)
        if module is None:
            continue
        file = path.relative_to(ROOT)
        held = list(_held(module, uses))
        for where, how, pattern in [*held, *_written(module, tree, held)]:
            key = (str(pattern.pattern), pattern.flags, how)
            found.setdefault(key, Found(f"{file}:{where}", pattern, how))
    return list(found.values())


def _imported(name: str) -> ModuleType | None:
    # `python -m name` runs on import.
    return None if name.endswith("__main__") else importlib.import_module(name)


def _uses(trees: list[ast.Module]) -> dict[str, set[str]]:
    """Return the methods that the project calls on each name."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        called: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                target = node.func.value
                if node.func.attr in _CALLS and isinstance(target, ast.Name | ast.Attribute):
                    called.add(id(target))
                    found.setdefault(_name(target), set()).add(node.func.attr)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name | ast.Attribute) or id(node) in called:
                continue
            if isinstance(node.ctx, ast.Load):
                # Used as a value: anything may be called on it.
                found.setdefault(_name(node), set()).add("search")
    return found


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _how(calls: set[str]) -> str:
    if calls and calls <= {"match", "fullmatch"}:
        return "fullmatch" if calls == {"fullmatch"} else "match"
    return "search"


def _held(
    module: ModuleType, uses: dict[str, set[str]]
) -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    """Yield the compiled patterns in the values of a module."""
    for name, value in list(vars(module).items()):
        for pattern in _inside(value, 0):
            direct = isinstance(value, re.Pattern)
            yield name, _how(uses.get(name, set())) if direct else "search", pattern


def _inside(value: object, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth > 6 or isinstance(value, type):
        return
    elif isinstance(value, dict):
        for each in [*value.keys(), *value.values()]:
            yield from _inside(each, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        if len(value) < 5_000:
            for each in value:
                yield from _inside(each, depth + 1)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _inside(getattr(value, each.name, None), depth + 1)


def _written(
    module: ModuleType, tree: ast.Module, held: list[tuple[str, str, re.Pattern[Any]]]
) -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    """Yield the patterns of calls such as `re.sub("a+", ...)`, without those that are `held`."""
    known = {(each.pattern, each.flags) for _, _, each in held}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in _CALLS):
            continue
        names = _Unknown(vars(module))
        pattern = _value(node.args[0], names)
        flags = 0
        for keyword in node.keywords:
            if keyword.arg == "flags":
                flags = _value(keyword.value, names)
        place = {"sub": 4, "subn": 4, "split": 3, "compile": 1}.get(node.func.attr, 2)
        if len(node.args) > place:
            flags = _value(node.args[place], names)
        how = _how({node.func.attr}) if node.func.attr != "compile" else "search"
        if isinstance(pattern, str | bytes):
            compiled: re.Pattern[Any] = re.compile(pattern, flags)
            if node.func.attr != "compile" or (compiled.pattern, compiled.flags) not in known:
                yield str(node.lineno), how, compiled


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "pattern", "eval"), {}, names)
