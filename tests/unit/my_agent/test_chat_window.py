"""The window of a conversation, and references of follow-up questions."""

import time

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from my_agent.chat.reference import LONGEST, resolve, topic
from my_agent.chat.window import PAIRS, before, question, window


def talk(pairs: int) -> list[AnyMessage]:
    """Return this many answered questions and an unanswered one."""
    said: list[AnyMessage] = []
    for number in range(pairs):
        said += [HumanMessage(f"q{number}"), AIMessage(f"a{number}")]
    return [*said, HumanMessage("now")]


def texts(messages: list[AnyMessage]) -> list[str]:
    return [str(message.text) for message in messages]


@pytest.mark.parametrize("pairs", [0, 1, PAIRS - 1, PAIRS])
def test_short_conversation_is_not_cut(pairs: int) -> None:
    assert window(talk(pairs)) == talk(pairs)


@pytest.mark.parametrize("pairs", [PAIRS + 1, 200])
def test_long_conversation_is_cut_to_twenty_pairs(pairs: int) -> None:
    read = texts(window(talk(pairs)))
    assert len(read) == 2 * PAIRS + 1
    assert (read[0], read[-2:]) == (f"q{pairs - PAIRS}", [f"a{pairs - 1}", "now"])


def test_window_does_not_change_the_conversation() -> None:
    said = talk(30)
    window(said)
    assert said == talk(30)


def test_answers_stay_with_their_question() -> None:
    said: list[AnyMessage] = [
        SystemMessage("s"),
        HumanMessage("unanswered"),
        HumanMessage("q"),
        AIMessage("calls"),
        ToolMessage("t", tool_call_id="1"),
        AIMessage("a"),
        HumanMessage("now"),
    ]
    assert texts(window(said, 1)) == ["q", "calls", "t", "a", "now"]
    assert texts(window(said, 2)) == ["unanswered", "q", "calls", "t", "a", "now"]
    assert texts(window(said, 0)) == ["now"]


def test_question_and_messages_before_it() -> None:
    assert question(talk(3)) == "now"
    assert texts(before(talk(1))) == ["q0", "a0"]
    # A later answer, as in a repeated run, is not part of either.
    assert question([*talk(1), AIMessage("x")]) == "now"
    assert (question([]), before([])) == ("", [])
    assert question([AIMessage("hello")]) == ""
    blocks = HumanMessage([{"type": "text", "text": " in blocks "}])
    assert question([blocks]) == "in blocks"


SKARRA = "How tall is the Skarra lighthouse?"
VELHO = "Qual é a altura do Farol Velho?"
ERROR = "What does error E-04 mean on the P310?"
DISH = "Quanto custa o prato do dia?"
HOTEL = "How much may a hotel cost in London?"


@pytest.mark.parametrize(
    ("earlier", "asked", "standing"),
    [
        # A pronoun refers to the topic of the previous question.
        ([SKARRA], "How many does it have?", "How many does it have? (Skarra lighthouse)"),
        ([VELHO], "quantos níveis ele tem?", "quantos níveis ele tem? (Farol Velho)"),
        ([VELHO], "e quem viveu nesse?", "e quem viveu nesse? (Farol Velho)"),
        (["o que é uma boia sineira?"], "E isso serve?", "E isso serve? (boia sineira)"),
        # The topic comes from further back if the last question was itself a follow-up.
        ([SKARRA, "How many does it have?"], "Who built it?", "Who built it? (Skarra lighthouse)"),
        # "The previous one" needs both topics.
        (
            [VELHO, "E o Farol do Norte?"],
            "compara com o anterior",
            "compara com o anterior (Farol Velho, Farol do Norte)",
        ),
        (
            [SKARRA, "How tall is the Brennick light?"],
            "Which of them is older, the previous one?",
            "Which of them is older, the previous one? (Skarra lighthouse, Brennick light)",
        ),
        # The same question about another topic.
        ([SKARRA], "What about the Brennick light?", "How tall is the Brennick light?"),
        ([VELHO], "E o Farol do Norte?", "Qual é a altura do Farol do Norte?"),
        # The question names nothing.
        ([SKARRA], "Why?", "Why? (Skarra lighthouse)"),
        # Questions without references.
        ([SKARRA], "When was Brennick painted?", "When was Brennick painted?"),
        ([SKARRA], "And when was Brennick painted?", "And when was Brennick painted?"),
        ([SKARRA], "Does Brennick have its own boat?", "Does Brennick have its own boat?"),
        ([SKARRA], "Is it true that Brennick is red?", "Is it true that Brennick is red?"),
        ([VELHO], "Quantas boias existem?", "Quantas boias existem?"),
        # The question names what it refers to.
        ([SKARRA], "Is it the Skarra lighthouse?", "Is it the Skarra lighthouse?"),
        # A code is not cut.
        (["Which customer has contract FR-2388?"], "since when?", "since when? (contract FR-2388)"),
        # A fragment puts another thing into the last question.
        ([ERROR], "and the K55?", "What does error E-04 mean on the K55?"),
        ([ERROR], "on the K55", "What does error E-04 mean on the K55?"),
        ([ERROR], "K55?", "What does error E-04 mean on the K55?"),
        ([ERROR, "on the K55"], "and the P9?", "What does error E-04 mean on the P9?"),
        ([ERROR], "and E-19?", "What does error E-19 mean on the P310?"),
        ([ERROR, "on the K55"], "I meant E-19", "What does error E-19 mean on the K55?"),
        ([DISH], "E a sobremesa?", f"{DISH} (sobremesa)"),
        ([DISH], "para visitantes?", f"{DISH} (visitantes)"),
        ([DISH], "E a sopa, está incluída?", "E a sopa, está incluída?"),
        ([SKARRA], "the budget?", "the budget? (Skarra lighthouse)"),
        # The first word has a capital letter in any case.
        ([SKARRA], "Budget?", f"{SKARRA} (Budget)"),
        # A correction replaces what was asked.
        ([HOTEL], "no, I meant in Paris", "How much may a hotel cost in Paris?"),
        ([HOTEL], "I meant Novo Hamburgo", "How much may a hotel cost in Novo Hamburgo?"),
        ([HOTEL], "não, em Paris", "How much may a hotel cost in Paris?"),
        # The same question again.
        ([HOTEL], "are you sure?", HOTEL),
        ([HOTEL, "tell me more"], "in Portuguese please", HOTEL),
        # Topics by their place.
        ([SKARRA, VELHO], "is the second one older?", "is the second one older? (Farol Velho)"),
        ([SKARRA, VELHO], "o primeiro é maior?", "o primeiro é maior? (Skarra lighthouse)"),
        (
            [SKARRA, VELHO],
            "which one is older?",
            "which one is older? (Skarra lighthouse, Farol Velho)",
        ),
        ([SKARRA, VELHO], "What is on the second floor?", "What is on the second floor?"),
        # There is no earlier question.
        ([], "on the K55", "on the K55"),
        ([], "are you sure?", "are you sure?"),
        ([], "How many does it have?", "How many does it have?"),
        (["?"], "How many does it have?", "How many does it have?"),
    ],
)
def test_references_are_resolved_by_last_topic(
    earlier: list[str], asked: str, standing: str
) -> None:
    assert resolve(asked, earlier) == standing


@pytest.mark.parametrize(
    ("asked", "about"),
    [
        (SKARRA, "Skarra lighthouse"),
        ("Tell me about the Farol do Norte", "Farol do Norte"),
        ("what is a heron buoy?", "heron buoy"),
        ("Buoys?", "Buoys"),
        ("Why?", ""),
        ("", ""),
    ],
)
def test_topic_of_a_question(asked: str, about: str) -> None:
    assert topic(asked) == about


@pytest.mark.parametrize(
    "question",
    [
        "and" + " " * 100_000 + "!x",
        "e " + "o " * 50_000 + "!x",
        "Skarra Light " * 10_000,
        "is it true " * 10_000,
        "." * 100_000,
    ],
    ids=["blanks", "articles", "names", "pronouns", "dots"],
)
def test_time_is_linear_for_long_questions(question: str) -> None:
    earlier = ["How tall is the Skarra Light?", *([question] * 60), "How tall is Brennick?"]
    started = time.process_time()
    resolve(question, earlier)
    resolve("And how tall is it?", earlier)
    # Quadratic time would be minutes.
    assert time.process_time() - started < 5


def test_repeated_topics_do_not_grow_the_question() -> None:
    earlier = ["Is the tower of Ba and Ba, or Ba?", *["And what about Ba Ba?"] * 40]
    assert len(resolve("And what about Ba Ba?", earlier)) <= LONGEST


def test_long_question_is_returned_unchanged() -> None:
    long = "it " * LONGEST
    assert resolve(long, ["How tall is the Skarra Light?"]) == long
