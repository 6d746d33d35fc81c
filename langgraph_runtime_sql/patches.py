"""Patches: bytes compressed with earlier bytes as the dictionary, so that they take what is new.

Each frame has a checksum of its content. Bytes that are expanded with another base than they were
made with are noticed.
"""

import threading
from functools import cache

import zstandard

WHOLE, PATCH = "+zstd", "+patch"
"""The ending of the type of a value that is compressed alone, and with a base."""

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
    b'{"langgraph_version": "1.", "langgraph_api_version": "0.", "langgraph_plan": "developer", '
    b'"langgraph_host": "self-hosted", "created_by": "system", "user_id": "", "graph_id": "", '
    b'"assistant_id": "", "run_attempt": 1, "source": "loop", "step": 1, "parents": {}, "run_id": "'
    b"\x87\xa1v\x04\xa2ts\xd9 2026-01-01T00:00:00.000000+00:00\xa2id\xd9$1f0\xb0channel_versions"
    b"\xa9__start__\xd900000000000000000000000000000000.0."
    b"\xa8messages\xd9000000000000000000000000000000001.0."
    b"\xadversions_seen\x83\xa9__input__\x80\xa9__start__\x81\xa9__start__\xab__pregel_tasks"
    b"\xb0updated_channels\x91\xa8messages\xadpending_sends\x90"
    b"\xaabranch:to:\xd900000000000000000000000000000000.0.\xaechannel_values\x81\xa8messages\xdc"
)
_LEVEL = 3
# The windows of zstandard that are used, as powers of two.
_SMALLEST, _LARGEST = 10, 27
# From this window on, what is compared takes longer than the rest of a put: one table for its hashes
# takes half as long as two, and finds 95 % of what these find.
_FAST = 19
_own = threading.local()


def whole(data: bytes) -> bytes:
    """Return the bytes compressed alone."""
    found: zstandard.ZstdCompressor | None = getattr(_own, "compressor", None)
    if found is None:
        words = zstandard.ZstdCompressionDict(_WORDS, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        words.precompute_compress(level=_LEVEL)
        found = _own.compressor = zstandard.ZstdCompressor(
            level=_LEVEL, dict_data=words, write_checksum=True, write_dict_id=False
        )
    return found.compress(data)


def patch(data: bytes, base: bytes) -> bytes:
    """Return the bytes compressed with `base`."""
    window = min(max((len(data) + len(base)).bit_length(), _SMALLEST), _LARGEST)
    return zstandard.ZstdCompressor(
        dict_data=_raw(base), compression_params=_parameters(window)
    ).compress(data)


def expanded(data: bytes, base: bytes | None = None) -> bytes:
    """Return what `whole` or, with a base, `patch` was given.

    Raises:
        ValueError: the bytes are not whole, or were made with another base.
    """
    words = _words() if base is None else _raw(base)
    maker = zstandard.ZstdDecompressor(dict_data=words, max_window_size=2**_LARGEST)
    try:
        return maker.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(f"cannot be decompressed: {error}") from error


def _raw(data: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


@cache
def _words() -> zstandard.ZstdCompressionDict:
    return _raw(_WORDS)


@cache
def _parameters(window: int) -> zstandard.ZstdCompressionParameters:
    # Tables for one hash in eight bytes find what is repeated. The library's levels clear larger ones,
    # which takes five times as long for short bytes.
    hashes = max(window - 3, 10)
    return zstandard.ZstdCompressionParameters(
        strategy=zstandard.STRATEGY_FAST if window >= _FAST else zstandard.STRATEGY_DFAST,
        window_log=window,
        hash_log=hashes,
        chain_log=hashes,
        min_match=5,
        search_log=1,
        target_length=1,
        write_checksum=True,
        write_dict_id=False,
    )
