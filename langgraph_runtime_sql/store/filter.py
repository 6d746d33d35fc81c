"""Filters of store searches, compiled to a test of one stored value.

The language joins that of langgraph's stores (plain values, nested objects, `$eq`, `$ne`, `$gt`,
`$gte`, `$lt`, `$lte`) and that of authorization handlers (`$contains`, `$and`, `$or`), because the
API merges a handler's filter into the caller's. Python evaluates it. Keys are looked up in a dict
only, so `a.b`, quotes and NUL are names like any other. Unknown operators are refused.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from langgraph_runtime_sql.json_codec import plain

Test = Callable[[Any], bool]

MAX_DEPTH = 32
MAX_TERMS = 1000
_LOGIC: dict[str, Callable[[Any], bool]] = {"$and": all, "$or": any}


def compile_filter(filter: Mapping[str, Any] | None) -> Test | None:
    """Return a test for stored values; None if the filter admits everything.

    A missing field equals None, as in langgraph's in-memory store. Order comparisons hold
    between two numbers or two strings only.

    Raises:
        ValueError: an operator is unknown or malformed, or the filter has more than 32 levels
            or 1000 terms.
    """
    if not filter:
        return None
    # Encoded as stored values are, so that an id or a date equals its JSON form.
    fields: dict[str, Any] = plain(dict(filter))
    if _terms(fields, MAX_DEPTH) > MAX_TERMS:
        raise ValueError(f"A filter has at most {MAX_TERMS} terms")
    return _fields(fields)


def _terms(node: Any, levels: int) -> int:
    if not isinstance(node, dict | list):
        return 1
    if levels == 0:
        raise ValueError(f"A filter is nested at most {MAX_DEPTH} levels deep")
    children = node.values() if isinstance(node, dict) else node
    return 1 + sum(_terms(child, levels - 1) for child in children)


def _fields(filter: dict[str, Any]) -> Test:
    """Return a test that all entries pass: conditions on fields, or combinations of filters."""
    tests = [_entry(key, wanted) for key, wanted in filter.items()]
    return lambda value: all(test(value) for test in tests)


def _entry(key: str, wanted: Any) -> Test:
    if key in _LOGIC:
        return _combination(key, wanted)
    if key.startswith("$"):
        raise ValueError(f"Unknown filter operator {key!r}: use $and or $or around fields")
    test = _condition(wanted)
    return lambda value: test(value.get(key) if isinstance(value, dict) else None)


def _combination(key: str, wanted: Any) -> Test:
    if not (isinstance(wanted, list) and wanted and all(isinstance(f, dict) and f for f in wanted)):
        # An empty filter matches everything, which is a mistake inside `$or`.
        raise ValueError(f"{key} takes a list of filters, none of them empty")
    tests = [_fields(each) for each in wanted]
    combine = _LOGIC[key]
    return lambda value: combine(test(value) for test in tests)


def _condition(wanted: Any) -> Test:
    if isinstance(wanted, dict):
        if any(key.startswith("$") for key in wanted):
            tests = [_operator(name, operand) for name, operand in wanted.items()]
            return lambda value: all(test(value) for test in tests)
        inner = [(key, _condition(each)) for key, each in wanted.items()]
        return lambda value: (
            isinstance(value, dict) and all(test(value.get(key)) for key, test in inner)
        )
    if isinstance(wanted, list):
        items = [_condition(each) for each in wanted]
        return lambda value: (
            isinstance(value, list)
            and len(value) == len(items)
            and all(test(each) for test, each in zip(items, value, strict=True))
        )
    return lambda value: bool(value == wanted)


def _operator(name: str, operand: Any) -> Test:
    if name not in _OPERATORS:
        raise ValueError(f"Unknown filter operator {name!r}: use one of {', '.join(_OPERATORS)}")
    compare = _OPERATORS[name]
    return lambda value: compare(value, operand)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(value: Any, operand: Any) -> bool:
        return any(
            isinstance(value, kind) and isinstance(operand, kind) and compare(value, operand)
            for kind in (int | float, str)
        )

    return test


def _contains(value: Any, operand: Any) -> bool:
    wanted = operand if isinstance(operand, list) else [operand]
    return isinstance(value, list) and all(each in value for each in wanted)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
    "$contains": _contains,
}
