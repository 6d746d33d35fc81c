"""Identity: find the user of a request. A refusal does not tell the client its reason."""

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
"""Role that may see all resources of its tenant."""

# Bytes.
MAX_TOKEN = 8192
# Characters.
MAX_NAME = 200


class User(TypedDict):
    """The user of a request. Graphs read it at `config["configurable"]["langgraph_auth_user"]`."""

    identity: str
    display_name: str
    is_authenticated: bool
    tenant_id: str
    user_id: str
    roles: list[str]
    permissions: list[str]
    store_namespace: list[str]
    """The namespace that holds the user's items in the store."""


class NotAuthenticated(AuthenticationError):
    """The request has no valid bearer token."""

    status_code = 401
    headers: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}

    def __init__(self) -> None:
        # The text is the same for every reason. The reason itself is only in the log.
        super().__init__("A valid bearer token is needed")

    def response(self) -> JSONResponse:
        """Return the HTTP response for this error."""
        return JSONResponse({"detail": str(self)}, self.status_code, dict(self.headers))


def make_user(tenant: str, user: str, roles: Iterable[str] = ()) -> User:
    """Make an authenticated user.

    Args:
        tenant: The tenant's name.
        user: The user's name.
        roles: The user's roles. They are also the user's permissions.
    """
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
"""The user of requests without a token in `local_dev`."""


class Authenticator:
    """Identify the users of requests by their bearer tokens.

    Args:
        settings: The key and the claims with which tokens are verified.

    Raises:
        ValueError: there is no key outside `local_dev`, or the key cannot be read.
    """

    def __init__(self, settings: IdentitySettings) -> None:
        settings.require_key()
        self._settings = settings
        self._keys: Keys | None = open_keys(settings)

    async def identify(self, scope: Mapping[str, Any]) -> User:
        """Return the user of a request or WebSocket.

        In `local_dev`, a request from this machine without a token acts as `DEVELOPER`.

        Args:
            scope: The ASGI scope.

        Raises:
            NotAuthenticated: there is no valid token.
        """
        sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if not sent and self._settings.is_local and _is_local(scope):
            return DEVELOPER
        scheme, _, token = (sent[0] if len(sent) == 1 else b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise _refusal("no bearer token")
        return await self.verify(token.strip())

    async def verify(self, token: bytes) -> User:
        """Verify a token and return its user.

        Args:
            token: The JWT, without the scheme `Bearer`.

        Raises:
            NotAuthenticated: the signature or a claim is invalid, or the token has expired.
        """
        if self._keys is None or len(token) > MAX_TOKEN:
            raise _refusal(
                "no key is configured"
                if self._keys is None
                else f"the token is longer than {MAX_TOKEN} bytes"
            )
        try:
            header = jwt.get_unverified_header(token)
            if header.keys() & {"crit", "b64"}:
                # A verifier must refuse extensions that it does not support. None is supported.
                raise jwt.InvalidTokenError("the header has a critical extension")
            key = await self._keys.find(header.get("kid"))
            if key is None:
                raise jwt.InvalidTokenError("no key has the `kid` of the header")
            return self._user(self._claims(token, key))
        except jwt.PyJWTError as error:
            raise _refusal(f"{type(error).__name__}: {error}") from error

    def _claims(self, token: bytes, key: Key) -> dict[str, Any]:
        settings = self._settings
        return jwt.decode(
            token,
            key.material,
            algorithms=[key.algorithm],
            audience=settings.jwt_audience,
            issuer=settings.jwt_issuer,
            leeway=settings.jwt_leeway_seconds,
            options={
                "require": [
                    "exp",
                    *(["aud"] if settings.jwt_audience else []),
                    *(["iss"] if settings.jwt_issuer else []),
                ],
                "verify_aud": settings.jwt_audience is not None,
            },
        )

    def _user(self, claims: Mapping[str, Any]) -> User:
        settings = self._settings
        tenant = _parse_name(claims.get(settings.jwt_claim_tenant))
        user = _parse_name(claims.get(settings.jwt_claim_user))
        return make_user(tenant, user, _parse_roles(claims.get(settings.jwt_claim_roles)))


def _parse_name(claim: Any) -> str:
    # There is no default: a token without a tenant must not give access to one.
    if not is_name(claim):
        raise jwt.InvalidTokenError("the tenant or the user is missing or is not a valid name")
    return str(claim)


def is_name(text: Any) -> bool:
    """Return whether a text is a valid name of a tenant or user.

    A name has 1 to 200 printable characters and no blank at its ends. It has no `*`, because `*`
    matches any label of a namespace. It has no `\\u0000` escape, because the platform rewrites
    the escape when it stores the name, and two names could become equal.
    """
    return (
        isinstance(text, str)
        and 0 < len(text) <= MAX_NAME
        and text.isprintable()
        and text == text.strip()
        and "*" not in text
        and r"\u0000" not in text
    )


def _parse_roles(claim: Any) -> list[str]:
    roles = claim.split() if isinstance(claim, str) else [] if claim is None else claim
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise jwt.InvalidTokenError("the roles are neither a list of texts nor a text of words")
    return roles


def _refusal(reason: str) -> NotAuthenticated:
    logger.info("Authentication refused: %s", reason)
    return NotAuthenticated()


def _is_local(scope: Mapping[str, Any]) -> bool:
    """Return whether a request comes from this machine and its Host header is a loopback name.

    The Host header is checked because of DNS rebinding: a website can resolve its own name to
    this machine, so that the user's browser sends requests here.
    """
    client = scope.get("client")
    hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
    named = [_HOST.fullmatch(host.decode("latin-1")) for host in hosts]
    return (client is None or is_loopback(client[0])) and all(
        name is not None and is_loopback(name[1] or name[2]) for name in named
    )


# An address in brackets or a name, and an optional port.
_HOST = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::[0-9]*)?")


@cache
def authenticator() -> Authenticator:
    """Return the authenticator for the settings of the environment. The process shares one.

    Raises:
        ValueError: there is no key outside `local_dev`, or the key cannot be read.
    """
    return Authenticator(IdentitySettings())
