"""Compression of values of checkpoints with a dictionary."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langgraph_runtime_sql.checkpoint import compression
from langgraph_runtime_sql.checkpoint.serialization import serializer
from tests.support.checkpoints import api_settings

PLAIN = (
    b"\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xa5hello"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xc0"
    b"\xb3model_validate_json"
)
STORED = "232b4e9766a4e6e4e4931fb358531700"


@given(st.binary(max_size=5000))
@example(b"")
@example(b"a" * 5000)
@example(compression._WORDS)
def test_expanded_is_what_was_squeezed(data: bytes) -> None:
    small = compression.squeezed(data)
    if small is not None:
        assert len(small) < len(data)
        assert compression.expanded(small) == data


def test_stored_bytes_of_today_are_read_for_ever() -> None:
    """A changed dictionary makes stored values unreadable."""
    small = bytes.fromhex(STORED)
    assert compression.expanded(small) == PLAIN


@pytest.mark.parametrize("message", [HumanMessage("Hello there, how are you?"), AIMessage("Fine.")])
def test_names_of_a_messages_fields_take_no_room(message: HumanMessage | AIMessage) -> None:
    with api_settings():
        _, data = serializer().dumps_typed(message)
    small = compression.squeezed(data)
    assert small is not None
    assert len(small) < len(str(message.content)) + 40
    assert len(data) > 130


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b"", lambda _: b"\xff" * 9]
)
def test_other_bytes_are_a_clear_error(change: object) -> None:
    small = compression.squeezed(b"content " * 50)
    assert small is not None
    assert callable(change)
    with pytest.raises(ValueError, match="cannot be decompressed"):
        compression.expanded(change(small))
