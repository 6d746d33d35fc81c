"""Names and numbers of listed items."""

import pytest

from my_agent.understanding.names import Listed, numbers, resolve

LISTED = [
    Listed("nova", "Nova GmbH", 1, "nova.de"),
    Listed("novabit", "Novabit", 2, "novabit.com"),
    Listed("acme", "Acme Corp", 3, "acme.com"),
    Listed("studio", "Studio 54", 4, "studio54.com"),
    Listed("three", "3M", 5),
    Listed("six", "Candidate 06", 14),
    Listed("partner", "Vogel & Partner", 7),
    Listed("logistik", "Vogel Logistik", 8),
    Listed("gone", "Gone Ltd"),
]
NAMES = [each.name for each in LISTED]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,3", [1, 3]),
        ("1, 3 and 5-7", [1, 3, 5, 6, 7]),
        ("2-4", [2, 3, 4]),
        ("5 – 7", [5, 6, 7]),
        ("2 to 4", [2, 3, 4]),
        ("2 bis 4", [2, 3, 4]),
        ("2 a 4", [2, 3, 4]),
        ("2 até 4", [2, 3, 4]),
        ("#3 and 3", [3]),
        ("2nd, 3rd", [2, 3]),
        ("4. und 5.", [4, 5]),
        ("4ª e 5ª", [4, 5]),
    ],
)
def test_numbers_and_ranges(text: str, found: list[int]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the second", [2]),
        ("das dritte", [3]),
        ("erste und dritte", [1, 3]),
        ("a terceira", [3]),
        ("first", [1]),
        ("first two", [1, 2]),
        ("the first 3", [1, 2, 3]),
        ("the first and 3", [3, 1]),
        ("top three", [1, 2, 3]),
        ("die ersten zwei", [1, 2]),
        ("os primeiros dois", [1, 2]),
        ("the best couple", [1, 2]),
    ],
)
def test_ordinals_and_the_first_ones(text: str, found: list[int]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    "text", ["0", "10%", "3.5", "1.000", "12345", "x3", "Studio 54", "studio  54", "3M", "twenty"]
)
def test_what_looks_like_a_number_is_none(text: str) -> None:
    assert numbers(text, NAMES) == []


@pytest.mark.parametrize("text", ["1,000", "all 1,200", "1,000,000"])
def test_thousands_are_no_list(text: str) -> None:
    assert numbers(text) == []


@pytest.mark.parametrize("text", ["why is 3 first", "3 first"])
def test_first_behind_a_number_says_when(text: str) -> None:
    assert numbers(text) == [3]


@pytest.mark.parametrize(
    ("text", "found"), [("Studio 54 and 2", [2]), ("3M and 3", [3]), ("Candidate 06, 6", [6])]
)
def test_number_within_a_name_is_none_but_another_one_counts(text: str, found: list[int]) -> None:
    assert numbers(text, NAMES) == found


def test_wide_range_is_not_counted_out() -> None:
    assert numbers("1-5000") == [1, 5000]


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("Candidate 06", "six"),
        ("Studio 54", "studio"),
        ("3M", "three"),
        ("Nova", "nova"),
        ("nova gmbh", "nova"),
        ("NOVABIT", "novabit"),
        ("nova.de", "nova"),
        ("Acme", "acme"),
        ("acme.com", "acme"),
        ("ACME Corporation", "acme"),
        ("the Acme company", "acme"),
        ("Vogel & Partner", "partner"),
        ("Partner", "partner"),
        ("Gone", "gone"),
        ("Novabti", "novabit"),
        ("Studoi 54", "studio"),
    ],
)
def test_name_is_found_by_its_words_or_spelling(said: str, key: str) -> None:
    found = resolve([said], f"keep {said}", LISTED)
    assert (found.keys, found.unsaid, found.is_whole) == ([key], [], True)


@pytest.mark.parametrize("number", [6, 14, "6", "14"])
def test_number_within_a_name_names_nobody_for_sure(number: int | str) -> None:
    found = resolve([number], "keep Candidate 06", LISTED)
    assert found.keys == found.unsaid


@pytest.mark.parametrize("target", ["the", "Corp", "&", "Nope", "99", 99, 0, -1, "", "  "])
def test_words_that_name_nobody_are_unknown(target: int | str) -> None:
    found = resolve([target], f"keep {target}", LISTED)
    assert (found.keys, found.unknown, found.is_whole) == ([], [str(target)], False)


@pytest.mark.parametrize("target", ["Vogel", "Vogel Logistik", "Vogel & Partner"])
def test_two_candidates_are_none(target: str) -> None:
    found = resolve([target], "keep Vogel", LISTED)
    assert found.keys == found.unsaid
    assert not found.is_whole or found.unsaid


def test_two_candidates_are_told() -> None:
    found = resolve(["Vogel"], "keep Vogel", LISTED)
    assert found.unclear == {"Vogel": ["Vogel & Partner", "Vogel Logistik"]}


@pytest.mark.parametrize(
    ("target", "quote"),
    [("Novabit", "keep Nova"), ("Nova GmbH", "keep Novabit"), ("Nova", "keep Novabit")],
)
def test_name_that_begins_alike_is_another(target: str, quote: str) -> None:
    found = resolve([target], quote, LISTED)
    assert found.keys == found.unsaid


def test_two_items_of_one_name_are_told() -> None:
    twins = [Listed("a", "Twin", 1), Listed("b", "Twin", 2)]
    assert resolve(["Twin"], "keep Twin", twins).unclear == {"Twin": ["Twin", "Twin"]}
    assert resolve([2], "keep 2", twins).keys == ["b"]


@pytest.mark.parametrize("target", [2, "Novabit"])
def test_item_that_only_the_reader_names_is_unsaid(target: int | str) -> None:
    found = resolve([target], "keep the last one", LISTED)
    assert (found.keys, found.unsaid) == (["novabit"], ["novabit"])


def test_each_item_is_named_once_and_in_order() -> None:
    found = resolve([3, "Acme", "Nova", 3], "3, Acme, Nova", LISTED)
    assert found.keys == ["acme", "nova"]
