"""Authentication: every caller in local development, else callers with the token API_TOKEN."""

import hmac
import os

from langgraph_sdk import Auth

IS_LOCAL = os.environ.get("APP_ENV", "local_dev") == "local_dev"
TOKEN = os.environ.get("API_TOKEN", "")
if not TOKEN and not IS_LOCAL:
    raise ValueError("Set API_TOKEN, the token that callers send, or APP_ENV=local_dev")

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """Accept callers that send `Authorization: Bearer` and the token."""
    if TOKEN and not hmac.compare_digest(
        (authorization or "").encode(), f"Bearer {TOKEN}".encode()
    ):
        raise Auth.exceptions.HTTPException(status_code=401, detail="Unauthorized")
    return {"identity": "user"}
