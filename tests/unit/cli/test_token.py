"""`threadhold token` prints a token that the server accepts, or explains why it cannot."""

import json
import time
from pathlib import Path

import jwt
import pytest
from click.testing import CliRunner

from server.cli import main
from tests.support.issuer import SECRET, bearer
from threadhold.auth import IdentitySettings
from threadhold.auth.identity import Authenticator, User

COMMAND = ["token", "--tenant", "acme", "--user", "ada"]


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the variables and the `.env` of the environment in which the tests run."""
    monkeypatch.chdir(tmp_path)
    for name in IdentitySettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("APP_ENV", "production")
    for name in ("AUDIENCE", "ISSUER"):
        monkeypatch.setenv(f"JWT_ALLOW_ANY_{name}", "true")


async def verified(token: str) -> User:
    scope = {
        "headers": [(name.encode(), value.encode()) for name, value in bearer(token).items()],
        "client": None,
    }
    return await Authenticator(IdentitySettings()).identify(scope)


def printed(*arguments: str) -> str:
    ended = CliRunner().invoke(main, [*COMMAND, *arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output.strip()


async def test_token_identifies_the_named_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_SECRET", SECRET)
    monkeypatch.setenv("JWT_OPERATOR_TENANTS", "acme")
    user = await verified(printed("--role", "tenant_admin", "--role", "operator"))
    assert (user["tenant_id"], user["identity"]) == ("acme", "ada")
    assert user["roles"] == ["tenant_admin", "operator"]


async def test_token_has_all_configured_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "JWT_SECRET": SECRET,
        "JWT_AUDIENCE": "here",
        "JWT_ISSUER": "me",
        "JWT_CLAIM_USER": "email",
        "JWT_CLAIM_TENANT": "org",
        "JWT_CLAIM_ROLES": "groups",
    }.items():
        monkeypatch.setenv(name, value)
    user = await verified(printed("--role", "x"))
    assert (user["tenant_id"], user["identity"], user["roles"]) == ("acme", "ada", ["x"])


@pytest.mark.parametrize(("ttl", "seconds"), [("90", 90), ("15m", 900), ("7d", 604800)])
def test_token_expires_after_the_given_time(
    monkeypatch: pytest.MonkeyPatch, ttl: str, seconds: int
) -> None:
    monkeypatch.setenv("JWT_SECRET", SECRET)
    monkeypatch.setenv("JWT_MAX_LIFETIME_SECONDS", str(seconds))
    claims = jwt.decode(printed("--ttl", ttl), SECRET, algorithms=["HS256"])
    assert claims["exp"] - claims["iat"] == seconds
    assert abs(claims["iat"] - time.time()) < 60


async def test_token_is_signed_with_the_first_of_several_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JWT_SECRETS", json.dumps({"new": SECRET, "old": SECRET[::-1]}))
    sent = printed()
    assert jwt.get_unverified_header(sent)["kid"] == "new"
    assert (await verified(sent))["identity"] == "ada"


def test_lifetime_that_the_server_would_refuse_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_SECRET", SECRET)
    ended = CliRunner().invoke(main, [*COMMAND, "--ttl", "2d"])
    assert ended.exit_code == 1
    assert "longer than JWT_MAX_LIFETIME_SECONDS (86400)" in ended.output


@pytest.mark.parametrize("ttl", ["", "0", "-5", "soon", "1.5h", "8 h", "1e9", "9999999999"])
def test_invalid_duration_is_rejected(monkeypatch: pytest.MonkeyPatch, ttl: str) -> None:
    monkeypatch.setenv("JWT_SECRET", SECRET)
    ended = CliRunner().invoke(main, [*COMMAND, "--ttl", ttl])
    assert ended.exit_code == 2
    assert "is not a duration" in ended.output


@pytest.mark.parametrize("jwks", [None, "https://issuer.example/jwks.json"])
def test_missing_secret_is_reported(monkeypatch: pytest.MonkeyPatch, jwks: str | None) -> None:
    if jwks:
        monkeypatch.setenv("JWT_JWKS_URL", jwks)
    ended = CliRunner().invoke(main, COMMAND)
    assert ended.exit_code == 1
    assert "Error: JWT_SECRET is not set" in ended.output


@pytest.mark.parametrize(
    "names",
    [
        ("", "ada"),
        ("acme", ""),
        ("a\nb", "ada"),
        ("x" * 201, "ada"),
        ("*", "ada"),
        ("acme", "*"),
        ("acme", "a*"),
        ("acme", "ada "),
    ],
)
def test_invalid_name_is_rejected(monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]) -> None:
    monkeypatch.setenv("JWT_SECRET", SECRET)
    ended = CliRunner().invoke(main, ["token", "--tenant", names[0], "--user", names[1]])
    assert ended.exit_code == 1
    assert "Error: " in ended.output
