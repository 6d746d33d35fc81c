"""What the project that is served says of itself in its langgraph.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hooks import settings as auth_settings

IDENTITY = (
    "hooks.auth:auth",
    f"{Path(auth_settings.__file__).resolve().with_name('auth.py')}:auth",
)


def has_our_identity(auth: Mapping[str, Any]) -> bool:
    """Whether users are told apart as `hooks` does it.

    Args:
        auth: the section of that name.
    """
    return auth.get("path") in IDENTITY
