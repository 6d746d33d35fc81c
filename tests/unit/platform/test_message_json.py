"""Message JSON: messages are written as `model_dump` gives them."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from tests.support.checkpoints import api_settings
from threadhold.stock import message_json

CALL = {"name": "search", "args": {"q": "x"}, "id": "1", "type": "tool_call"}
ODD: dict[str, Any] = {"when": datetime(2026, 1, 1, tzinfo=UTC), "set": {1}, "data": b"x", 1: "one"}
USAGE: dict[str, Any] = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
MESSAGES: list[BaseMessage] = [
    HumanMessage("text", id="1", name="Ada"),
    HumanMessage([{"type": "text", "text": "part"}, "rest"], additional_kwargs=ODD),
    HumanMessage("extra", other="field"),
    SystemMessage("rules"),
    AIMessage("answer", usage_metadata=USAGE, response_metadata={"model": "m", "n": float("nan")}),
    AIMessage("usage", usage_metadata={**USAGE, "input_token_details": {"cache_read": 1}}),
    AIMessage("calls", tool_calls=[CALL], invalid_tool_calls=[]),
    AIMessageChunk("chunk"),
    ToolMessage("result", tool_call_id="1", artifact={"rows": [1]}),
    RemoveMessage(id="1"),
]
UNKNOWN = AIMessage("usage")
UNKNOWN.usage_metadata = {**USAGE, "price": 4}  # type: ignore[typeddict-unknown-key]
NAMED = HumanMessage("id")
NAMED.id = uuid4()  # type: ignore[assignment]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("message", [*MESSAGES, UNKNOWN, NAMED], ids=lambda each: each.text)
def test_messages_are_written_as_model_dump_gives_them(
    message: BaseMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api_settings():
        from langgraph_api import serde

        before = orjson.loads(serde.json_dumpb([message]))
        monkeypatch.setattr(serde, "default", message_json.default(serde.default))
        assert orjson.loads(serde.json_dumpb([message])) == before


def test_plain_messages_are_not_copied() -> None:
    plain = [message for message in MESSAGES if message_json.written(message) is message.__dict__]
    assert [message.text for message in plain] == ["text", "partrest", "rules", "answer"]
