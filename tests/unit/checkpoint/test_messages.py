"""Messages that are decoded again are equal to the first ones, and share nothing with them."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core import messages
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_runtime_sql.checkpoint.messages import decoded, encoded, remembering
from langgraph_runtime_sql.memo import Memo

STOCK = JsonPlusSerializer(allowed_msgpack_modules=None)
OURS = JsonPlusSerializer(allowed_msgpack_modules=None)
OURS._unpack_ext_hook = remembering(OURS._unpack_ext_hook)

json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
fields = st.dictionaries(st.text(max_size=5), json, max_size=3)
calls = st.lists(
    st.builds(
        lambda name, args: {"name": name, "args": args, "id": "1", "type": "tool_call"},
        st.text(max_size=5),
        fields,
    ),
    max_size=2,
)
content = st.text() | st.lists(
    st.text() | st.builds(lambda text: {"type": "text", "text": text}, st.text()), max_size=3
)
some = st.one_of(
    st.builds(HumanMessage, content, additional_kwargs=fields, id=st.none() | st.text()),
    st.builds(AIMessage, content, tool_calls=calls, response_metadata=fields),
    st.builds(ToolMessage, st.text(), tool_call_id=st.text(), artifact=json),
    st.builds(lambda text, more: HumanMessage(text, more=more), st.text(), json),
)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    decoded.clear()
    yield
    decoded.clear()


def parts(message: Any) -> Any:
    return (
        type(message),
        message.__dict__,
        message.__pydantic_extra__,
        message.__pydantic_fields_set__,
        message.__pydantic_private__,
    )


@given(some)
def test_decoded_again_it_is_what_the_stock_serializer_decodes(message: BaseMessage) -> None:
    typed = STOCK.dumps_typed([message])
    [expected] = STOCK.loads_typed(typed)
    for _ in range(3):
        [found] = OURS.loads_typed(typed)
        assert parts(found) == parts(expected)
        assert repr(found) == repr(expected)
        assert STOCK.dumps_typed([found]) == STOCK.dumps_typed([expected])


def test_change_in_place_reaches_no_other_reader() -> None:
    message = AIMessage(
        [{"type": "text", "text": "a"}],
        tool_calls=[{"name": "look", "args": {"at": [1]}, "id": "1", "type": "tool_call"}],
    )
    typed = STOCK.dumps_typed([message])
    before = copy.deepcopy(parts(STOCK.loads_typed(typed)[0]))
    for _ in range(3):
        [found] = OURS.loads_typed(typed)
        assert parts(found) == before
        found.content[0]["text"] = "changed"
        found.tool_calls[0]["args"]["at"].append(2)
        found.additional_kwargs["new"] = True
        found.id = "changed"


def test_every_message_class_takes_part() -> None:
    """A class that is decoded as before is no error, so this shows it."""
    given = {
        "ToolMessage": {"tool_call_id": "1"},
        "ToolMessageChunk": {"tool_call_id": "1"},
        "ChatMessage": {"role": "a"},
        "ChatMessageChunk": {"role": "a"},
        "FunctionMessage": {"name": "a"},
        "FunctionMessageChunk": {"name": "a"},
    }
    for name in ("HumanMessage", "SystemMessage", "AIMessage", "AIMessageChunk", *given):
        typed = STOCK.dumps_typed(getattr(messages, name)(content="a", **given.get(name, {})))
        data = OURS.loads_typed(typed)
        size = len(decoded._young)
        assert parts(OURS.loads_typed(typed)) == parts(data)
        assert len(decoded._young) == size > 0, name
        decoded.clear()


def test_message_of_a_class_of_its_own_is_decoded_as_before() -> None:
    class Mine(HumanMessage):
        pass

    _, data = STOCK.dumps_typed(HumanMessage("a"))
    hook = remembering(lambda code, data: Mine("b"))
    first, second = hook(5, data), hook(5, data)
    assert (type(first), type(second)) == (Mine, Mine)
    assert first is not second


def test_memo_stays_within_its_size_and_keeps_what_is_used() -> None:
    memo: Memo[int, str] = Memo(1000)
    for number in range(1000):
        memo.put(number, str(number), 100)
        assert memo.get(0) == "0"
    assert len(memo._young) + len(memo._old) <= 10
    memo.put(-1, "too large", 501)
    assert memo.get(-1) is None


@given(
    said=st.lists(some, min_size=8, max_size=12),
    others=st.dictionaries(st.integers(0, 400), st.text() | st.none() | fields, max_size=2),
    changed=st.integers(0, 400),
)
def test_a_long_list_is_encoded_as_the_serializer_does_it(
    said: list[BaseMessage], others: dict[int, Any], changed: int
) -> None:
    """Also with other things in it, and after a message was changed in place."""
    listed: list[Any] = [copy.copy(each) for _ in range(34) for each in said]
    for at, each in others.items():
        listed[1 + at % (len(listed) - 1)] = each
    listed[0] = HumanMessage("first")
    for _ in range(2):
        wanted = STOCK.dumps_typed({"channel_values": {"messages": listed, "n": 1}})
        checkpoint: Any = {"channel_values": {"messages": listed, "n": 1}}
        assert encoded(STOCK.dumps_typed, checkpoint) == wanted[1]
        if isinstance(message := listed[changed % len(listed)], BaseMessage):
            message.content = "changed in place"
