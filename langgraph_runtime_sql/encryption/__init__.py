"""Encryption at rest: what people typed is stored as ciphertext if `LANGGRAPH_AES_KEY` is set.

Each tenant has a data key of its own, which the master key wraps. Other code uses `prepare`,
`seal`, `open_` and `erase_key`; rows of our own tables use `documents`.
"""

from langgraph_runtime_sql.database import connection
from langgraph_runtime_sql.encryption.codec import open_, prepare, prepare_sync, seal
from langgraph_runtime_sql.encryption.documents import open_rows, seal_row
from langgraph_runtime_sql.encryption.fields import (
    decrypt_fields,
    encrypt_fields,
    encryption_fields,
    should_skip_encryption,
)
from langgraph_runtime_sql.encryption.keys import CannotDecrypt, KeyErased, erase_key
from langgraph_runtime_sql.encryption.master import active

__all__ = [
    "CannotDecrypt",
    "KeyErased",
    "active",
    "decrypt_fields",
    "encrypt_fields",
    "encryption_fields",
    "erase_key",
    "open_",
    "prepare",
    "prepare_sync",
    "seal",
    "seal_row",
    "should_skip_encryption",
]

connection.register_opener(open_rows)
