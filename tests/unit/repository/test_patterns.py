"""Patterns: the steps of each one grow as the text does, whatever the text.

A quadratic pattern holds the interpreter for minutes on a text of 100,000 characters, and all
tenants wait meanwhile.
"""

import re

import pytest

from tests.support import pattern_fuzzer, patterns
from tests.support.pattern_steps import Counter

FOLDERS = ("my_agent/chat",)


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


@pytest.mark.parametrize("expression", [r"\s++x", r"(?<!\s)\s++$", "[^\n]*", "a{1,80}b"])
def test_fuzzer_accepts_linear_patterns(expression: str) -> None:
    how = "match" if expression == r"\s++x" else "search"
    assert pattern_fuzzer.slow(re.compile(expression), how) is None


def test_every_pattern_takes_linear_time() -> None:
    found = [each for each in patterns.patterns() if each.where.startswith(FOLDERS)]
    assert len(found) > 20
    slow = {each.where: pattern_fuzzer.slow(each.pattern, each.how) for each in found}
    assert not {where: text for where, text in slow.items() if text is not None}
