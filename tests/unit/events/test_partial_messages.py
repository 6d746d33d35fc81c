"""Partial messages: what the pieces of a stream become when it is cut."""

import json
from typing import Any

import orjson
import pytest

from langgraph_runtime_sql.events.event import Event
from tests.support.checkpoints import api_settings


def collected_of(
    collected: Any, pieces: list[tuple[int, dict[str, Any]]], name: str = "messages"
) -> Any:
    for number, (attempt, piece) in enumerate(pieces):
        body = json.dumps({"params": {"namespace": [], "data": piece}}).encode()
        collected.add([Event((1, number), "r", name, body, True, attempt)])
    return orjson.loads(orjson.dumps(collected.messages()))


def test_pieces_of_reasoning_and_text_are_put_together() -> None:
    """As providers send them. What a checkpoint has, and an attempt before, is left out."""
    start = {"event": "message-start", "role": "ai"}
    pieces: list[tuple[int, dict[str, Any]]] = [
        (1, {**start, "id": "lost"}),
        (2, {**start, "id": "saved"}),
        (2, {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "a"}}),
        (2, {**start, "id": "cut"}),
        (2, {"event": "content-block-delta", "index": 0, "delta": {"type": "reasoning-delta", "reasoning": "so"}}),
        (2, {"event": "content-block-delta", "index": 1, "delta": {"type": "text-delta", "text": "It"}}),
    ]  # fmt: skip
    with api_settings():
        from langgraph_runtime_sql.ops.runs.partial import _Collected

        [message] = collected_of(_Collected({"saved"}), pieces)
    assert message["id"] == "cut"
    assert [block["type"] for block in message["content"]] == ["reasoning", "text"]
    assert message["content"][1]["text"] == "It"


@pytest.mark.parametrize("kind", ["block-delta", "tool-call-delta"])
def test_a_tool_call_that_was_cut_is_an_invalid_one(kind: str) -> None:
    """Older langchain-core streams the whole call again and again, newer one what is added."""
    called = {"type": "tool_call_chunk", "id": "c", "name": "find", "args": ""}
    added = {"type": kind, "args": '{"q": "x'}
    whole = {"type": kind, "fields": {**called, "args": '{"q": "x'}}
    delta = whole if kind == "block-delta" else added
    pieces: list[tuple[int, dict[str, Any]]] = [
        (1, {"event": "message-start", "role": "ai", "id": "cut"}),
        (1, {"event": "content-block-start", "index": 0, "content": called}),
        (1, {"event": "content-block-delta", "index": 0, "delta": delta}),
    ]
    with api_settings():
        from langgraph_runtime_sql.ops.runs.partial import _Collected

        [message] = collected_of(_Collected(set()), pieces)
    assert [block["type"] for block in message["content"]] == ["invalid_tool_call"]
    assert message["invalid_tool_calls"][0]["args"] == '{"q": "x'


@pytest.mark.parametrize(
    ("name", "texts"),
    [("messages|agent:1", ["It"]), ("messages|tools:1", []), ("messages|agent:1|deep:2", [])],
)
def test_messages_of_an_agent_are_kept_as_clients_show_them(name: str, texts: list[str]) -> None:
    pieces: list[tuple[int, dict[str, Any]]] = [
        (1, {"event": "message-start", "role": "ai", "id": "cut"}),
        (1, {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "It"}}),
    ]  # fmt: skip
    with api_settings():
        from langgraph_runtime_sql.ops.runs.partial import _Collected

        found = collected_of(_Collected(set()), pieces, name)
    assert [each["content"][0]["text"] for each in found] == texts
