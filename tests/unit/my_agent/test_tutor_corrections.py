"""Corrections: merging issues, applying, storing and summarizing them."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from my_agent.tutor.corrections import Correction, Issue, Source, apply, correction, keep, merge
from my_agent.tutor.summary import ADVICE, EXAMPLES, NOTHING, summarize

TEXT = "I has a apple and she go home."


def issue(
    original: str, replacement: str, source: Source = "model", *, text: str = TEXT, **more: Any
) -> Issue:
    """Return an issue at the first occurrence of `original`."""
    start = text.index(original)
    found: Issue = {
        "type": "grammar",
        "start": start,
        "end": start + len(original),
        "original": original,
        "replacement": replacement,
        "message": f"Not {original}.",
        "sources": [source],
    }
    return {**found, **more}  # type: ignore[typeddict-item]


def test_issue_found_by_both_has_both_sources() -> None:
    [found] = merge([issue("has", "have")], [issue("has", "have", "harper", message="Agree!")])
    assert found["sources"] == ["model", "harper"]
    assert found["message"] == "Not has."


def test_first_checker_wins_on_overlap() -> None:
    model = issue("a apple", "an apple")
    assert merge([model], [issue("a ", "an ", "harper"), issue("apple", "pear", "harper")]) == [
        model
    ]


def test_merged_issues_are_in_text_order() -> None:
    merged = merge([issue("go", "goes")], [issue("has", "have", "harper")])
    assert [found["original"] for found in merged] == ["has", "go"]
    assert [found["start"] for found in merged] == [2, 22]
    assert apply(TEXT, merged) == "I have a apple and she goes home."


def test_adjacent_issues_do_not_overlap() -> None:
    assert len(merge([issue("has ", "have ")], [issue("a apple", "an apple", "harper")])) == 2


def test_merge_does_not_change_its_input() -> None:
    model, harper = [issue("has", "have")], [issue("has", "have", "harper")]
    merge(model, harper)
    assert (model, harper) == ([issue("has", "have")], [issue("has", "have", "harper")])


spans = st.tuples(st.integers(0, 30), st.integers(0, 10))
lists = st.lists(spans, max_size=8)


@given(lists, lists)
def test_merged_issues_never_overlap_and_can_be_applied(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"

    def issues(pairs: list[tuple[int, int]], source: Source) -> list[Issue]:
        return [
            {**issue("a", "X", source, text=text), "start": at, "end": at + size}
            for at, size in pairs
        ]

    merged = merge(issues(first, "model"), issues(second, "harper"))
    for one, next_one in pairwise(merged):
        assert one["end"] <= next_one["start"]
    # The text between the issues is unchanged.
    size = len(text) - sum(found["end"] - found["start"] for found in merged)
    assert len(apply(text, merged)) == size + len(merged)
    assert apply(text, merged).count("X") == len(merged)


def test_correction_contains_corrected_text() -> None:
    issues = [issue("has", "have"), issue("a ", "an ", message="An before a vowel.")]
    assert correction("m1", TEXT, issues) == {
        "message_id": "m1",
        "original": TEXT,
        "corrected": "I have an apple and she go home.",
        "issues": issues,
        "explanation": "Not has. An before a vowel.",
        "checked_by": [],
        "degraded": None,
    }
    told = correction("m1", TEXT, issues, "Learn articles.")
    assert told is not None
    assert told["explanation"] == "Learn articles."


@pytest.mark.parametrize("issues", [[], [issue("has", "has")]])
def test_unchanged_text_gets_no_correction(issues: list[Issue]) -> None:
    assert correction("m1", TEXT, issues) is None


def made(message_id: str, *issues: Issue) -> Correction:
    found = correction(message_id, TEXT, list(issues or [issue("has", "have")]))
    assert found is not None
    return found


def test_new_correction_replaces_the_old_one() -> None:
    kept = keep([], [made("m1"), made("m2")])
    again = made("m1", issue("go", "goes"))
    assert keep(kept, [again, made("m3")]) == [again, made("m2"), made("m3")]
    assert keep(kept, []) == kept
    assert kept == [made("m1"), made("m2")]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"message_id": "m1"},
        {**made("m1"), "issues": []},
        {**made("m1"), "message_id": ""},
        {**made("m1"), "more": 1},
        {**made("m1"), "issues": [{**issue("has", "have"), "type": "rudeness"}]},
        {**made("m1"), "issues": [{**issue("has", "have"), "start": -1}]},
        "no correction",
    ],
)
def test_invalid_correction_raises(wrong: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        keep([], [wrong])


def test_summary_counts_most_frequent_type_first() -> None:
    corrections = [
        made("m1", issue("has", "have", type="agreement"), issue("a ", "an ", type="article")),
        made("m2", issue("go", "goes", type="agreement")),
    ]
    summary = summarize(corrections)
    assert (summary["corrections"], summary["issues"]) == (2, 3)
    assert [(each["type"], each["count"]) for each in summary["by_type"]] == [
        ("agreement", 2),
        ("article", 1),
    ]
    assert summary["by_type"][0]["examples"] == [
        {"message_id": "m2", "original": "go", "replacement": "goes", "message": "Not go."},
        {"message_id": "m1", "original": "has", "replacement": "have", "message": "Not has."},
    ]
    assert summary["advice"] == summary["by_type"][0]["advice"] == ADVICE["agreement"]


def test_summary_shows_latest_example_of_each_mistake() -> None:
    words = ["I", "has", "a", "apple", "and", "she"]
    corrections = [made(f"m{n}", issue(word, "X")) for n, word in enumerate([*words, "has"])]
    [summary] = summarize(corrections)["by_type"]
    assert summary["count"] == 7
    assert [each["message_id"] for each in summary["examples"]] == ["m6", "m5", "m4"]
    assert len(summary["examples"]) == EXAMPLES


def test_empty_summary_is_encouraging() -> None:
    assert summarize([]) == {"corrections": 0, "issues": 0, "by_type": [], "advice": NOTHING}
