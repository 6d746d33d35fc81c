"""The tutor's checks without a model: their figures on the corpus, and what they leave alone."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import tutor as bench
from bench.learners.corpus import Edit, parse, right, smallest, wrong
from my_agent.tutor import checks, rules
from my_agent.tutor.corrections import apply


@pytest.fixture(scope="module")
def measured() -> dict[str, bench.Figures]:
    return bench.parts(checks.check)


@pytest.mark.parametrize("part", ["in view", "held out", "all"])
def test_figures_are_within_their_bounds(measured: dict[str, bench.Figures], part: str) -> None:
    figures = measured[part]
    assert figures.precision >= 0.95, figures.bad
    assert figures.recall >= 0.6
    assert figures.changed_share <= 0.01, figures.changed


def test_corpus_is_large_and_valid() -> None:
    assert len(wrong()) >= 300
    assert len(right()) >= 200
    assert all(sentence.mistakes for sentence in wrong())
    assert not any(sentence.mistakes for sentence in right())
    texts = [sentence.text for sentence in (*wrong(), *right())]
    assert len(set(texts)) == len(texts)
    assert not any(sign in text for text in texts for sign in "{}|")


def test_equal_changes_are_equal_however_they_are_cut() -> None:
    [(_, remedies)] = parse("He go{| to|preposition} home.").edits()
    assert smallest("He go home.", Edit(3, 5, "go to")) in remedies
    [(_, remedies)] = parse("She {don't|doesn't/does not|agreement} go.").edits()
    assert smallest("She don't go.", Edit(0, 9, "She does not")) in remedies
    assert smallest("She don't go.", Edit(4, 9, "didn't")) not in remedies


def test_measure_counts_bad_edits_and_changed_sentences() -> None:
    def check(text: str) -> list[object]:
        issue = {"start": 0, "end": 2, "replacement": "We", "original": text[:2], "message": ""}
        return [issue]

    figures = bench.measure(check, [parse("He {go|goes|agreement}.")], [parse("He goes.")])  # type: ignore[arg-type]
    assert (figures.precision, figures.recall, figures.changed_share) == (0, 0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "are you going?",
        "Praça da Sé",
        "I live near Praça da Sé and Rua do Ouro.",
        "She said, “he go there every day.”",
        'What is wrong with "I has a apple"?',
        "My favourite poem is «eu não sei».",
        "Write to ana.go@example.com or www.they-goes.example.",
        "I suggest that he go home.",
        "Let it work for a while.",
        "If I were rich, I would travel.",
        "I suggest he go.",
        "Do you know where the man is going?",
        "I wonder how my friends are.",
        "In Python `code they goes` runs.",
        "Do it now!",
        "I think we met last year.",
    ],
)
def test_names_quotes_and_correct_english_are_left_alone(text: str) -> None:
    assert checks.check(text) == []


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("Where you are going?", "Where are you going?"),
        ("Yesterday I go to Praça da Sé.", "Yesterday I went to Praça da Sé."),
        ("I am agree.", "I agree."),
        (
            "Do you know where is the best restaurant in Lisbon?",
            "Do you know where the best restaurant in Lisbon is?",
        ),
        ("In brazil the people speak portuguese.", "In Brazil the people speak Portuguese."),
        ("He name is Rui.", "His name is Rui."),
        ("The life is beautiful.", "Life is beautiful."),
    ],
)
def test_rules_correct_what_harper_does_not(text: str, corrected: str) -> None:
    assert apply(text, checks.check(text)) == corrected


WORDS = sorted({word for each in (*wrong(), *right()) for word in each.text.split()})


@given(
    st.lists(st.sampled_from([*WORDS, "\n", "?", "“", '"', "`", "ſ", "İ", "_", "1st"]), max_size=30)
)
def test_any_words_get_issues_that_can_be_applied(words: list[str]) -> None:
    text = " ".join(words)
    issues = rules.check(text)
    assert all(text[each["start"] : each["end"]] == each["original"] for each in issues)
    assert all(one["end"] <= other["start"] for one, other in pairwise(issues))
    apply(text, issues)


def test_long_message_is_checked_quickly(benchmark_clock: SimpleNamespace) -> None:
    text = "He go to the market yesterday and buyed a lots of apple. " * 17
    checks.check(text)
    assert benchmark_clock.cpu(lambda: checks.check(text)) < 1.0


@pytest.fixture
def benchmark_clock() -> SimpleNamespace:
    import time

    def cpu(work: object) -> float:
        began = time.thread_time()
        work()  # type: ignore[operator]
        return time.thread_time() - began

    return SimpleNamespace(cpu=cpu)
