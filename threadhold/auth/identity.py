"""Identity: find the user of a request. A refusal does not tell the client its reason."""

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NotRequired, TypedDict

import jwt
from starlette.authentication import AuthenticationError
from starlette.responses import JSONResponse

from threadhold import sessions
from threadhold.auth.jwt_keys import Key, Keys, open_keys
from threadhold.auth.settings import OPERATOR, IdentitySettings
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
    token_id: NotRequired[str]
    """The claim `jti` of the token, if it has one."""


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


def subject(user: Mapping[str, Any]) -> sessions.Target:
    """Return what is revoked with a user: all tokens and crons of the user."""
    return sessions.Target(tenant=user["tenant_id"], subject=user["identity"])


def targets(user: Mapping[str, Any]) -> list[sessions.Target]:
    """Return what may be revoked so that a user is refused: the user, and the token if it has an id."""
    token_id = user.get("token_id")
    return [subject(user), *([sessions.Target(token_id=token_id)] if token_id else [])]


DEVELOPER = make_user("local", "developer", (TENANT_ADMIN, OPERATOR))
"""The user of requests without a token in `local_dev`."""


class Authenticator:
    """Identify the users of requests by their bearer tokens.

    Args:
        settings: The key and the claims with which tokens are verified.
        revocable: Refuse revoked tokens and users, which needs a running platform.

    Raises:
        ValueError: outside `local_dev`, there is no key, audience or issuer; or the key cannot
            be read.
    """

    def __init__(self, settings: IdentitySettings, *, revocable: bool = False) -> None:
        settings.require_key()
        _require_application(settings)
        self._settings = settings
        self._revocable = revocable
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
        claims = await self._verify(token.strip())
        user = self._user(claims)
        if isinstance(token_id := claims.get("jti"), str) and token_id:
            user["token_id"] = token_id
        revocable = targets(user)
        if self._revocable and await sessions.is_revoked(revocable):
            raise _refusal("the token or its user is revoked")
        expires_at = float(claims["exp"]) + self._settings.jwt_leeway_seconds
        sessions.begin(scope, expires_at=expires_at, targets=revocable)
        return user

    async def verify(self, token: bytes) -> User:
        """Verify a token and return its user. Revocations are not considered.

        Args:
            token: The JWT, without the scheme `Bearer`.

        Raises:
            NotAuthenticated: the signature or a claim is invalid, or the token has expired.
        """
        return self._user(await self._verify(token))

    async def _verify(self, token: bytes) -> dict[str, Any]:
        """Verify a token and return its claims, which name a user."""
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
            self._check_type(header)
            keys = await self._keys.candidates(header.get("kid"))
            if not keys:
                raise jwt.InvalidTokenError("no key has the `kid` of the header")
            claims = self._claims(token, keys)
            self._check_lifetime(claims)
            _check_purpose(claims)
            self._user(claims)
            return claims
        except jwt.PyJWTError as error:
            raise _refusal(f"{type(error).__name__}: {error}") from error

    def _check_type(self, header: Mapping[str, Any]) -> None:
        kind = header.get("typ")
        if kind is None:
            return
        # RFC 7515: the prefix of a media type may be left out.
        known = {each.lower() for each in self._settings.jwt_types}
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in known:
            raise jwt.InvalidTokenError("the header `typ` is not among JWT_TYPES")

    def _check_lifetime(self, claims: Mapping[str, Any]) -> None:
        limit = self._settings.jwt_max_lifetime_seconds
        starts = [time.time() + self._settings.jwt_leeway_seconds]
        if "iat" in claims:
            starts.append(float(claims["iat"]))
        if float(claims["exp"]) - min(starts) > limit:
            raise jwt.InvalidTokenError(
                f"the token lives longer than JWT_MAX_LIFETIME_SECONDS ({limit})"
            )

    def _claims(self, token: bytes, keys: Sequence[Key]) -> dict[str, Any]:
        """Return the claims of a token that one of the keys has signed."""
        *others, last = keys
        for key in others:
            with suppress(jwt.InvalidSignatureError):
                return self._decode(token, key)
        return self._decode(token, last)

    def _decode(self, token: bytes, key: Key) -> dict[str, Any]:
        settings = self._settings
        return jwt.decode(
            token,
            key.material,
            algorithms=[key.algorithm],
            audience=settings.jwt_audience,
            issuer=settings.jwt_issuer or None,
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
        roles = _parse_roles(claims.get(settings.jwt_claim_roles))
        if OPERATOR in roles and not self._may_operate(tenant, claims.get("iss")):
            logger.info("The role %s is ignored: tenant and issuer may not give it", OPERATOR)
            roles = [role for role in roles if role != OPERATOR]
        return make_user(tenant, user, roles)

    def _may_operate(self, tenant: str, issuer: Any) -> bool:
        """Return whether tokens of a tenant or an issuer may give the role `operator`."""
        settings = self._settings
        # Without JWT_ISSUER, a token may name any issuer.
        is_known = bool(settings.jwt_issuer) and issuer in settings.jwt_operator_issuers
        return is_known or tenant in settings.jwt_operator_tenants


def _require_application(settings: IdentitySettings) -> None:
    """Check that tokens for other applications are refused, unless the settings accept them.

    Raises:
        ValueError: the audience or the issuer is missing outside `local_dev`.
    """
    if settings.is_local:
        return
    missing = {
        "AUDIENCE": not settings.jwt_audience and not settings.jwt_allow_any_audience,
        "ISSUER": not settings.jwt_issuer and not settings.jwt_allow_any_issuer,
    }
    for name in (name for name, is_missing in missing.items() if is_missing):
        raise ValueError(
            f"APP_ENV={settings.app_env} needs JWT_{name}: without it, the server accepts tokens "
            "that the same key signed for other applications. To accept them, set "
            f"JWT_ALLOW_ANY_{name}=true."
        )


def _check_purpose(claims: Mapping[str, Any]) -> None:
    """Refuse ID tokens and refresh tokens, which issuers sign with the same key.

    OpenID Connect writes the claims with hashes into ID tokens only. The other claims are those
    of Keycloak, Cognito and common libraries.
    """
    if claims.keys() & _ID_TOKEN_CLAIMS:
        raise jwt.InvalidTokenError("the token is an ID token")
    for name in _PURPOSE_CLAIMS:
        purpose = claims.get(name)
        if isinstance(purpose, str) and purpose.lower() in _OTHER_PURPOSES:
            raise jwt.InvalidTokenError(f"the claim `{name}` says that this is no access token")


_ID_TOKEN_CLAIMS = {"at_hash", "c_hash"}
_PURPOSE_CLAIMS = ("typ", "type", "token_type", "token_use")
_OTHER_PURPOSES = {"id", "id_token", "refresh", "refresh_token", "offline"}


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
    return Authenticator(IdentitySettings(), revocable=True)
