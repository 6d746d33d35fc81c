"""Development tokens, signed with the server's own secret."""

import re
import time
from collections.abc import Sequence
from uuid import uuid4

import jwt

from threadhold.auth.identity import is_name
from threadhold.auth.settings import IdentitySettings
from threadhold.errors import RuntimeSqlError

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class CannotSign(RuntimeSqlError):
    """A token that this server accepts cannot be signed."""


def sign(
    settings: IdentitySettings, tenant: str, user: str, roles: Sequence[str], ttl: float
) -> str:
    """Sign a token that this server accepts.

    Args:
        settings: The secret, and the names of the claims.
        tenant: The tenant's name.
        user: The user's name.
        roles: Such as `tenant_admin`.
        ttl: Seconds until it expires.

    Raises:
        CannotSign: there is no secret, a name is invalid, or the lifetime is too long.
    """
    if not is_name(tenant) or not is_name(user):
        raise CannotSign(
            "--tenant and --user must have 1 to 200 printable characters, none of them `*`, "
            "and no blanks at the ends"
        )
    kid, secret = _key(settings)
    if secret is None:
        raise CannotSign(
            "JWT_SECRET is not set, so no token can be signed. With JWT_JWKS_URL or "
            "JWT_JWKS_FILE, the issuer of those keys signs tokens. In local_dev without any of "
            "the three, no token is needed."
        )
    if ttl > settings.jwt_max_lifetime_seconds:
        raise CannotSign(
            f"--ttl is longer than JWT_MAX_LIFETIME_SECONDS ({settings.jwt_max_lifetime_seconds}), "
            "so the server would refuse the token"
        )
    now = int(time.time())
    claims = {
        settings.jwt_claim_user: user,
        settings.jwt_claim_tenant: tenant,
        settings.jwt_claim_roles: list(roles),
        "iat": now,
        "exp": now + int(ttl),
        "aud": settings.jwt_audience,
        "iss": next(iter(settings.jwt_issuer), None),
        # So that `revoke` can name this token.
        "jti": uuid4().hex,
    }
    given = {name: value for name, value in claims.items() if value is not None}
    headers = None if kid is None else {"kid": kid}
    return jwt.encode(given, secret, algorithm="HS256", headers=headers)


def _key(settings: IdentitySettings) -> tuple[str | None, str | None]:
    """Return the id and the secret that sign tokens; None without them."""
    if settings.jwt_secret is not None:
        return None, settings.jwt_secret.get_secret_value()
    for kid, secret in (settings.jwt_secrets or {}).items():
        return kid, secret.get_secret_value()
    return None, None


def seconds(text: str) -> int:
    """Convert a duration such as `90`, `15m`, `8h` or `7d` to seconds.

    Raises:
        ValueError: the text is no duration, or the duration is 0.
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{text!r} is not a duration such as 90, 15m, 8h or 7d")
    return int(found[1]) * UNITS[found[2]]
