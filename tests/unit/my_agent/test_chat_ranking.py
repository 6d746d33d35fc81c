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
ALIKE = dict.fromkeys(ROWS, 0.86)


def test_identifier_beats_nearer_passages() -> None:
    nearness = {**ALIKE, 7: 0.80}
    assert rank("Which bridge has inventory number A2407?", ROWS, nearness, 6)[0] == 7


def test_both_sides_of_a_comparison_come_first() -> None:
    found = rank("Is the number of Varn higher than that of Vik?", ROWS, ALIKE, 6)
    assert set(found[:2]) == {3, 6}


@pytest.mark.parametrize(
    "question", ["Which bridge has number K9999?", "What is the number of Xanadu?"]
)
def test_unknown_code_or_name_finds_nothing(question: str) -> None:
    assert rank(question, ROWS, ALIKE, 6) == []


def test_far_passages_without_a_word_are_irrelevant() -> None:
    assert rank("who won the cup", ROWS, dict.fromkeys(ROWS, 0.78), 6) == []
    assert rank("who won the cup", ROWS, dict.fromkeys(ROWS, 0.90), 6) != []
    assert rank("", {}, {}, 6) == []


def test_equal_sentences_of_two_documents_both_stay() -> None:
    same = {
        1: Passage(1, "Plan A", "", "It is insured.", "a"),
        2: Passage(1, "Plan B", "", "It is insured.", "b"),
    }
    assert set(rank("Is Plan A or Plan B insured?", same, {1: 0.9, 2: 0.9}, 6)) == {1, 2}


def test_copies_do_not_fill_the_list() -> None:
    copies = {
        number: Passage(1, f"Copy {number}", "", "The lamp burned paraffin.", f"d{number}")
        for number in range(8)
    }
    copies[8] = Passage(1, "Log", "", "The lamp of the tower had a clock.", "log")
    nearness = {**dict.fromkeys(range(8), 0.88), 8: 0.86}
    assert 8 in rank("what did the lamp burn", copies, nearness, 3)


def test_terms_are_told_apart() -> None:
    found = terms("Which bridge has A-2408, and is Farol Velho near?")
    assert found.identifiers == {"a", "2408"}
    assert found.names == {"farol", "velh"} and "bridg" in found.others
    assert exact_words("Which bridge has B17 near Tolv?") == "B17 Tolv"


@pytest.mark.parametrize("text", ["Thanks!", "ok, thank you so much", "Olá!", "Muito obrigado"])
def test_small_talk_is_recognized(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text", ["Thanks, and the budget?", "hello world program", "", "good harbour"]
)
def test_questions_are_no_small_talk(text: str) -> None:
    assert not is_small_talk(text)
