"""Compression of values of checkpoints, with a dictionary of what is in most of them.

Most values are short, so that without it half of each would be the names of a message's fields.
"""

import zlib

SUFFIX = "+deflate"
"""The ending of the type of a compressed value."""
# Shorter ones hardly become smaller.
SHORT = 64

# As langgraph's serializer writes them; what is used most is at the end. Stored values need these
# very bytes to be read: for other ones, add a second dictionary with another suffix.
_WORDS = (
    b"\xacinput_tokens\xadoutput_tokens\xactotal_tokens\xb3input_token_details"
    b"\xb4output_token_details\xaacache_read\xaecache_creation\xa9reasoning\xabtool_calls\xa5error"
    b"\xadfinish_reason\xa4stop\xaamodel_name\xaemodel_provider\xb2system_fingerprint"
    b"\x94\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content\xa6system"
    b"\x94\xd9\x1elanggraph.types\xa9Interrupt\xa5value\xaa__interrupt__\xa8__resume__"
    b"\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xc0\xa2id\xc0"
    b"\xactool_call_id\xa8artifact\xc0\xa6status\xa7success\xb3model_validate_json"
    b"\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9)run--"
    b"\xaatool_calls\x91\x84\xa4name\xa4args\x80\xa2id\xa5call_\xa4type\xa9tool_call"
    b"\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\xb3model_validate_json"
    b"\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$"
    b"\xb3model_validate_json"
    b"\x87\xa1v\x04\xa2ts\xd9 2026-01-01T00:00:00.000000+00:00\xa2id\xd9$1f0\xb0channel_versions"
    b"\xa9__start__\xd900000000000000000000000000000000.0."
    b"\xa8messages\xd9000000000000000000000000000000001.0."
    b"\xadversions_seen\x83\xa9__input__\x80\xa9__start__\x81\xa9__start__\xab__pregel_tasks"
    b"\xb0updated_channels\x91\xa8messages\xadpending_sends\x90"
    b"\xaabranch:to:\xd900000000000000000000000000000000.0.\xaechannel_values\x81\xa8messages\xdc"
)


def squeezed(data: bytes) -> bytes | None:
    """Return the bytes compressed, or None if that is not shorter."""
    if len(data) < SHORT:
        return None
    maker = zlib.compressobj(6, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _WORDS)
    made = maker.compress(data) + maker.flush()
    return made if len(made) < len(data) else None


def expanded(data: bytes) -> bytes:
    """Return what `squeezed` was given.

    Raises:
        ValueError: the bytes are not whole, or others.
    """
    maker = zlib.decompressobj(-15, _WORDS)
    try:
        made = maker.decompress(data)
    except zlib.error as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
    if not maker.eof or maker.unused_data:
        raise ValueError("cannot be decompressed: bytes are missing or too many")
    return made
