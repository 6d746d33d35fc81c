"""The order of passages: words, meaning, identifiers, diversity, and the relevance floor."""

import pytest

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.ranking import exact_words, rank, terms
from my_agent.chat.small_talk import is_small_talk

ROWS = {
    number: Passage(1, f"Bridge {number}", "", f"Number A24{number:02} at {name}.", f"d{number}")
    for number, name in enumerate(
        ["Tolv", "Skarra", "Brennick", "Varn", "Holm", "Lund", "Vik", "Ness"]
    )
}
ALIKE = dict.fromkeys(ROWS, 3.3)


def test_identifier_beats_nearer_passages() -> None:
    nearness = {**ALIKE, 7: 1.7}
    assert rank("Which bridge has inventory number A2407?", ROWS, nearness, 6).ids[0] == 7


def test_both_sides_of_a_comparison_come_first() -> None:
    found = rank("Is the number of Varn higher than that of Vik?", ROWS, ALIKE, 6).ids
    assert set(found[:2]) == {3, 6}


def test_unknown_code_finds_nothing_and_unknown_name_nothing_sure() -> None:
    assert rank("Which bridge has number K9999?", ROWS, ALIKE, 6).ids == []
    unknown = rank("What is the number of Xanadu?", ROWS, ALIKE, 6)
    assert unknown.ids and not unknown.sure
    known = rank("What is the number of Varn?", ROWS, ALIKE, 6)
    assert known.ids[0] == 3 and known.sure
    # The code of the question is not that of any passage, though the name is.
    assert not rank("Does Varn have number K9999?", ROWS, ALIKE, 6).sure


def test_parts_of_a_code_elsewhere_are_not_the_code() -> None:
    manual = {
        1: Passage(1, "Pump", "Error codes", "E-04: the membrane is torn. E 27: too hot.", "a"),
        2: Passage(2, "Pump", "Prices", "The fan costs 99 euros.", "a"),
    }
    nearness = dict.fromkeys(manual, 2.2)
    assert rank("What does error E-99 mean?", manual, nearness, 6).ids == []
    assert rank("What does error E-27 mean?", manual, nearness, 6).ids[0] == 1
    assert rank("What does error e04 mean?", manual, nearness, 6).ids[0] == 1


def test_far_passages_without_a_word_are_irrelevant() -> None:
    assert rank("who won the cup", ROWS, dict.fromkeys(ROWS, 0.5), 6).ids == []
    assert rank("who won the cup", ROWS, dict.fromkeys(ROWS, 4.4), 6).ids != []
    assert rank("", {}, {}, 6).ids == []


def test_equal_sentences_of_two_documents_both_stay() -> None:
    same = {
        1: Passage(1, "Plan A", "", "It is insured.", "a"),
        2: Passage(1, "Plan B", "", "It is insured.", "b"),
    }
    assert set(rank("Is Plan A or Plan B insured?", same, {1: 4.4, 2: 4.4}, 6).ids) == {1, 2}


def test_copies_do_not_fill_the_list() -> None:
    copies = {
        number: Passage(1, f"Copy {number}", "", "The lamp burned paraffin.", f"d{number}")
        for number in range(8)
    }
    copies[8] = Passage(1, "Log", "", "The lamp of the tower had a clock.", "log")
    nearness = {**dict.fromkeys(range(8), 3.9), 8: 3.3}
    assert 8 in rank("what did the lamp burn", copies, nearness, 3).ids


def test_unsure_result_has_the_nearest_passages_too() -> None:
    """Ordinary words that many passages share must not push out the passage that is meant."""
    rules = {
        number: Passage(1, "Rules", "", f"What happens when rule {number} is broken.", "a")
        for number in range(8)
    }
    rules[8] = Passage(1, "Limits", "", "Above 600 requests a minute the answer is 429.", "a")
    nearness = {**dict.fromkeys(range(8), 0.5), 8: 2.5}
    found = rank("What happens if it is called a lot?", rules, nearness, 6)
    assert not found.sure
    assert 8 in found.ids[:2]


def test_terms_are_told_apart() -> None:
    found = terms("Which bridge has A-2408, and is Farol Velho near?")
    assert found.identifiers == {"a", "2408"}
    assert found.names == {"farol", "velh"} and "bridg" in found.others
    assert exact_words("Which bridge has B17 near Tolv?") == "B17 Tolv"


@pytest.mark.parametrize(
    "text",
    [
        *("Thanks!", "ok, thank you so much", "Olá!", "Muito obrigado", "Never mind", "stop"),
        *("not what I meant", "That's not it.", "wrong", "Não era isso que eu queria"),
    ],
)
def test_small_talk_is_recognized(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, and the budget?",
        "stop the pump",
        "hello world program",
        "",
        "good harbour",
        "no smoking",
    ],
)
def test_questions_are_no_small_talk(text: str) -> None:
    assert not is_small_talk(text)
