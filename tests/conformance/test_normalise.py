"""The normaliser: which values it replaces, which it keeps, and what counts as a difference."""

from __future__ import annotations

from uuid import uuid4

import pytest

from .normalise import Normaliser, compare, path_matches
from .world import system_assistant


@pytest.fixture
def normalise() -> Normaliser:
    return Normaliser("http://127.0.0.1:8123", ["echo"])


def test_ids_are_numbered_by_first_appearance(normalise: Normaliser) -> None:
    a, b = str(uuid4()), str(uuid4())
    seen = normalise([b, {"of": f"run {a}"}, b, uuid4().hex])
    assert seen == ["<id:1>", {"of": "run <id:2>"}, "<id:1>", "<id:3>"]


def test_swapped_ids_are_a_difference(normalise: Normaliser) -> None:
    a, b = str(uuid4()), str(uuid4())
    assert compare(normalise([a, b, a]), normalise([a, b, b])) == [("$[2]", "<id:1>", "<id:2>")]


def test_ids_as_keys_do_not_depend_on_their_random_order(normalise: Normaliser) -> None:
    for _ in range(20):
        a, b = str(uuid4()), str(uuid4())
        assert normalise([{a: "one", b: "two"}, b]) == [
            {"<id:1>": "one", "<id:2>": "two"},
            "<id:2>",
        ]


def test_system_assistants_keep_their_name(normalise: Normaliser) -> None:
    assert normalise(str(system_assistant("echo"))) == "<assistant:echo>"


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("2026-11-21T21:18:00.123456+00:00", "<time>"),
        ("at 2026-11-21 21:18:00Z sharp", "at <time> sharp"),
        ("1763759880123-0", "<stream-id>"),
        ("1763759880123-0.2", "<stream-id>"),
        ("http://127.0.0.1:8123/runs", "<url>/runs"),
        ("12-3", "12-3"),
        ("", ""),
    ],
)
def test_texts_are_normalised(normalise: Normaliser, raw: str, plain: str) -> None:
    assert normalise(raw) == plain


def test_clock_values_are_replaced_but_none_is_kept(normalise: Normaliser) -> None:
    assert normalise({"timestamp": 1763759880123}) == {"timestamp": "<clock>"}
    assert normalise({"timestamp": None}) == {"timestamp": None}
    assert normalise({"limit": 10}) == {"limit": 10}


def test_compare_finds_missing_keys_items_and_types() -> None:
    assert compare({"a": 1, "b": [1]}, {"a": True, "b": [1, 2], "c": 0}) == [
        ("$.a", 1, True),
        ("$.b[1]", "<absent>", 2),
        ("$.c", "<absent>", 0),
    ]
    assert compare({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


def test_patterns_treat_brackets_as_text() -> None:
    assert path_matches("$.runs[0].status", "$.runs[0].*")
    assert path_matches("$.runs[10].status", "$.runs[*].status")
    assert not path_matches("$.runs0.status", "$.runs[0].status")
