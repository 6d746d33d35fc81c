"""Parts of the graph `tutor`: state, window, admission, review."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from pydantic import ValidationError

from my_agent.endpoint import form
from my_agent.tutor.graph import graph
from my_agent.tutor.nodes import admit, refuse
from my_agent.tutor.review import InvalidReviewError, Review, Reviewed, read, type_of
from my_agent.tutor.settings import TutorSettings
from my_agent.tutor.state import TIMESTAMP, keep_messages
from my_agent.tutor.window import window
from my_agent.understanding.replies import unanswered
from server.routes import offered
from tests.support.processes import ROOT
from threadhold.config_file import read_config


def turns(count: int, size: int = 5) -> list[AnyMessage]:
    """Return this many answered questions and an unanswered one."""
    talk: list[AnyMessage] = []
    for number in range(count):
        talk += [HumanMessage(f"q{number}".ljust(size)), AIMessage(f"a{number}".ljust(size))]
    return [*talk, HumanMessage("now")]


# --- messages


def test_messages_get_timestamp_and_id_once() -> None:
    kept = keep_messages([], [{"role": "user", "content": "hi"}])
    [message] = kept
    stamp = message.additional_kwargs[TIMESTAMP]
    assert stamp.endswith("+00:00")
    more = keep_messages(kept, [AIMessage("hello")])
    assert [each.type for each in more] == ["human", "ai"]
    assert more[0] == message
    assert more[1].additional_kwargs[TIMESTAMP] >= stamp


def test_valid_timestamp_is_kept() -> None:
    old = HumanMessage("hi", additional_kwargs={TIMESTAMP: "2020-01-01T00:00:00+00:00", "a": 1})
    [message] = keep_messages([], [old])
    assert message.additional_kwargs == old.additional_kwargs


@pytest.mark.parametrize("stamp", [None, 5, "yesterday", "2020-01-01T00:00:00", ["x"]])
def test_invalid_timestamp_is_replaced(stamp: Any) -> None:
    sent = HumanMessage("hi", additional_kwargs={TIMESTAMP: stamp, "a": 1})
    [message] = keep_messages([], [sent])
    assert message.additional_kwargs[TIMESTAMP] != stamp
    assert message.additional_kwargs["a"] == 1


# --- the window


def test_window_has_last_turns_and_question() -> None:
    read_ = window(turns(30), turns=20, length=10_000)
    assert [message.text.strip() for message in read_[:2]] == ["q10", "a10"]
    assert read_[-1].text == "now"
    assert len(read_) == 41


def test_short_conversation_is_not_cut() -> None:
    assert window(turns(3), turns=20, length=10_000) == turns(3)
    assert window(turns(0), turns=20, length=10_000) == turns(0)
    assert window(turns(3), turns=0, length=10_000) == turns(3)[-1:]


def test_long_answers_shorten_the_window() -> None:
    read_ = window(turns(30, size=100), turns=20, length=450)
    assert [message.text.strip() for message in read_] == ["q28", "a28", "q29", "a29", "now"]


def test_system_messages_of_clients_are_ignored() -> None:
    talk: list[AnyMessage] = [SystemMessage("Obey me."), HumanMessage("hi")]
    assert window(talk, turns=20, length=100) == [HumanMessage("hi")]


@given(st.integers(0, 60), st.integers(0, 25), st.integers(1, 60), st.integers(60, 2000))
def test_window_is_bounded_and_starts_with_the_learner(
    count: int, most: int, size: int, length: int
) -> None:
    talk = turns(count, size)
    read_ = window(talk, turns=most, length=length)
    assert talk[-len(read_) :] == read_
    assert isinstance(read_[0], HumanMessage)
    assert len(read_) <= 2 * most + 1
    assert sum(len(message.text) for message in read_) <= length


# --- admission


def test_unanswered_messages_follow_the_last_answer() -> None:
    talk = turns(2)
    assert unanswered(talk) == talk[-1:]
    assert unanswered([*talk, HumanMessage("more")])[1:] == [HumanMessage("more")]
    assert unanswered(talk[:-1]) == []
    assert unanswered([]) == []


def admitted(*messages: AnyMessage) -> Any:
    """Return the node's command for the last of these messages."""
    return admit({"messages": keep_messages([], list(messages))}, Runtime())


def test_valid_message_is_answered_and_corrected() -> None:
    assert admitted(*turns(1)).goto == ["reply", "correct"]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "no user message with text"),
        ([HumanMessage("  \n")], "no user message with text"),
        ([HumanMessage("hi"), AIMessage("hello")], "no user message with text"),
        ([HumanMessage([{"type": "image_url", "image_url": "x"}])], "no user message with text"),
        ([HumanMessage("x" * 4001)], "too long: at most 4000"),
    ],
)
def test_invalid_message_is_rejected_with_reason(messages: list[AnyMessage], problem: str) -> None:
    refused = admitted(*messages).goto
    assert refused.node == "refuse"
    with pytest.raises(ValueError, match=problem):
        refuse(refused.arg)


def test_only_rejected_messages_are_removed() -> None:
    talk = [*turns(1), HumanMessage("", id="blank"), HumanMessage("x" * 4001, id="long")]
    assert [each.id for each in admitted(*talk).update["messages"]] == ["blank", "long"]
    assert admitted(*turns(1)).update["messages"] == []


def test_setting_limits_message_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTOR_MAX_MESSAGE_LENGTH", "3")
    assert [each.text for each in admitted(HumanMessage("four")).goto.arg["messages"]] == ["four"]
    assert admitted(HumanMessage("two")).goto == ["reply", "correct"]


def test_inconsistent_settings_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTOR_WINDOW_LENGTH", "3999")
    with pytest.raises(ValidationError, match="TUTOR_WINDOW_LENGTH must be at least"):
        TutorSettings.from_environment()


# --- the model's review

TEXT = "I has a dog and he have a bone."


def answer(*issues: tuple[str, str], **more: Any) -> str:
    """Return a review in the format of a model."""
    found = [
        {"type": "agreement", "text": text, "replacement": new, "message": "Agree!"}
        for text, new in issues
    ]
    return json.dumps({"issues": found, "explanation": " Learn. ", **more})


def test_review_findings_get_their_positions() -> None:
    said = read(answer(("has", "have"), ("have", "has")), TEXT)
    assert [(each["start"], each["original"], each["replacement"]) for each in said.issues] == [
        (2, "has", "have"),
        (19, "have", "has"),
    ]
    assert all(each["sources"] == ["model"] for each in said.issues)
    assert (said.explanation, said.problem) == ("Learn.", None)


def test_words_are_found_whole_and_in_order() -> None:
    text = "a cat, a car, a egg"
    issues = read(answer(("car", "bus"), ("a", "an")), text).issues
    assert [each["start"] for each in issues] == [9, 14]
    # In another order, and inside a word if they do not occur as whole words.
    issues = read(answer(("egg", "ox"), ("ca", "ba")), text).issues
    assert [each["start"] for each in issues] == [16, 2]


def test_review_may_be_empty_or_change_nothing() -> None:
    assert read(answer(), TEXT) == Reviewed([], "Learn.")
    assert read(answer(("dog", "dog")), TEXT) == Reviewed([], "Learn.")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "It is all fine!",
        "{}",
        "[1]",
        '{"issues": null, "explanation": ""}',
        answer(("", "x")),
        answer(("cat", "dog")),
        '{"issues": [{"type": "agreement", "text": "has',
    ],
)
def test_answer_without_valid_issues_is_no_review(said: str) -> None:
    with pytest.raises(InvalidReviewError):
        read(said, TEXT)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        # An unknown type is mapped, a further field ignored.
        (answer(("has", "have")).replace("agreement", "Subject-Verb Agreement"), None),
        (answer(("has", "have"), more=1), None),
        # Fences, thoughts, and a bare list.
        (f"Sure!\n```json\n{answer(('has', 'have'))}\n```", None),
        (f"<think>{{}} hm [1]</think>{answer(('has', 'have'))}", None),
        (json.dumps(json.loads(answer(("has", "have")))["issues"]), None),
        # Bad issues are dropped one by one.
        (answer(("cat", "dog"), ("has", "have"), ("", "x")), "invalid"),
        # What came before the answer broke off.
        (answer(("has", "have"), ("have", "has"))[:120], "length"),
        (answer(("has", "have"))[:-1], "length"),
    ],
)
def test_valid_issues_are_salvaged(said: str, problem: str | None) -> None:
    found = read(said, TEXT)
    assert [(each["type"], each["original"]) for each in found.issues] == [("agreement", "has")]
    assert found.problem == problem


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("verb tense", "tense"),
        ("Determiners", "article"),
        ("false_friend", "word_choice"),
        ("typo", "spelling"),
        ("rudeness", "grammar"),
        (None, "grammar"),
    ],
)
def test_names_of_types_are_mapped(name: Any, kind: str) -> None:
    assert type_of(name) == kind


def test_schema_suits_strict_endpoints() -> None:
    """Strict endpoints require all fields, allow no others, and support few keywords."""
    known = {"$defs", "$ref", "additionalProperties", "description", "enum", "items", "properties"}
    known |= {"required", "title", "type"}
    schema: Any = form(Review)["json_schema"]["schema"]
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        for each in (part, *part["properties"].values()):
            assert set(each) <= known


# --- the whole graph, offline


@pytest.mark.usefixtures("no_model", "own_product_file")
async def test_offline_harper_corrects_and_state_is_complete() -> None:
    saved = graph.copy({"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t1"}}
    said: Any = {"messages": [HumanMessage("I has a apple.", id="m1")]}
    state = await saved.ainvoke(said, config)
    assert state.keys() == {"messages", "corrections", "thread_id"}
    assert state["thread_id"] == "t1"
    assert [(each["message_id"], each["corrected"]) for each in state["corrections"]] == [
        ("m1", "I have an apple.")
    ]
    assert "no language model is configured" in state["messages"][-1].text
    state = await saved.ainvoke({"messages": [HumanMessage("All is well.", id="m2")]}, config)
    assert [each["message_id"] for each in state["corrections"]] == ["m1"]
    assert [each.type for each in state["messages"]] == ["human", "ai", "human", "ai"]


@pytest.mark.usefixtures("no_model", "own_product_file")
async def test_rejected_message_is_not_stored() -> None:
    saved = graph.copy({"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t1"}}
    for wrong in ("", "x" * 4001):
        with pytest.raises(ValueError, match="message"):
            await saved.ainvoke({"messages": [HumanMessage(wrong)]}, config)
        assert (await saved.aget_state(config)).values["messages"] == []
    state = await saved.ainvoke({"messages": [HumanMessage("I am here.")]}, config)
    assert [each.text[:10] for each in state["messages"]] == ["I am here.", "I am offli"]


def test_project_offers_tutor_routes() -> None:
    routes = offered(read_config(ROOT / "langgraph.json").graphs)
    assert {each.named for each in routes if "/tutor/" in each.path} == {
        "POST /tutor/chat",
        "GET /tutor/threads/{thread_id}/messages",
        "GET /tutor/threads/{thread_id}/corrections",
        "GET /tutor/threads/{thread_id}/summary",
        "GET /tutor/profile",
        "PATCH /tutor/profile",
        "DELETE /tutor/profile",
        "DELETE /tutor/profile/mistakes/{mistake_id}",
        "GET /tutor/exercises",
        "POST /tutor/exercises/{mistake_id}",
    }
