"""Development tokens, signed with the server's own secret."""

import re
import time
from collections.abc import Sequence

import jwt

from hooks.identity import is_name
from hooks.settings import IdentitySettings
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
        CannotSign: there is no JWT_SECRET, or a name is invalid.
    """
    if not is_name(tenant) or not is_name(user):
        raise CannotSign(
            "--tenant and --user must have 1 to 200 printable characters, none of them `*`, "
            "and no blanks at the ends"
        )
    if settings.jwt_secret is None:
        raise CannotSign(
            "JWT_SECRET is not set, so no token can be signed. With JWT_JWKS_URL or "
            "JWT_JWKS_FILE, the issuer of those keys signs tokens. In local_dev without any of "
            "the three, no token is needed."
        )
    now = int(time.time())
    claims = {
        settings.jwt_claim_user: user,
        settings.jwt_claim_tenant: tenant,
        settings.jwt_claim_roles: list(roles),
        "iat": now,
        "exp": now + int(ttl),
        "aud": settings.jwt_audience,
        "iss": settings.jwt_issuer,
    }
    given = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(given, settings.jwt_secret.get_secret_value(), algorithm="HS256")


def seconds(text: str) -> int:
    """Convert a duration such as `90`, `15m`, `8h` or `7d` to seconds.

    Raises:
        ValueError: the text is no duration, or the duration is 0.
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{text!r} is not a duration such as 90, 15m, 8h or 7d")
    return int(found[1]) * UNITS[found[2]]
