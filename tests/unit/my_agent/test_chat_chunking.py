"""Passages of documents, citations and quotations."""

import random

import pytest

from my_agent.chat.citations import check, cited
from my_agent.chat.documents.chunking import LENGTH, Passage, chunk, sentences
from my_agent.chat.documents.reading import Document, Section, markdown
from my_agent.chat.documents.words import content_words, fold, stem
from my_agent.chat.extract import ADVICE, LONGEST, PREFACE, extract


def passages(text: str) -> list[str]:
    return [each.text for each in chunk(Document("T", (Section("", text),)))]


def test_each_passage_has_title_and_section() -> None:
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
    assert passages("one\n\ntwo\n \nthree") == ["one\n\ntwo\n \nthree"]


def test_fitting_paragraphs_stay_whole() -> None:
    paragraphs = ["a" * (LENGTH - 10), "b" * 20, "c" * (LENGTH - 30), "d" * 30]
    assert passages("\n\n".join(paragraphs)) == [
        paragraphs[0],
        "\n\n".join(paragraphs[1:3]),
        paragraphs[3],
    ]


def test_long_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(f"Sentence number {number} says little." for number in range(100))
    found = passages(text)
    assert all(each.endswith(".") and len(each) <= LENGTH for each in found)
    assert " ".join(found) == text


def test_chunks_lose_no_text_and_respect_the_limit(rng: random.Random) -> None:
    for _ in range(50):
        letters = "abc .!?'\"”)\n" + " " * rng.randrange(3)
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(5000)))
        text += "x" * rng.choice([0, LENGTH - 1, LENGTH, LENGTH + 1, 3 * LENGTH])
        found = passages(text)
        assert all(0 < len(each) <= LENGTH for each in found)
        assert "".join("".join(found).split()) == "".join(text.split())


def test_text_is_split_into_sentences() -> None:
    assert sentences('One. “Two!” (Three?) "Four." 5.6 and\n- seven') == [
        *("One.", "“Two!”", "(Three?)", '"Four."', "5.6 and", "- seven")
    ]


def test_words_are_folded_and_stemmed() -> None:
    assert fold("Níveis ÀÉ Straße") == "niveis ae strasse"
    assert content_words("Quantos níveis ele tem? Quantos NÍVEIS!") == ["níveis", "NÍVEIS"]
    # A combining accent does not end a word.
    assert content_words("ni\u0301veis") == ["níveis"]
    for one, other in [("towers", "tower"), ("estações", "estação"), ("lights", "lighting")]:
        assert stem(fold(one)) == stem(fold(other))


def test_table_and_code_keep_their_lines() -> None:
    code = "def f(x):\n    if x:\n        return 1\n" * 40
    for text in passages("```python\n" + code + "```"):
        assert "\n        return 1" in text
    rows = "\n".join(f"| part {number} | {number * 7} |" for number in range(120))
    table = f"| Name | Price |\n|---|---|\n{rows}"
    found = chunk(Document("T", (Section("Parts", f"Before.\n\n{table}"),)))
    assert len(found) > 2
    for each in found[2:]:
        assert each.section == "Parts > | Name | Price |"
        assert all(line.startswith("| part") for line in each.text.splitlines())


def test_offsets_and_page_point_into_the_document(rng: random.Random) -> None:
    letters = "abc .\n" + " " * 3
    sections = tuple(
        Section("", "".join(rng.choice(letters) for _ in range(3000)), page) for page in (1, 2)
    )
    document = Document("T", sections)
    found = chunk(document)
    assert {each.page for each in found} == {1, 2}
    assert all(document.text[each.start : each.end] == each.text for each in found)


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
def test_citations_are_the_cited_passages(answer: str, numbers: list[int]) -> None:
    found = cited(answer, PASSAGES)
    assert [each["number"] for each in found] == numbers
    for each in found:
        passage = PASSAGES[each["number"] - 1]
        assert (each["title"], each["section"]) == (passage.title, passage.section)
        assert (each["passage"], each["text"]) == (passage.number, passage.text)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Six [1][9] or [2, 7].", "Six [1] or [2]."),
        ("Nothing [4].", "Nothing."),
        ("Six [99999].\nMore [0] text", "Six.\nMore text"),
        ("`list[7]` and rows[7] x [8]", "`list[7]` and rows x"),
        ("```\na[9] = [8]\n``` [2]", "```\na[9] = [8]\n``` [2]"),
    ],
)
def test_unknown_marks_are_removed_outside_of_code(answer: str, expected: str) -> None:
    assert check(answer, PASSAGES).text == expected


def test_sentences_without_a_source_are_marked() -> None:
    answer = (
        "It was built in 1874 [1]. It has seven hundred visitors. The tower was sold in 1999 [1].\n"
        "It shows white flashes. [2] Are there more? Yes, in 1874."
    )
    found = check(answer, PASSAGES)
    assert [each["text"] for each in found.unsupported] == [
        "It has seven hundred visitors.",
        "The tower was sold in 1999 [1].",
    ]
    assert all(answer[each["start"] : each["end"]] == each["text"] for each in found.unsupported)
    assert check(answer, []).unsupported == []


def test_extract_quotes_best_matching_sentences() -> None:
    answer = extract("How many levels does Skarra have?", PASSAGES)
    assert answer.startswith(PREFACE) and answer.endswith(ADVICE)
    quotes = answer.split("\n\n")[1:-1]
    assert quotes[0] == "“It was built in 1874. It has six levels.” [1]"
    assert "“A wooden tower of three levels.” [3]" in quotes


def test_rare_words_count_more() -> None:
    """The name occurs in every sentence, the levels in only one."""
    told = [
        Passage(1, "Skarra Light", "", "Skarra Light is old. Skarra Light is grey."),
        Passage(2, "Skarra Light", "Tower", "It was built in 1874. There are six levels."),
    ]
    answer = extract("How many levels does Skarra Light have?", told)
    assert answer.split("\n\n")[1] == "“It was built in 1874. There are six levels.” [2]"


def test_best_passage_is_quoted_without_common_words() -> None:
    answer = extract("Quando?", PASSAGES)
    assert answer.split("\n\n")[1] == "“It was built in 1874. It has six levels.” [1]"


def test_quotation_is_short_and_contains_best_sentence() -> None:
    filler = [f"Sentence number {number} says nothing." for number in range(100)]
    text = " ".join([*filler[:50], "The lamp burned paraffin.", *filler[50:]])
    [quote] = extract("What did the lamp burn?", [Passage(1, "T", "", text)]).split("\n\n")[1:-1]
    assert quote.startswith("“The lamp burned paraffin. Sentence number 50")
    assert len(quote) <= LONGEST + len("“” [1]")
    endless = extract("x", [Passage(1, "T", "", "word " * 150)]).split("\n\n")[1]
    assert endless.endswith("word …” [1]") and len(endless) <= LONGEST + len("“ …” [1]")
