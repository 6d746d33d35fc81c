"""Key texts: read the keys that settings and files hold, and refuse unsuitable ones."""

import base64
import re

AUDIT_CHARACTERS = 32
MASTER_BYTES = (16, 24, 32)
WEBHOOK_BYTES = 24
WEBHOOK_PREFIX = "whsec_"


def audit_keys(text: str) -> tuple[str, ...]:
    """Return the keys of the audit log in a text, separated by commas or white space.

    Raises:
        ValueError: a key is too short.
    """
    found = tuple(each for each in re.split(r"[,\s]+", text) if each)
    if any(len(each) < AUDIT_CHARACTERS for each in found):
        raise ValueError(f"a key of the audit log has at least {AUDIT_CHARACTERS} characters")
    return found


def master_key(text: str) -> str:
    """Return a master key. Raises ValueError for a wrong length."""
    if len(text.encode()) not in MASTER_BYTES:
        raise ValueError("a key has 16, 24 or 32 bytes")
    return text


def webhook_key(text: str) -> bytes:
    """Return the key of a webhook secret such as `whsec_...`.

    Raises:
        ValueError: it is not base64, or shorter than 24 bytes.
    """
    try:
        key = base64.b64decode(text.removeprefix(WEBHOOK_PREFIX), validate=True)
    except ValueError:
        raise ValueError("a webhook secret is `whsec_` and base64") from None
    if len(key) < WEBHOOK_BYTES:
        raise ValueError(f"a webhook secret has at least {WEBHOOK_BYTES} bytes")
    return key
