"""Repeated: histories show the same JSON, though equal messages are decoded once."""

from typing import Any

import orjson
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel, LastValue
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer, _msgpack_ext_hook_to_json
from pydantic import BaseModel

from langgraph_runtime_sql.checkpoint.repeated import Repeated
from tests.support.checkpoints import api_settings


class Model(BaseModel):
    name: str


MESSAGES = [HumanMessage("hello", id="1"), AIMessage("nul \x00, half \ud800", id="2")]
STATES: list[dict[str, Any]] = [
    {"messages": MESSAGES[:1]},
    {"messages": [*MESSAGES, MESSAGES[0]], "model": Model(name="a"), "plain": [1, {"a": 2}]},
    {"messages": MESSAGES, "nested": [{"inner": MESSAGES}], "models": [Model(name="a")]},
]


def _read(hook: Any) -> list[Any]:
    serde = JsonPlusSerializer(__unpack_ext_hook__=hook)
    return [serde.loads_typed(JsonPlusSerializer().dumps_typed(each)) for each in STATES]


def test_histories_show_the_same_json() -> None:
    with api_settings():
        from langgraph_api.serde import json_dumpb

        repeated = Repeated()
        found = [repeated.encoded(each) for each in _read(repeated.hook)]
        assert json_dumpb(found) == json_dumpb(_read(_msgpack_ext_hook_to_json))
        assert any(type(each) is orjson.Fragment for each in found[1]["messages"])
        assert repeated.encoded("not a mapping") == "not a mapping"


@pytest.mark.parametrize("is_delta", [True, False])
def test_nothing_is_shared_with_reducers_of_delta_channels(is_delta: bool) -> None:
    repeated = Repeated()
    channel: Any = DeltaChannel(lambda old, new: old + new, list) if is_delta else LastValue(list)
    repeated.share_in({"messages": channel})
    first, second, _ = _read(repeated.hook)
    assert (first["messages"][0] is second["messages"][0]) is not is_delta
