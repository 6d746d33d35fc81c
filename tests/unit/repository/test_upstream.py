"""The run of upstream's tests tells what is new from what is known, and each known failure has a reason."""

import json
from pathlib import Path

from tests.upstream import suites
from tests.upstream.__main__ import problems

KNOWN = {"tests.test_a.*": "Why.", "sometimes tests.test_b.test_race": "Why."}


def test_known_failures_are_allowed_and_must_occur() -> None:
    known = {"tests.test_a.test_x": "said"}
    assert list(problems(known, KNOWN, is_whole=True)) == []
    new = {**known, "tests.test_c.test_y": "boom", "tests.test_b.test_race": "late"}
    assert list(problems(new, KNOWN, is_whole=True)) == ["not expected: tests.test_c.test_y: boom"]
    assert list(problems({}, KNOWN, is_whole=True)) == [
        "expected to fail, and does not: tests.test_a.*"
    ]
    assert list(problems({}, KNOWN, is_whole=False)) == []


def test_each_known_failure_is_of_a_suite_and_has_a_reason() -> None:
    listed = json.loads((Path(suites.__file__).parent / "expected.json").read_text())
    assert listed.keys() <= {each.package for each in suites.SUITES}
    for failures in listed.values():
        assert all(reason.endswith(".") for reason in failures.values())


def test_every_suite_is_locked() -> None:
    assert all(suites.locked(each.package)[0].isdigit() for each in suites.SUITES)
