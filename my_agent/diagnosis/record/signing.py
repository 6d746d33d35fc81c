"""Signing: sums of rows by a key that the database does not know, where the deployment has one.

The key is that of the audit log, `AUDIT_KEY`. Without one a sum only shows damage.
"""

import hashlib
import hmac
import re
from typing import ClassVar

from pydantic import Field

from my_agent.settings import EnvironmentSettings

_PURPOSE = b"diagnosis snapshots"
_KEYED = "hmac:"


class _Keys(EnvironmentSettings):
    PREFIX: ClassVar[str] = "AUDIT_"

    key: str = Field(default="", repr=False)


def signed(text: str) -> str:
    """Return the sum of a text, by the newest key if there is one."""
    keys = _keys()
    return _keyed(keys[0], text) if keys else _unkeyed(text)


def is_signed(text: str, given: str) -> bool:
    """Return whether a sum is that of the text, by one of the keys if there is one."""
    wanted = [_keyed(key, text) for key in _keys()] or [_unkeyed(text)]
    return any(hmac.compare_digest(each.encode(), given.encode()) for each in wanted)


def _keys() -> list[str]:
    return [each for each in re.split(r"[,\s]+", _Keys.from_environment().key) if each]


def _keyed(key: str, text: str) -> str:
    own = hmac.digest(key.encode(), _PURPOSE, "sha256")
    return _KEYED + hmac.new(own, text.encode(), "sha256").hexdigest()


def _unkeyed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
