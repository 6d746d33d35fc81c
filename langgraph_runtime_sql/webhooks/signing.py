"""Signing: the headers of the Standard Webhooks scheme.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable

from langgraph_runtime_sql.key_texts import WEBHOOK_PREFIX


def of_tenant(key: bytes, tenant: str | None) -> bytes:
    """Return the key of a tenant, derived from the deployment's; without a tenant the same key.

    A tenant that knows its own key can neither compute the deployment's nor another tenant's.
    """
    if tenant is None:
        return key
    return hmac.digest(key, b"threadhold webhook\0" + tenant.encode(), hashlib.sha256)


def write_secret(key: bytes) -> str:
    """Return a key as the receiver's library reads it: `whsec_` and base64."""
    return WEBHOOK_PREFIX + base64.b64encode(key).decode()


def headers(
    keys: Iterable[bytes], tenant: str | None, message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers of a webhook, with one signature for each key.

    Args:
        keys: The deployment's keys: the current one, and earlier ones during a rotation.
        tenant: The tenant of the run.
        message_id: The same for each attempt.
        timestamp: The time of this attempt, in seconds since 1970.
        body: The body as it is sent.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [
        base64.b64encode(hmac.digest(of_tenant(key, tenant), signed, hashlib.sha256)).decode()
        for key in keys
    ]
    found = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if signatures:
        found["webhook-signature"] = " ".join(f"v1,{each}" for each in signatures)
    return found
