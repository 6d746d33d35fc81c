"""What a model sees of the evidence, and how code judges what it proposes."""

from typing import Any

import pytest

from my_agent.diagnosis import briefing
from my_agent.diagnosis.analysis.checks import Searched, Seen, check
from my_agent.diagnosis.analysis.proposal import Proposal
from my_agent.diagnosis.record.fold import initial
from my_agent.diagnosis.record.texts import Found

STATE = {**initial(), "sources": {"s1": {"name": "app"}, "s2": {"name": "db"}}}


def line(number: int, text: str, source: str = "s1") -> Found:
    return Found(source, number, 0, len(text), text)


def seen(quote: str, role: Any = "cause", **more: Any) -> Seen:
    fields = {
        "source": "s1", "start": 0, "end": 9, "kind": "error", "component": "app", "level": "error",
        "stance": "trouble", "when": None,
    }  # fmt: skip
    return Seen(id=quote[:80], role=role, quote=quote, **{**fields, **more})


def proposal(words: str, **more: Any) -> Proposal:
    return Proposal("app", "disk full", words, (), **more)


def outcomes(
    words: str, *lines: Seen, found: Searched | None = None, **more: Any
) -> dict[str, str]:
    return {each.test: each.outcome for each in check(proposal(words, **more), lines, 0, found)}


def test_search_shows_each_kind_of_line_once_with_its_numbers() -> None:
    lines = [line(number, f"took {number * 1.5} ms") for number in range(1, 200)]
    shown = briefing.found([*lines, line(900, "it took ages")], ["took"], STATE, is_all=True)
    assert "Lines with took: 200" in shown
    assert " alike, until line 199" in shown
    assert "1.5 to" in shown
    assert shown.count("\n") < 6
    assert "it took ages" in shown


def test_search_shows_lines_from_all_over_many_kinds() -> None:
    lines = [line(number, f"kind {'x' * number}") for number in range(1, 101)]
    shown = briefing.found(lines, ["kind"], STATE, is_all=False)
    assert "100 and more, of 100 kinds" in shown
    assert "line 1:" in shown
    assert "line 100:" in shown


def test_excerpt_of_a_long_line_has_the_word() -> None:
    text = "a," * 3_000 + "needle" + ",b" * 3_000
    shown = briefing.found([line(1, text)], ["needle"], STATE, is_all=True)
    assert "needle,b" in shown
    assert len(shown) < 2 * briefing.WIDTH


def test_two_independent_lines_are_needed() -> None:
    words = "the disk is full"
    full = seen("write failed: no space left on disk")
    assert outcomes(words, full)["corroboration"] == "unclear"
    assert (
        outcomes(words, full, seen("write failed: no space left on disk", "effect"))[
            "corroboration"
        ]
        == "unclear"
    )
    for other in (
        seen("call to app failed", "effect", source="s2"),
        seen("eviction of app", "effect"),
        seen("/dev/sda 100 %", "context", kind="state", level="", stance="neutral"),
    ):
        assert outcomes(words, full, other)["corroboration"] == "passed", other


@pytest.mark.parametrize(
    "lines",
    [
        [seen("disk full check passed, 12 % used", stance="fine", level="info")],
        [seen("disk statistics written", stance="neutral", level="info")],
        [seen("the network is unreachable")],
        [],
    ],
)
def test_lines_that_say_something_else_are_no_evidence(lines: list[Seen]) -> None:
    found = outcomes("no disk space", *[Seen(**{**_fields(e), "component": ""}) for e in lines])
    assert found["evidence"] == "unclear"


def test_what_says_the_opposite_refutes() -> None:
    fine = seen("disk check passed", stance="fine")
    assert outcomes("the disk is full", fine)["contradiction"] == "failed"
    words = ("passed",)
    full = seen("no space left on disk")
    for expect, test, outcome in (
        ("absent", "contradiction", "failed"),
        ("present", "prediction", "passed"),
    ):
        found = Searched(words, expect, seen("check passed", "context"))  # type: ignore[arg-type]
        assert outcomes("the disk is full", full, found=found)[test] == outcome
    doubt = outcomes("the disk is full", full, seen("writing goes on", "against", stance="neutral"))
    assert (doubt["doubt"], doubt["evidence"]) == ("failed", "passed")


def test_inference_is_never_corroborated() -> None:
    two = (seen("no space left on disk"), seen("call to app failed", "effect", source="s2"))
    assert outcomes("the disk is full", *two, basis="inferred")["corroboration"] == "unclear"


def test_effect_before_its_cause_fails() -> None:
    early = seen("call to app failed", "effect", source="s2", when=0)
    late = seen("no space left on disk", when=10**9)
    assert outcomes("the disk is full", late, early)["order"] == "failed"
    near = seen("no space left on disk", when=10**7)
    assert outcomes("the disk is full", near, early)["order"] == "passed"


def _fields(each: Seen) -> dict[str, Any]:
    return {name: getattr(each, name) for name in Seen.__slots__}
