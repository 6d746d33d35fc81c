"""Quotes stand in their message, and the sentence and clause around them."""

import pytest

from my_agent.understanding import quotes

MESSAGE = "Yes, go. But not 4, please! Is www.acme.com free? ok"


@pytest.mark.parametrize(
    ("quote", "message", "stands"),
    [
        ("reject 3", "please reject 3 now", "reject 3"),
        ("Reject  3", "please reject 3 now", "reject 3"),
        ("a b", "x a\n\t b", "a\n\t b"),
        ("don't", "please don’t", "don’t"),
        ("“go”", 'he said „go"', '„go"'),
        ("acme.com", "we are ACME.com", "ACME.com"),
        ("a\N{NO-BREAK SPACE}b", "a b", "a b"),
        ("1+1", "is 1+1 two", "1+1"),
        ("丰富", "请丰富所有公司", "丰富"),
    ],
)
def test_quote_is_found_in_any_case_and_spacing(quote: str, message: str, stands: str) -> None:
    span = quotes.find(quote, message)
    assert span is not None
    assert message[slice(*span)] == stands


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        ("", "anything"),
        (" \n", "anything"),
        ("reject 4", "reject 3"),
        ("a.b", "axb"),
        ("reject the 3", "reject 3"),
    ],
)
def test_other_words_are_no_quote(quote: str, message: str) -> None:
    assert quotes.find(quote, message) is None


@pytest.mark.parametrize(
    ("quote", "message"), [("no", "I know"), ("yes", "yesterday"), ("3", "13"), ("go", "cargo.")]
)
def test_part_of_a_word_is_no_quote(quote: str, message: str) -> None:
    assert quotes.find(quote, message) is None


def test_whole_word_is_found_behind_a_part_of_one() -> None:
    assert quotes.find("no", "I know, no") == (8, 10)


@pytest.mark.parametrize(
    ("quote", "sentence", "clause"),
    [
        ("Yes", "Yes, go.", "Yes"),
        ("go", "Yes, go.", "go"),
        ("4", "But not 4, please!", "not 4"),
        ("acme.com", "Is www.acme.com free?", "Is www.acme.com free"),
        ("ok", "ok", "ok"),
    ],
)
def test_sentence_and_clause_around_a_quote(quote: str, sentence: str, clause: str) -> None:
    span = quotes.find(quote, MESSAGE)
    if quote == "acme.com":
        span = (MESSAGE.index("acme.com"), MESSAGE.index("acme.com") + 8)
    assert span is not None
    assert quotes.sentence(span, MESSAGE) == sentence
    assert quotes.clause(span, MESSAGE).removeprefix("But").strip() == clause


@pytest.mark.parametrize("word", ["but", "aber", "mas"])
def test_clause_ends_before_a_word_of_contrast(word: str) -> None:
    message = f"food {word} not hotels"
    assert quotes.clause((0, 4), message) == "food"


@pytest.mark.parametrize("message", ["食品。不要酒店", "food\nno hotels", "food… no hotels"])
def test_sentence_ends_at_signs_of_other_scripts_and_lines(message: str) -> None:
    assert quotes.sentence((0, 1), message).rstrip("。\n…") in ("食品", "food")


def test_parts_that_overlap_are_blanked_once_and_offsets_stay() -> None:
    assert quotes.blanked("reject three moons", [(0, 6), (0, 12)]) == " " * 12 + " moons"
