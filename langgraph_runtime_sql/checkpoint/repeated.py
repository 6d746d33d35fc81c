"""Repeated values: decode a value once for an answer, however many checkpoints contain it.

Each checkpoint of a conversation has the messages of the one before. Objects are decoded to JSON, so
equal bytes give equal JSON.
"""

from typing import Any

import orjson
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, _msgpack_ext_hook_to_json

from langgraph_runtime_sql import json_codec


class Repeated:
    """Decodes extension types for one answer, which nothing else may change."""

    def __init__(self) -> None:
        self._decoded: dict[bytes, Any] = {}
        self._encoded: dict[int, orjson.Fragment] = {}
        self._is_shared = True

    def hook(self, code: int, data: bytes) -> Any:
        """Decode an extension type, equal models as the same object."""
        if code == EXT_PYDANTIC_V2 and self._is_shared:
            if (found := self._decoded.get(data)) is None:
                found = self._decoded[data] = _msgpack_ext_hook_to_json(code, data)
            return found
        return _msgpack_ext_hook_to_json(code, data)

    def share_in(self, channels: dict[str, Any]) -> None:
        """Share nothing if the channels' reducers work on what is decoded, and may change it."""
        self._is_shared = not any(isinstance(each, DeltaChannel) for each in channels.values())

    def encoded(self, values: Any) -> Any:
        """Return the values of a checkpoint with the models in their lists as finished JSON.

        Raises:
            Unstorable: a model cannot be written as JSON.
        """
        if type(values) is not dict or not self._is_shared:
            return values
        if not self._encoded:
            self._encoded = self._fragments()
        return {
            name: [self._encoded.get(id(item), item) for item in each]
            if type(each) is list
            else each
            for name, each in values.items()
        }

    def _fragments(self) -> dict[int, orjson.Fragment]:
        # `_decoded` keeps the objects, and so their ids.
        found = (each for each in self._decoded.values() if type(each) is dict)
        return {id(each): json_codec.finished(each) for each in found}
