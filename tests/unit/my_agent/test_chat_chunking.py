"""Documents to passages, passages to citations and quotations, lists to one list."""

import random

import pytest

from my_agent.chat.citations import cited
from my_agent.chat.documents.chunking import LENGTH, Passage, chunk, sentences
from my_agent.chat.documents.reading import Document, Section, markdown
from my_agent.chat.documents.search import fuse
from my_agent.chat.documents.words import content_words, fold, stem
from my_agent.chat.extract import ADVICE, LONGEST, PREFACE, extract


def passages(text: str) -> list[str]:
    return [each.text for each in chunk(Document("T", (Section("", text),)))]


def test_titles_and_sections_go_with_each_passage() -> None:
    page = markdown("# Light\nintro\n## Tower\nstone\n### Stairs\nmany\n## Lamp\nbright", "page")
    assert [(each.number, each.title, each.section, each.text) for each in chunk(page)] == [
        (1, "Light", "", "intro"),
        (2, "Light", "Tower", "stone"),
        (3, "Light", "Tower > Stairs", "many"),
        (4, "Light", "Lamp", "bright"),
    ]
    assert chunk(page)[2].in_context == "Light > Tower > Stairs\nmany"
    assert chunk(page)[0].in_context == "Light\nintro"


def test_short_paragraphs_share_a_passage() -> None:
    assert passages("one\n\ntwo\n \nthree") == ["one\n\ntwo\n\nthree"]


def test_paragraphs_stay_whole_where_they_fit() -> None:
    paragraphs = ["a" * (LENGTH - 10), "b" * 20, "c" * (LENGTH - 30), "d" * 30]
    assert passages("\n\n".join(paragraphs)) == [
        paragraphs[0],
        "\n\n".join(paragraphs[1:3]),
        paragraphs[3],
    ]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(f"Sentence number {number} says little." for number in range(100))
    found = passages(text)
    assert all(each.endswith(".") and len(each) <= LENGTH for each in found)
    assert " ".join(found) == text


def test_nothing_is_lost_and_nothing_too_long(rng: random.Random) -> None:
    for _ in range(50):
        letters = "abc .!?'\"”)\n" + " " * rng.randrange(3)
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(5000)))
        text += "x" * rng.choice([0, LENGTH - 1, LENGTH, LENGTH + 1, 3 * LENGTH])
        found = passages(text)
        assert all(0 < len(each) <= LENGTH for each in found)
        assert "".join("".join(found).split()) == "".join(text.split())


def test_sentences() -> None:
    assert sentences('One. “Two!” (Three?) "Four." 5.6 and\n- seven') == [
        *("One.", "“Two!”", "(Three?)", '"Four."', "5.6 and", "- seven")
    ]


def test_words_are_compared_without_accents_and_endings() -> None:
    assert fold("Níveis ÀÉ Straße") == "niveis ae strasse"
    assert content_words("Quantos níveis ele tem? Quantos NÍVEIS!") == ["níveis", "NÍVEIS"]
    # An accent of its own does not end a word.
    assert content_words("ni\u0301veis") == ["níveis"]
    for one, other in [("towers", "tower"), ("estações", "estação"), ("lights", "lighting")]:
        assert stem(fold(one)) == stem(fold(other))


def test_fusion_puts_first_what_both_lists_have() -> None:
    assert fuse([1, 2], [3, 2, 4]) == [2, 3, 4, 1]
    # Meaning counts more than words, place for place.
    assert fuse([1, 2], [2, 1]) == [2, 1]
    assert fuse([1], [2]) == [2, 1]
    # What is first by words is above what is far down by meaning.
    assert fuse([9], list(range(30)))[:4] == [0, 9, 1, 2]
    assert fuse([99], list(range(30))).index(99) < 8


@pytest.mark.parametrize("one", [[], [7, 8]])
def test_fusion_of_one_list_is_that_list(one: list[int]) -> None:
    assert fuse([], one) == fuse(one, []) == fuse(one, one) == one


PASSAGES = [
    Passage(1, "Skarra Light", "Tower", "It was built in 1874. It has six levels."),
    Passage(2, "Skarra Light", "Lamp", "It shows white flashes."),
    Passage(1, "Brennick Light", "Tower", "A wooden tower of three levels."),
]


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("Six [1].", [1]),
        ("Six [1][3] or [1, 2].", [1, 2, 3]),
        ("Six [3]; then [1].", [1, 3]),
        ("None.", []),
        ("Nothing has [0], [4] or [x], and [999999999999] neither.", []),
    ],
)
def test_citations_are_the_passages_that_an_answer_names(answer: str, numbers: list[int]) -> None:
    found = cited(answer, PASSAGES)
    assert [each["number"] for each in found] == numbers
    for each in found:
        passage = PASSAGES[each["number"] - 1]
        assert (each["title"], each["section"]) == (passage.title, passage.section)
        assert (each["passage"], each["text"]) == (passage.number, passage.text)


def test_an_extract_quotes_the_sentences_that_say_most() -> None:
    answer = extract("How many levels does Skarra have?", PASSAGES)
    assert answer.startswith(PREFACE) and answer.endswith(ADVICE)
    quotes = answer.split("\n\n")[1:-1]
    assert quotes[0] == "“It was built in 1874. It has six levels.” [1]"
    assert "“A wooden tower of three levels.” [3]" in quotes


def test_what_few_passages_say_counts_more() -> None:
    """The name is in every sentence, the levels in one."""
    told = [
        Passage(1, "Skarra Light", "", "Skarra Light is old. Skarra Light is grey."),
        Passage(2, "Skarra Light", "Tower", "It was built in 1874. There are six levels."),
    ]
    answer = extract("How many levels does Skarra Light have?", told)
    assert answer.split("\n\n")[1] == "“It was built in 1874. There are six levels.” [2]"


def test_without_a_common_word_the_best_passage_is_quoted() -> None:
    answer = extract("Quando?", PASSAGES)
    assert answer.split("\n\n")[1] == "“It was built in 1874. It has six levels.” [1]"


def test_a_quotation_is_short_and_has_the_sentence_that_says_most() -> None:
    filler = [f"Sentence number {number} says nothing." for number in range(100)]
    text = " ".join([*filler[:50], "The lamp burned paraffin.", *filler[50:]])
    [quote] = extract("What did the lamp burn?", [Passage(1, "T", "", text)]).split("\n\n")[1:-1]
    assert quote.startswith("“The lamp burned paraffin. Sentence number 50")
    assert len(quote) <= LONGEST + len("“” [1]")
    endless = extract("x", [Passage(1, "T", "", "word " * 150)]).split("\n\n")[1]
    assert endless.endswith("word …” [1]") and len(endless) <= LONGEST + len("“ …” [1]")
