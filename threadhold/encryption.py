"""Encryption: encrypt a host's own data at rest, with the data keys of its tenants.

The functions work while the platform runs. Without `LANGGRAPH_AES_KEY`, `seal` encrypts nothing.
"""

from langgraph_runtime_sql.encryption import (
    CannotDecrypt,
    KeyErased,
    active,
    open_,
    prepare,
    prepare_sync,
    seal,
)

__all__ = ["CannotDecrypt", "KeyErased", "active", "open_", "prepare", "prepare_sync", "seal"]
