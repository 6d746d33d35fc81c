"""Serialization: how checkpoint values become bytes, and which values may be read back."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph_runtime_sql.checkpoint import messages
from langgraph_runtime_sql.json_codec import AROUND

# The margin of depth for showing a stored state: in the thread's values and, deeper, in histories.
_AROUND = AROUND + 4

UnpackHook = Callable[[int, bytes], Any]


def serializer(unpack_hook: UnpackHook | None = None) -> SerializerProtocol:
    """Return the API's serializer as configured, but without pickle.

    Args:
        unpack_hook: Decodes msgpack extension types, instead of the serializer's own hook,
            which imports the classes that are allowed.

    Encryption is not its task: `sealing` encrypts and decrypts around it.

    Raises:
        NotImplementedError: custom encryption is configured. This runtime would ignore it and
            store checkpoints unencrypted.
    """
    from langgraph_api import config

    if config.LANGGRAPH_ENCRYPTION:
        raise NotImplementedError(
            "Custom encryption (`encryption` in langgraph.json) is not supported by this "
            "runtime: checkpoints would be stored unencrypted. Remove it, or set "
            "LANGGRAPH_AES_KEY to have all that people typed encrypted with AES."
        )
    serde = _serializer_class()(
        __unpack_ext_hook__=None if unpack_hook is None else _keeping_snapshots(unpack_hook),
        pickle_fallback=False,
    )
    return cast(SerializerProtocol, serde)


@cache
def _serializer_class() -> type[Any]:
    from langgraph_api.serde import Serializer

    class CheckpointSerializer(Serializer):
        """Refuses values that it would not read back, or that are too deep to be shown."""

        _unpack_ext_hook: UnpackHook

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._remember()

        def with_msgpack_allowlist(self, extra_allowlist: Any) -> Any:
            made = super().with_msgpack_allowlist(extra_allowlist)
            if made is not self:
                made._remember()
            return made

        def _remember(self) -> None:
            if not self._custom_unpack_ext_hook:
                self._unpack_ext_hook = messages.remembering(self._unpack_ext_hook)

        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            around = 0 if obj is None or isinstance(obj, bytes | bytearray) else _AROUND
            nested = obj
            for _ in range(around):
                nested = [nested]
            try:
                kind, data = JsonPlusSerializer.dumps_typed(self, nested)
                # In msgpack a list of one element is one byte before the element.
                return kind, data[around:]
            except TypeError as error:
                raise ValueError(
                    f"A value of the graph's state cannot be stored: {error}. Keep data in the "
                    "state (JSON types, messages, pydantic models, dataclasses), and objects "
                    "such as clients or locks outside of it."
                ) from error

    return CheckpointSerializer


def _keeping_snapshots(inner: UnpackHook) -> UnpackHook:
    """Wrap `inner` so that snapshots of delta channels keep the class that marks them."""

    def hook(code: int, data: bytes) -> Any:
        if code != EXT_DELTA_SNAPSHOT:
            return inner(code, data)
        return _DeltaSnapshot(
            ormsgpack.unpackb(data, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)
        )

    return hook
