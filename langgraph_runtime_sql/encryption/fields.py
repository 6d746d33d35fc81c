"""Fields: what `langgraph_api` asks a runtime, since 0.17, about the fields of rows that it encrypts.

It asks when `LANGGRAPH_AES_KEY` is set. Here it encrypts none: the database's rows are sealed where they
are stored (`documents`), whoever writes them.
"""

from typing import Any


def encryption_fields(model_type: str) -> tuple[str, ...]:
    """Return the fields of a kind of row that the API encrypts: none."""
    return ()


async def encrypt_fields(data: dict[str, Any], *args: Any) -> dict[str, Any]:
    """Return `data` as it is."""
    return data


async def decrypt_fields(data: dict[str, Any], *args: Any) -> dict[str, Any]:
    """Return `data` as it is."""
    return data


def should_skip_encryption(key: str, path: str) -> bool:
    """Return whether a field stays as it is: each does."""
    return True
