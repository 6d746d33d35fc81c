"""The token budget of a model call."""

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from my_agent import token_budget


@pytest.mark.parametrize(
    ("model", "configured", "expected"),
    [
        ("gpt-4o-mini", None, 128_000),
        ("openai/gpt-4", None, 8_192),
        ("llama3", None, token_budget.UNKNOWN),
        ("llama3", 4_096, 4_096),
    ],
)
def test_window_depends_on_the_model(model: str, configured: int | None, expected: int) -> None:
    assert token_budget.window_of(model, configured) == expected
    budget = token_budget.budget(model, configured)
    assert expected // 4 <= budget <= token_budget.MOST or expected > token_budget.MOST
    assert budget < expected


def test_oldest_messages_are_dropped_and_system_and_question_stay() -> None:
    talk: list[AnyMessage] = [SystemMessage("rules")]
    for turn in range(50):
        talk += [HumanMessage(f"q{turn} " + "x" * 300), AIMessage(f"a{turn} " + "y" * 300)]
    talk.append(HumanMessage("last"))
    kept = token_budget.fit(talk, 1_000)
    assert kept[0] is talk[0] and kept[-1].text == "last"
    assert isinstance(kept[1], HumanMessage) and 3 < len(kept) < 20
    assert sum(map(token_budget.size, kept)) <= 1_000
    assert kept[1:] == talk[-len(kept) + 1 :]
    assert token_budget.fit(talk, 10**6) == talk


@pytest.mark.parametrize("letter", ["x", "é", "漢", "🙂"])
def test_huge_question_is_cut_in_its_middle(letter: str) -> None:
    [kept] = token_budget.fit([HumanMessage("begin " + letter * 200_000 + " end")], 2_000)
    assert token_budget.size(kept) <= 2_000
    assert kept.text.startswith("begin") and kept.text.endswith("end") and "cut" in kept.text
