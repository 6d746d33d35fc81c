"""Patterns: the steps of each one grow as the text does, whatever the text.

A quadratic pattern holds the interpreter for minutes on a text of 100,000 characters, and all
tenants wait meanwhile.
"""

import re

import pytest

from tests.support import pattern_fuzzer, patterns
from tests.support.pattern_steps import Counter

# Patterns of texts of at most 1,000 characters may take the square of them, some milliseconds: the
# tutor checks pieces (`turns.PIECE`), and a worker reads longer messages to the ICP finder
# (`nodes/ingest.py`).
SHORT_TEXTS = (
    *("my_agent/tutor/checks.py", "my_agent/tutor/grammar.py", "my_agent/tutor/practice.py"),
    "my_agent/tutor/rules/",
)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("(a|ab)(c|bcd)(d*)", "abcd abcdd acd"),
        (r"(?P<tag>\w)x+(?P=tag)", "axxa bxxc axb"),
        (r"(?<=[.!?])\s+|\n", "One. Two!\n\nThree \n?  x"),
        (r"(?<!a)b++(?!c)", "abb bbc bbd bb"),
        (r"(?>a+)b|a*?c", "aab aac aad"),
        (r"\b\w*?\d{2,3}?\b", "a12 b1234 c1 12"),
        (r"^x?(?:y?z?)*$", "yzyz\nxq\n\nx"),
        (r"(?i:A)b(?:[^\W\d_]+(?:['-][^\W\d_]+)*)?", "aBx abx-y Abé'z ab"),
        (r"(a)?(?:b\1)+", "ababab bb abba"),
    ],
)
@pytest.mark.parametrize("flags", [0, re.IGNORECASE | re.MULTILINE])
def test_counter_matches_as_re_does(expression: str, text: str, flags: int) -> None:
    pattern = re.compile(expression, flags)
    assert Counter(pattern).find_all(text) == [each.span() for each in pattern.finditer(text)]
    full = pattern.fullmatch(text)
    assert Counter(pattern).match(text, full=True) == (full.end() if full else -1)


@pytest.mark.parametrize(
    ("expression", "how"),
    [
        (r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*", "fullmatch"),
        (r"[ \t]*(\|.*\|)[ \t]*\n[ \t]*\|?[ \t:|-]*-[ \t:|-]*(?:\n|$)", "match"),
        (r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", "match"),
        (r"\s+$", "search"),
        (r"<b>.*?</b>", "search"),
        (r"(?:a|b|ab)+$", "match"),
        (r"(?:\w+\s?)+$", "match"),
    ],
)
def test_fuzzer_finds_slow_patterns(expression: str, how: str) -> None:
    assert pattern_fuzzer.slow(re.compile(expression), how) is not None


@pytest.mark.parametrize(
    ("expression", "is_slow"), [(r"\s+$", False), (r"\s*\s*\s*$", True), (r"(?:a|b|ab)+$", True)]
)
def test_fuzzer_accepts_squares_of_short_texts_only(expression: str, is_slow: bool) -> None:
    found = pattern_fuzzer.slow(re.compile(expression), "search", square=True)
    assert (found is not None) == is_slow
    assert pattern_fuzzer.slow(re.compile(expression), "search") is not None


@pytest.mark.parametrize("expression", [r"\s++x", r"(?<!\s)\s++$", "[^\n]*", "a{1,80}b"])
def test_fuzzer_accepts_linear_patterns(expression: str) -> None:
    how = "match" if expression == r"\s++x" else "search"
    assert pattern_fuzzer.slow(re.compile(expression), how) is None


# Minutes beside other tests on a slow machine.
@pytest.mark.timeout(1200)
def test_every_pattern_takes_linear_time() -> None:
    found = patterns.patterns()
    assert len(found) > 450
    slow = {
        each.where: pattern_fuzzer.slow(each.pattern, each.how, square=_is_short(each.where))
        for each in found
    }
    assert not {where: text for where, text in slow.items() if text is not None}


def _is_short(where: str) -> bool:
    return where.startswith(SHORT_TEXTS)
