"""Settings of identity: how tokens are verified, and what in them says who asks."""

import json
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

from threadhold.settings import AppEnvironment

Algorithm = Literal["RS256", "ES256", "EdDSA"]

OPERATOR = "operator"
"""Role that may read the server's own figures, which are of all tenants."""

# RFC 7518: a key of HS256 is at least as long as its hash.
SECRET_BYTES = 32


class IdentitySettings(AppEnvironment):
    """What `hooks/auth.py` is told by the environment. Variables are the names in capitals."""

    jwt_secret: SecretStr | None = Field(
        default=None, description="Key of HS256 tokens, 32 bytes or more; or else JWKS"
    )
    jwt_jwks_url: str | None = Field(
        default=None, description="Where the issuer publishes its public keys (JWKS), http or https"
    )
    jwt_jwks_file: Path | None = Field(default=None, description="A file with the same")
    jwt_algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(
        default=("RS256", "ES256", "EdDSA"),
        min_length=1,
        description="Signatures accepted of keys in a JWKS, separated by commas",
    )
    jwt_jwks_interval_seconds: float = Field(
        default=30.0, gt=0, description="The JWKS is read at most once in so many seconds"
    )
    jwt_audience: str | None = Field(default=None, description="`aud` that tokens must have")
    jwt_issuer: str | None = Field(default=None, description="`iss` that tokens must have")
    jwt_leeway_seconds: float = Field(
        default=0.0, ge=0, le=300, description="How far the issuer's clock may be off"
    )
    jwt_claim_user: str = Field(
        default="sub", min_length=1, description="Claim that names the user"
    )
    jwt_claim_tenant: str = Field(
        default="tenant_id", min_length=1, description="Claim that names the tenant"
    )
    jwt_claim_roles: str = Field(
        default="roles", min_length=1, description="Claim with the user's roles, a list or words"
    )

    @property
    def has_key(self) -> bool:
        """Whether there is anything to verify a token with."""
        return bool(self._keys_given())

    def environment(self) -> dict[str, str]:
        """These settings as environment variables, those without a value left out."""
        values = {name: getattr(self, name) for name in IdentitySettings.model_fields}
        return {
            name.upper(): _written(value) for name, value in values.items() if value is not None
        }

    def require_key(self) -> None:
        """Refuse to let anybody in where nobody's token could be verified.

        Raises:
            ValueError: outside `local_dev` there is no key.
        """
        if not self.is_local and not self.has_key:
            raise ValueError(
                f"APP_ENV={self.app_env} needs a key to verify tokens with: set JWT_SECRET "
                "(HS256), or JWT_JWKS_URL or JWT_JWKS_FILE (RS256, ES256, EdDSA). Without one, "
                "use APP_ENV=local_dev on your own machine."
            )

    @field_validator("jwt_secret")
    @classmethod
    def _is_a_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            check_secret(secret.get_secret_value())
        return secret

    @field_validator("jwt_jwks_url")
    @classmethod
    def _is_on_the_web(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("must be an http or https URL")
        return url

    @field_validator("jwt_algorithms", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @model_validator(mode="after")
    def _has_one_kind_of_key(self) -> "IdentitySettings":
        given = self._keys_given()
        if len(given) > 1:
            # A key of one kind must never be tried as a key of the other.
            raise ValueError(f"{' and '.join(given)} exclude each other: choose one")
        return self

    def _keys_given(self) -> list[str]:
        names = ("jwt_secret", "jwt_jwks_url", "jwt_jwks_file")
        return [name.upper() for name in names if getattr(self, name) is not None]


def check_secret(secret: str) -> None:
    """Refuse what must not be a key of HS256.

    Raises:
        ValueError: it is too short, or it is a public key, which others know.
    """
    if len(secret.encode()) < SECRET_BYTES:
        raise ValueError(
            f"must be {SECRET_BYTES} bytes or more, such as `openssl rand -base64 48` prints"
        )
    if _is_public(secret):
        raise ValueError("is a public key, which others know; use JWT_JWKS_URL or JWT_JWKS_FILE")


def _is_public(secret: str) -> bool:
    # Here, because it brings all of cryptography, which a server without tokens never needs.
    from jwt.algorithms import HMACAlgorithm
    from jwt.exceptions import InvalidKeyError

    try:
        HMACAlgorithm(HMACAlgorithm.SHA256).prepare_key(secret)
    except InvalidKeyError:
        return True
    try:
        document = json.loads(secret)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and bool(document.keys() & {"kty", "keys"})


def _written(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
