"""Exact serializer: read values of checkpoints without their classes, and write the same bytes again."""

from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer, _msgpack_ext_hook_to_json

from threadhold.imports.errors import CannotImport


class ExactSerializer(JsonPlusSerializer):
    """langgraph's serializer, in which an object of a class stays the extension type that it was stored as.

    An import so needs none of the project's classes, and runs none of its code.
    """

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, __unpack_ext_hook__=ormsgpack.Ext)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a value.

        Raises:
            CannotImport: it was stored by pickle, or encrypted.
        """
        try:
            return super().loads_typed(data)
        except NotImplementedError as error:
            raise CannotImport(
                f"A value was stored as {data[0]!r}, which is not read: it could run code, or its key is "
                "unknown"
            ) from error


_shown = JsonPlusSerializer(pickle_fallback=False, __unpack_ext_hook__=_msgpack_ext_hook_to_json)


def as_json(value: Any) -> Any:
    """Return a value that an exact serializer has read, with objects as their JSON."""
    return _shown.loads_typed(_shown.dumps_typed(value))
