"""How much of a conversation the chat reads, and what a question in it stands for."""

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from my_agent.chat.reference import resolve, topic
from my_agent.chat.window import PAIRS, before, question, window


def talk(pairs: int) -> list[AnyMessage]:
    """So many answered questions, and one that is not."""
    said: list[AnyMessage] = []
    for number in range(pairs):
        said += [HumanMessage(f"q{number}"), AIMessage(f"a{number}")]
    return [*said, HumanMessage("now")]


def texts(messages: list[AnyMessage]) -> list[str]:
    return [str(message.text) for message in messages]


@pytest.mark.parametrize("pairs", [0, 1, PAIRS - 1, PAIRS])
def test_a_short_conversation_is_read_whole(pairs: int) -> None:
    assert window(talk(pairs)) == talk(pairs)


@pytest.mark.parametrize("pairs", [PAIRS + 1, 200])
def test_of_a_long_one_the_last_twenty_pairs_are_read(pairs: int) -> None:
    read = texts(window(talk(pairs)))
    assert len(read) == 2 * PAIRS + 1
    assert (read[0], read[-2:]) == (f"q{pairs - PAIRS}", [f"a{pairs - 1}", "now"])


def test_the_conversation_itself_is_left_alone() -> None:
    said = talk(30)
    window(said)
    assert said == talk(30)


def test_what_came_with_a_question_stays_with_it() -> None:
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


def test_the_question_and_what_came_before_it() -> None:
    assert question(talk(3)) == "now"
    assert texts(before(talk(1))) == ["q0", "a0"]
    # An answer that follows, as in a run that is repeated, is neither.
    assert question([*talk(1), AIMessage("x")]) == "now"
    assert (question([]), before([])) == ("", [])
    assert question([AIMessage("hello")]) == ""
    blocks = HumanMessage([{"type": "text", "text": " in blocks "}])
    assert question([blocks]) == "in blocks"


SKARRA = "How tall is the Skarra lighthouse?"
VELHO = "Qual é a altura do Farol Velho?"


@pytest.mark.parametrize(
    ("earlier", "asked", "standing"),
    [
        # A pronoun gets the topic of the question before.
        ([SKARRA], "How many does it have?", "How many does it have? (Skarra lighthouse)"),
        ([VELHO], "quantos níveis ele tem?", "quantos níveis ele tem? (Farol Velho)"),
        ([VELHO], "e quem viveu nesse?", "e quem viveu nesse? (Farol Velho)"),
        (["o que é uma boia sineira?"], "E isso serve?", "E isso serve? (boia sineira)"),
        # Further back, where the last question was a follow-up itself.
        ([SKARRA, "How many does it have?"], "Who built it?", "Who built it? (Skarra lighthouse)"),
        # The one before: both are needed.
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
        # Another thing, the same question.
        ([SKARRA], "What about the Brennick light?", "How tall is the Brennick light?"),
        ([VELHO], "E o Farol do Norte?", "Qual é a altura do Farol do Norte?"),
        # Nothing named at all.
        ([SKARRA], "Why?", "Why? (Skarra lighthouse)"),
        # Questions that stand by themselves.
        ([SKARRA], "When was Brennick painted?", "When was Brennick painted?"),
        ([SKARRA], "And when was Brennick painted?", "And when was Brennick painted?"),
        ([SKARRA], "Does Brennick have its own boat?", "Does Brennick have its own boat?"),
        ([SKARRA], "Is it true that Brennick is red?", "Is it true that Brennick is red?"),
        ([VELHO], "Quantas boias existem?", "Quantas boias existem?"),
        # What it refers to is named.
        ([SKARRA], "Is it the Skarra lighthouse?", "Is it the Skarra lighthouse?"),
        # Nothing to refer to.
        ([], "How many does it have?", "How many does it have?"),
        (["?"], "How many does it have?", "How many does it have?"),
    ],
)
def test_references_are_resolved_by_the_last_topic(
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
def test_the_topic_of_a_question(asked: str, about: str) -> None:
    assert topic(asked) == about
