"""Identity: from a request to the user who sent it, or to a refusal that says nothing."""

import logging
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypedDict

import jwt
from starlette.authentication import AuthenticationError
from starlette.responses import JSONResponse

from hooks.jwt_keys import Key, Keys, open_keys
from hooks.settings import OPERATOR, IdentitySettings
from threadhold.hooks import label
from threadhold.hosts import is_loopback

logger = logging.getLogger(__name__)

TENANT_ADMIN = "tenant_admin"
"""Role that sees everything of its tenant."""


MAX_TOKEN = 8192
MAX_NAME = 200


class User(TypedDict):
    """Who asks. Graphs find it as `config["configurable"]["langgraph_auth_user"]`."""

    identity: str
    display_name: str
    is_authenticated: bool
    tenant_id: str
    user_id: str
    roles: list[str]
    permissions: list[str]
    store_namespace: list[str]
    """Where the user's items in the store are."""


class NotAuthenticated(AuthenticationError):
    """A valid bearer token is needed."""

    status_code = 401
    headers: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}

    def __init__(self) -> None:
        # The same words whatever was wrong: why is for the log.
        super().__init__("A valid bearer token is needed")

    def response(self) -> JSONResponse:
        """The answer to a request."""
        return JSONResponse({"detail": str(self)}, self.status_code, dict(self.headers))


def make_user(tenant: str, user: str, roles: Iterable[str] = ()) -> User:
    """The user of these names."""
    return User(
        identity=user,
        display_name=user,
        is_authenticated=True,
        tenant_id=tenant,
        user_id=user,
        roles=list(roles),
        permissions=list(roles),
        store_namespace=[label(tenant), label(user)],
    )


DEVELOPER = make_user("local", "developer", (TENANT_ADMIN, OPERATOR))
"""Who acts in `local_dev` without a token."""


class Authenticator:
    """Tells who sent a request.

    Args:
        settings: How tokens are verified.

    Raises:
        ValueError: outside `local_dev` there is no key, or the key cannot be read.
    """

    def __init__(self, settings: IdentitySettings) -> None:
        settings.require_key()
        self._settings = settings
        self._keys: Keys | None = open_keys(settings)

    async def identify(self, scope: Mapping[str, Any]) -> User:
        """Who sent the request, or opened the WebSocket, of this ASGI scope.

        Raises:
            NotAuthenticated: nobody who is known.
        """
        sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if not sent and self._settings.is_local and _is_from_here(scope):
            return DEVELOPER
        scheme, _, token = (sent[0] if len(sent) == 1 else b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise _refusal("no bearer token")
        return await self.verify(token.strip())

    async def verify(self, token: bytes) -> User:
        """Whose token this is.

        Raises:
            NotAuthenticated: it is not valid, now and here.
        """
        if self._keys is None or len(token) > MAX_TOKEN:
            raise _refusal("no key to verify tokens with" if self._keys is None else "too long")
        try:
            header = jwt.get_unverified_header(token)
            if header.keys() & {"crit", "b64"}:
                # Extensions that must be understood, and none is.
                raise jwt.InvalidTokenError("critical extension")
            key = await self._keys.find(header.get("kid"))
            if key is None:
                raise jwt.InvalidTokenError("unknown key")
            return self._user(self._claims(token, key))
        except jwt.PyJWTError as error:
            raise _refusal(f"{type(error).__name__}: {error}") from error

    def _claims(self, token: bytes, key: Key) -> dict[str, Any]:
        asked = self._settings
        return jwt.decode(
            token,
            key.material,
            algorithms=[key.algorithm],
            audience=asked.jwt_audience,
            issuer=asked.jwt_issuer,
            leeway=asked.jwt_leeway_seconds,
            options={
                "require": [
                    "exp",
                    *(["aud"] if asked.jwt_audience else []),
                    *(["iss"] if asked.jwt_issuer else []),
                ],
                "verify_aud": asked.jwt_audience is not None,
            },
        )

    def _user(self, claims: Mapping[str, Any]) -> User:
        asked = self._settings
        tenant = _named(claims.get(asked.jwt_claim_tenant))
        user = _named(claims.get(asked.jwt_claim_user))
        return make_user(tenant, user, _roles(claims.get(asked.jwt_claim_roles)))


def _named(claim: Any) -> str:
    # No default: nobody is in a tenant by omission.
    if not is_name(claim):
        raise jwt.InvalidTokenError("no tenant, or no user")
    return str(claim)


def is_name(text: Any) -> bool:
    """Whether a tenant or user may be called that.

    Up to 200 printable characters, with no blank at the ends, and none of them `*`,
    which stands for any label where namespaces are matched. Nor has it what the platform
    stores as other letters, by which it would be one name with another.
    """
    return (
        isinstance(text, str)
        and 0 < len(text) <= MAX_NAME
        and text.isprintable()
        and text == text.strip()
        and "*" not in text
        and r"\u0000" not in text
    )


def _roles(claim: Any) -> list[str]:
    roles = claim.split() if isinstance(claim, str) else [] if claim is None else claim
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise jwt.InvalidTokenError("roles are neither a list of names nor words")
    return roles


def _refusal(reason: str) -> NotAuthenticated:
    logger.info("Not authenticated: %s", reason)
    return NotAuthenticated()


def _is_from_here(scope: Mapping[str, Any]) -> bool:
    """Whether a request comes from this machine and was meant for it.

    A website can have a browser send requests here under a name of its own that
    resolves to this machine; then the Host header says that name.
    """
    client = scope.get("client")
    hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
    named = [_HOST.fullmatch(host.decode("latin-1")) for host in hosts]
    return (client is None or is_loopback(client[0])) and all(
        name is not None and is_loopback(name[1] or name[2]) for name in named
    )


# An address in brackets or a name, and perhaps a port.
_HOST = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::[0-9]*)?")


@cache
def authenticator() -> Authenticator:
    """The one that the environment asks for. Raises as `Authenticator` does."""
    return Authenticator(IdentitySettings())
