"""Revocation: refuse a token or a user from now on, and disable the crons that they have created."""

from threadhold import sessions
from threadhold.auth.keys import TENANT_ID, TOKEN_ID, USER_ID


async def revoke(
    target: sessions.Target,
    *,
    token_seconds: float,
    seconds: float | None = None,
    reason: str | None = None,
) -> int:
    """Revoke a token or a user. Streams and WebSockets end within seconds in every process.

    Args:
        target: The token or the user.
        token_seconds: The maximum lifetime of a token, after which its entry is not needed.
        seconds: The time for which it is refused. By default the lifetime of a token; a user has
            no end.
        reason: Note for operators.

    Returns:
        The number of crons that were disabled.
    """
    if target.token_id is not None:
        seconds = token_seconds if seconds is None else seconds
        owner: dict[str, str | None] = {TOKEN_ID: target.token_id}
    else:
        owner = {TENANT_ID: target.tenant, USER_ID: target.subject}
    return await sessions.revoke(target, seconds=seconds, reason=reason, owner=owner)
