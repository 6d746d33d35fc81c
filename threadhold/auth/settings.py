"""Settings of identity: the keys that verify tokens, and the claims that name the user."""

import json
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

from threadhold.settings import AppEnvironment

Algorithm = Literal["RS256", "ES256", "EdDSA"]

OPERATOR = "operator"
"""Role that may read the server's metrics, which cover all tenants."""

# RFC 7518: a key of HS256 has at least the length of its hash.
SECRET_BYTES = 32


class IdentitySettings(AppEnvironment):
    """Settings of `threadhold.auth`. Each field is an environment variable, in capital letters."""

    jwt_secret: SecretStr | None = Field(
        default=None,
        description="Secret key of HS256 tokens, at least 32 bytes. Excludes the JWKS settings",
    )
    jwt_secrets: Annotated[dict[str, SecretStr] | None, NoDecode] = Field(
        default=None,
        description="Several secret keys instead of `JWT_SECRET`, as a JSON object from key id "
        "(`kid`) to secret. The first one signs development tokens",
    )
    jwt_jwks_url: str | None = Field(
        default=None,
        description="URL (http or https) at which the issuer publishes its public keys (JWKS)",
    )
    jwt_jwks_file: Path | None = Field(
        default=None, description="File with the issuer's public keys (JWKS)"
    )
    jwt_algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(
        default=("RS256", "ES256", "EdDSA"),
        min_length=1,
        description="Signature algorithms that are accepted with a JWKS, separated by commas",
    )
    jwt_jwks_interval_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Minimum time between two readings of the JWKS, in seconds",
    )
    jwt_jwks_max_age_seconds: float = Field(
        default=21_600.0,
        gt=0,
        description="If the JWKS cannot be read, its known keys are used for this time",
    )
    jwt_audience: str | None = Field(default=None, description="Required value of the claim `aud`")
    jwt_issuer: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Accepted values of the claim `iss`, separated by commas"
    )
    jwt_allow_any_audience: bool = Field(
        default=False,
        description="Start `staging` and `production` without `JWT_AUDIENCE`, and accept tokens "
        "that are meant for other applications",
    )
    jwt_allow_any_issuer: bool = Field(
        default=False,
        description="Start `staging` and `production` without `JWT_ISSUER`, and accept tokens of "
        "every issuer that has the key",
    )
    jwt_types: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("JWT", "at+jwt"),
        min_length=1,
        description="Accepted values of the header `typ`, separated by commas. A token without "
        "the header is accepted",
    )
    jwt_max_lifetime_seconds: int = Field(
        default=86_400,
        gt=0,
        description="Maximum lifetime of a token: `exp` minus `iat`, and minus the current time",
    )
    jwt_operator_tenants: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Tenants whose tokens may give the role `operator`, separated by commas",
    )
    jwt_operator_issuers: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Issuers (`iss`) whose tokens may give the role `operator`, separated by commas",
    )
    jwt_leeway_seconds: float = Field(
        default=0.0,
        ge=0,
        le=300,
        description="Tolerated difference between the clocks of issuer and server, in seconds",
    )
    jwt_claim_user: str = Field(
        default="sub", min_length=1, description="Claim that names the user"
    )
    jwt_claim_tenant: str = Field(
        default="tenant_id", min_length=1, description="Claim that names the tenant"
    )
    jwt_claim_roles: str = Field(
        default="roles",
        min_length=1,
        description="Claim with the user's roles: a list, or words separated by spaces",
    )

    @property
    def has_key(self) -> bool:
        """Return whether the settings name a key that verifies tokens."""
        return bool(self._keys_given())

    def environment(self) -> dict[str, str]:
        """Return these settings as environment variables. Settings without a value are omitted."""
        values = {name: getattr(self, name) for name in IdentitySettings.model_fields}
        return {
            name.upper(): _as_text(value) for name, value in values.items() if value is not None
        }

    def require_key(self) -> None:
        """Check that tokens can be verified.

        Raises:
            ValueError: there is no key outside `local_dev`.
        """
        if not self.is_local and not self.has_key:
            raise ValueError(
                f"APP_ENV={self.app_env} needs a key to verify tokens with: set JWT_SECRET "
                "(HS256), or JWT_JWKS_URL or JWT_JWKS_FILE (RS256, ES256, EdDSA). Without one, "
                "use APP_ENV=local_dev on your own machine."
            )

    @field_validator("jwt_secrets", mode="before")
    @classmethod
    def _parse_secrets(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not found:
            raise ValueError('must be a JSON object of secrets by key id, such as {"2026": "..."}')
        return found

    @field_validator("jwt_secrets")
    @classmethod
    def _check_secrets(cls, secrets: dict[str, SecretStr] | None) -> dict[str, SecretStr] | None:
        for secret in (secrets or {}).values():
            check_secret(secret.get_secret_value())
        return secrets

    @field_validator("jwt_secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            check_secret(secret.get_secret_value())
        return secret

    @field_validator("jwt_jwks_url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("must be an http or https URL with a host name")
        return url

    @field_validator(
        "jwt_algorithms",
        "jwt_issuer",
        "jwt_types",
        "jwt_operator_tenants",
        "jwt_operator_issuers",
        mode="before",
    )
    @classmethod
    def _split_words(cls, value: object) -> object:
        return _words(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_single_key(self) -> "IdentitySettings":
        given = self._keys_given()
        if len(given) > 1:
            # Algorithm confusion: a public key must never be tried as a shared secret.
            raise ValueError(f"{' and '.join(given)} exclude each other: set only one of them")
        return self

    def _keys_given(self) -> list[str]:
        names = ("jwt_secret", "jwt_secrets", "jwt_jwks_url", "jwt_jwks_file")
        return [name.upper() for name in names if getattr(self, name) is not None]


def check_secret(secret: str) -> None:
    """Check that a text is suitable as the key of HS256.

    Raises:
        ValueError: the text is shorter than 32 bytes, or is a public key.
    """
    if len(secret.encode()) < SECRET_BYTES:
        raise ValueError(
            f"must have at least {SECRET_BYTES} bytes; `openssl rand -base64 48` prints one"
        )
    if _is_public(secret):
        raise ValueError("is a public key, not a secret; use JWT_JWKS_URL or JWT_JWKS_FILE")


def _is_public(secret: str) -> bool:
    # Imported here: a server without tokens does not need the package cryptography.
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


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _as_text(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps({name: _as_text(each) for name, each in value.items()})
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
