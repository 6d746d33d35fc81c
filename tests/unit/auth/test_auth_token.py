"""Tokens: which are accepted, and that all others are rejected."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from pydantic import ValidationError

from tests.support.issuer import (
    SECRET,
    bearer,
    claims,
    forged,
    private_key,
    public_jwk,
    public_pem,
    token,
)
from threadhold.auth import IdentitySettings
from threadhold.auth.identity import DEVELOPER, Authenticator, NotAuthenticated, User, label

HS256 = {"alg": "HS256", "typ": "JWT"}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the variables of the environment in which the tests run."""
    for name in IdentitySettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def settings(**given: Any) -> IdentitySettings:
    known: dict[str, Any] = {"app_env": "production"}
    for name in ("audience", "issuer"):
        known[f"jwt_allow_any_{name}"] = f"jwt_{name}" not in given
    if not given.keys() & {"jwt_secret", "jwt_secrets", "jwt_jwks_url", "jwt_jwks_file"}:
        known["jwt_secret"] = SECRET
    return IdentitySettings(**{**known, **given})


def scope(headers: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the ASGI scope of a request from this machine."""
    sent = {"host": "127.0.0.1:8123", **(headers or {})}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    return {"type": "http", "client": ("127.0.0.1", 5), "headers": raw, **changes}


async def verified(sent: str, **given: Any) -> User:
    return await Authenticator(settings(**given)).identify(scope(bearer(sent)))


async def is_rejected(sent: str, **given: Any) -> bool:
    """Return whether the token is rejected with the one answer that all rejections have."""
    with pytest.raises(NotAuthenticated) as refused:
        await verified(sent, **given)
    answer = refused.value.response()
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert json.loads(bytes(answer.body)) == {"detail": "A valid bearer token is needed"}
    return True


@pytest.fixture
def jwks(tmp_path: Path) -> Path:
    """Write a JWKS file with one key of each kind."""
    path = tmp_path / "jwks.json"
    keys = [public_jwk(algorithm, algorithm) for algorithm in ("RS256", "ES256", "EdDSA")]
    path.write_text(json.dumps({"keys": keys}))
    return path


async def test_valid_token_identifies_the_user() -> None:
    user = await verified(token(roles=["tenant_admin"]))
    assert user["identity"] == user["user_id"] == user["display_name"] == "ada"
    assert user["tenant_id"] == "acme"
    assert user["roles"] == user["permissions"] == ["tenant_admin"]
    assert user["store_namespace"] == ["acme", "ada"]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_public_key_verifies_tokens_of_its_issuer(jwks: Path, algorithm: str) -> None:
    sent = token(algorithm, algorithm)
    assert (await verified(sent, jwt_jwks_file=jwks))["identity"] == "ada"
    assert await is_rejected(token(algorithm, "another"), jwt_jwks_file=jwks)


async def test_claim_names_can_be_configured() -> None:
    sent = token(sub=None, tenant_id=None, email="a@b.c", org="x", scope="one two")
    user = await verified(
        sent, jwt_claim_user="email", jwt_claim_tenant="org", jwt_claim_roles="scope"
    )
    assert (user["identity"], user["tenant_id"], user["roles"]) == ("a@b.c", "x", ["one", "two"])


# --- tokens that must be rejected --------------------------------------------


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", "HS512", "HS384"])
async def test_alg_none_and_other_algorithms_are_rejected(alg: str) -> None:
    assert await is_rejected(forged({**HS256, "alg": alg}, claims()))
    assert await is_rejected(forged({**HS256, "alg": alg}, claims(), SECRET.encode()))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_public_key_is_not_accepted_as_hmac_secret(jwks: Path, algorithm: str) -> None:
    """Algorithm confusion: HS256 with a published key as the secret."""
    public = public_jwk(algorithm, algorithm)
    for secret in (public_pem(algorithm, algorithm), json.dumps(public), public.get("n", "x")):
        sent = forged({**HS256, "kid": algorithm}, claims(), secret.encode())
        assert await is_rejected(sent, jwt_jwks_file=jwks)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_key_is_used_only_with_its_own_algorithm(jwks: Path, algorithm: str) -> None:
    """CVE-2026-48523, GHSA-jq35-7prp-9v3f: a key from a JWKS bypassed the list of algorithms."""
    for kid in {"RS256", "ES256", "EdDSA"} - {algorithm}:
        assert await is_rejected(token(algorithm, kid), jwt_jwks_file=jwks)
    allowed = sorted({"RS256", "ES256", "EdDSA"} - {algorithm})
    sent = token(algorithm, algorithm)
    assert await is_rejected(sent, jwt_jwks_file=jwks, jwt_algorithms=allowed)


async def test_key_inside_the_token_is_ignored(jwks: Path) -> None:
    key = private_key("RS256", "stranger")
    for header in (
        {"jwk": public_jwk("RS256", "stranger"), "kid": "RS256"},
        {"jku": "http://127.0.0.1:1/jwks.json", "kid": "stranger"},
        {"x5u": "file:///etc/passwd"},
    ):
        sent = jwt.encode(claims(), key, algorithm="RS256", headers=header)
        assert await is_rejected(sent, jwt_jwks_file=jwks)


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": ["unknown"], "unknown": True},
        {"crit": []},
        {"crit": "x"},
        {"b64": False, "crit": ["b64"]},
        {"b64": False},
        {"b64": True},
    ],
    ids=str,
)
async def test_critical_extensions_are_rejected(header: dict[str, Any]) -> None:
    """CVE-2026-32597, GHSA-w7vc-732c-9m39."""
    assert await is_rejected(forged({**HS256, **header}, claims(), SECRET.encode()))


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": None},
        {"exp": 0},
        {"exp": int(time.time()) - 1},
        {"exp": "soon"},
        {"exp": [1]},
        {"exp": 1e400},
        {"nbf": int(time.time()) + 10**6},
        {"nbf": "x"},
        {"iat": int(time.time()) + 10**6},
        {"iat": {}},
        {"jti": 5},
    ],
    ids=lambda changes: ",".join(changes),
)
async def test_invalid_or_missing_times_are_rejected(changes: dict[str, Any]) -> None:
    assert await is_rejected(forged(HS256, claims(**changes), SECRET.encode()))


async def test_clock_difference_is_limited_to_the_leeway() -> None:
    late = token(exp=int(time.time()) - 20)
    assert await is_rejected(late, jwt_leeway_seconds=5)
    assert await verified(late, jwt_leeway_seconds=60)


@pytest.mark.parametrize(
    "changes", [{}, {"aud": ""}, {"aud": []}, {"aud": "other"}, {"aud": ["other"]}, {"aud": 5}]
)
async def test_configured_audience_is_required(changes: dict[str, Any]) -> None:
    assert await is_rejected(token(**changes), jwt_audience="threadhold")


async def test_one_of_several_audiences_suffices() -> None:
    assert await verified(token(aud=["other", "threadhold"]), jwt_audience="threadhold")
    assert await verified(token(aud="other")), "no audience is configured"


@pytest.mark.parametrize("issuer", [None, "", "https://evil.example", "https://issuer.example/"])
async def test_configured_issuer_is_required(issuer: str | None) -> None:
    assert await is_rejected(token(iss=issuer), jwt_issuer="https://issuer.example")
    assert await verified(token(iss="https://issuer.example"), jwt_issuer="https://issuer.example")


@pytest.mark.parametrize("claim", ["tenant_id", "sub"])
@pytest.mark.parametrize("value", [None, "", 5, True, ["acme"], {"a": 1}, "x" * 201, "a\nb", "\0"])
async def test_missing_tenant_or_user_is_rejected(claim: str, value: Any) -> None:
    assert await is_rejected(forged(HS256, claims(**{claim: value}), SECRET.encode()))


@pytest.mark.parametrize("claim", ["tenant_id", "sub"])
@pytest.mark.parametrize("name", ["*", "ac*", "**", " ", "acme ", " acme", r"a\u0000"])
async def test_ambiguous_names_are_rejected(claim: str, name: str) -> None:
    """`*` matches every label of a namespace, and blanks at the ends are invisible."""
    assert await is_rejected(token(**{claim: name}))


@pytest.mark.parametrize("roles", [5, {"tenant_admin": 1}, [["tenant_admin"]], [None], True])
async def test_roles_of_other_types_are_rejected(roles: Any) -> None:
    assert await is_rejected(token(roles=roles))


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "x",
        "a.b.c",
        "...",
        "e30.e30.e30",
        forged({}, claims(), SECRET.encode()),
        forged(HS256, [], SECRET.encode()),
        forged(HS256, "x", SECRET.encode()),
        forged({**HS256, "kid": 5}, claims(), SECRET.encode()),
        forged({**HS256, "kid": "x" * 9000}, claims(), SECRET.encode()),
        token()[:-4],
        token() + "x",
        token() + ".x",
        "é" * 10,
    ],
    ids=lambda sent: sent[:12] or "empty",
)
async def test_malformed_token_is_rejected(sent: str) -> None:
    assert await is_rejected(sent)


async def test_token_signed_with_other_secret_is_rejected() -> None:
    assert await is_rejected(forged(HS256, claims(), b"another secret of a good length!!"))
    assert await is_rejected(forged(HS256, claims(), b""))


async def test_reason_is_only_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "threadhold.auth.identity")
    sent = token(exp=1)
    assert await is_rejected(sent)
    assert "ExpiredSignatureError" in caplog.text
    assert sent not in caplog.text


# --- requests ---------------------------------------------------------------


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic YTpi", "Token {token}", "{token}", "Bearer{token}"],
)
async def test_other_authorization_schemes_are_rejected(authorization: str) -> None:
    authorization = authorization.replace("{token}", token())
    for env in ("local_dev", "production"):
        with pytest.raises(NotAuthenticated):
            sent = scope({"authorization": authorization})
            await Authenticator(settings(app_env=env)).identify(sent)


async def test_two_authorization_headers_are_rejected() -> None:
    sent = scope(bearer(token()))
    sent["headers"].append((b"authorization", f"Bearer {token(sub='eve')}".encode()))
    with pytest.raises(NotAuthenticated):
        await Authenticator(settings()).identify(sent)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-auth-scheme": "langsmith"},
        {"x-api-key": "x"},
        {"x-user-id": "ada", "x-tenant-id": "acme"},
        {"x-forwarded-for": "127.0.0.1"},
        {"cookie": f"authorization={token()}"},
    ],
    ids=lambda headers: ",".join(headers) or "none",
)
async def test_other_headers_do_not_authenticate(headers: dict[str, str]) -> None:
    for env in ("production", "staging"):
        for root_path in ("", "/noauth", "/noauth/x", "/ui"):
            with pytest.raises(NotAuthenticated):
                sent = scope(headers, root_path=root_path)
                await Authenticator(settings(app_env=env)).identify(sent)


async def test_local_dev_needs_no_token_but_verifies_one() -> None:
    local = Authenticator(settings(app_env="local_dev"))
    assert await local.identify(scope()) == DEVELOPER
    assert (await local.identify(scope(bearer(token()))))["identity"] == "ada"
    with pytest.raises(NotAuthenticated):
        await local.identify(scope(bearer(token(exp=1))))
    keyless = Authenticator(IdentitySettings(app_env="local_dev"))
    assert await keyless.identify(scope()) == DEVELOPER
    with pytest.raises(NotAuthenticated):
        await keyless.identify(scope(bearer(token())))


@pytest.mark.parametrize(
    ("client", "host", "here"),
    [
        ("127.0.0.1", "localhost:8123", True),
        ("::1", "[::1]:8123", True),
        (None, "127.0.0.1", True),
        ("127.0.0.1", "app.localhost", True),
        ("192.168.0.7", "127.0.0.1:8123", False),
        ("127.0.0.1", "evil.example:8123", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "[::1].evil.example", False),
        ("127.0.0.1", "", False),
    ],
)
async def test_developer_requests_come_from_and_name_this_machine(
    client: str | None, host: str, here: bool
) -> None:
    """DNS rebinding: a website's name can resolve to this machine, and its visitors are refused."""
    asked = scope({"host": host}, client=client and (client, 5))
    local = Authenticator(settings(app_env="local_dev"))
    if here:
        assert await local.identify(asked) == DEVELOPER
    else:
        with pytest.raises(NotAuthenticated):
            await local.identify(asked)


# --- purpose, lifetime and roles --------------------------------------------


@pytest.mark.parametrize("typ", ["rt+jwt", "logout+jwt", "dpop+jwt", "", 5, ["JWT"]], ids=str)
async def test_type_in_the_header_must_be_that_of_an_access_token(typ: Any) -> None:
    assert await is_rejected(forged({"alg": "HS256", "typ": typ}, claims(), SECRET.encode()))


@pytest.mark.parametrize("typ", ["jwt", "application/AT+JWT"])
async def test_types_of_access_tokens_are_accepted(typ: str) -> None:
    sent = forged({"alg": "HS256", "typ": typ}, claims(), SECRET.encode())
    assert (await verified(sent))["identity"] == "ada"
    assert await is_rejected(sent, jwt_types="other")
    # Not all issuers write it.
    untyped = forged({"alg": "HS256"}, claims(), SECRET.encode())
    assert (await verified(untyped))["identity"] == "ada"


@pytest.mark.parametrize(
    "said",
    [
        {"typ": "Refresh"},
        {"typ": "ID"},
        {"type": "refresh"},
        {"token_type": "refresh"},
        {"token_use": "id"},
        {"at_hash": "x"},
    ],
    ids=str,
)
async def test_refresh_and_id_tokens_are_rejected(said: dict[str, Any]) -> None:
    assert await is_rejected(token(**said))
    assert (await verified(token(typ="Bearer", token_use="access")))["identity"] == "ada"


async def test_lifetime_is_bounded() -> None:
    now = int(time.time())
    for wrong in (
        {"exp": 253_402_300_799},
        {"exp": now + 200, "iat": now - 7000},
        {"exp": now + 7300, "iat": None},
    ):
        assert await is_rejected(token(**wrong), jwt_max_lifetime_seconds=7190)
    for good in ({"exp": now + 7190}, {"exp": now + 7000, "iat": None}):
        assert await verified(token(**good), jwt_max_lifetime_seconds=7190)


async def test_operator_comes_only_from_a_configured_tenant_or_issuer() -> None:
    roles = ["operator", "tenant_admin"]
    plain, issued = token(roles=roles), token(roles=roles, iss="ours")
    assert (await verified(plain))["permissions"] == ["tenant_admin"]
    assert (await verified(plain, jwt_operator_tenants="ops, acme"))["roles"] == roles
    assert (await verified(plain, jwt_operator_tenants="ops"))["roles"] == ["tenant_admin"]
    both = {"jwt_issuer": "theirs,ours", "jwt_operator_issuers": "ours"}
    assert (await verified(issued, **both))["roles"] == roles
    other = token(roles=roles, iss="theirs")
    assert (await verified(other, **both))["roles"] == ["tenant_admin"]
    # Any issuer may be named, so the name proves nothing.
    assert (await verified(issued, jwt_operator_issuers="ours"))["roles"] == ["tenant_admin"]


async def test_several_secrets_are_accepted_at_once() -> None:
    new, old = "a new secret of the tests, long enough", SECRET
    secrets = json.dumps({"new": new, "old": old})
    given = {"jwt_secrets": secrets}
    for kid in (None, "old"):
        assert (await verified(token(kid=kid), **given))["identity"] == "ada"
    signed = jwt.encode(claims(), new, algorithm="HS256")
    assert (await verified(signed, **given))["identity"] == "ada"
    # The id selects one secret.
    assert await is_rejected(token(kid="new"), **given)
    assert await is_rejected(token(kid="unknown"), **given)
    assert await is_rejected(token(), jwt_secrets=json.dumps({"new": new}))
    # An expired token is reported as such, whichever secret signed it.
    assert await is_rejected(token(exp=1), **given)


@pytest.mark.parametrize("secrets", ["", "[]", "{}", "x", '{"a": "short"}', '{"a": 5}'])
def test_invalid_list_of_secrets_is_rejected_at_start(secrets: str) -> None:
    with pytest.raises(ValidationError):
        settings(jwt_secrets=secrets)


# --- settings ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["AUDIENCE", "ISSUER"])
@pytest.mark.parametrize("env", ["staging", "production"])
def test_audience_and_issuer_are_required_outside_local_dev(env: str, name: str) -> None:
    given: dict[str, Any] = {"jwt_audience": "here", "jwt_issuer": "me", "jwt_secret": SECRET}
    Authenticator(IdentitySettings(app_env=env, **given))
    del given[f"jwt_{name.lower()}"]
    with pytest.raises(ValueError, match=f"needs JWT_{name}.*JWT_ALLOW_ANY_{name}=true"):
        Authenticator(IdentitySettings(app_env=env, **given))
    Authenticator(IdentitySettings(app_env="local_dev", **given))
    given[f"jwt_allow_any_{name.lower()}"] = True
    Authenticator(IdentitySettings(app_env=env, **given))


@pytest.mark.parametrize("env", ["staging", "production"])
def test_key_is_required_outside_local_dev(env: str) -> None:
    with pytest.raises(ValueError, match=f"APP_ENV={env} needs a key.*JWT_SECRET.*JWT_JWKS_URL"):
        Authenticator(IdentitySettings(app_env=env))


@pytest.mark.parametrize("secret", ["", "short", "x" * 31])
def test_short_secret_is_rejected_at_start(secret: str) -> None:
    with pytest.raises(ValidationError, match="32 bytes"):
        settings(jwt_secret=secret)


@pytest.mark.parametrize(
    "secret",
    [
        public_pem("RS256"),
        public_pem("ES256"),
        json.dumps(public_jwk("RS256")),
        json.dumps({"keys": [public_jwk("EdDSA")]}),
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 someone@somewhere",
    ],
    ids=["pem", "pem of a curve", "jwk", "jwks", "ssh"],
)
def test_public_key_as_secret_is_rejected_at_start(secret: str) -> None:
    """GHSA-xgmm-8j9v-c9wx."""
    with pytest.raises(ValidationError, match="public key") as refused:
        settings(jwt_secret=secret)
    assert secret not in str(refused.value)


def test_secret_is_hidden_in_printed_settings() -> None:
    with pytest.raises(ValidationError) as refused:
        settings(jwt_secret="tiny secret")
    assert "tiny secret" not in str(refused.value)
    assert SECRET not in repr(settings())


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b", "/jwks.json", "http://", "x"])
def test_jwks_url_must_be_http(url: str) -> None:
    """GHSA-993g-76c3-p5m4."""
    with pytest.raises(ValidationError, match="http"):
        settings(jwt_jwks_url=url)


def test_two_kinds_of_keys_are_rejected(jwks: Path) -> None:
    with pytest.raises(ValidationError, match="JWT_SECRET and JWT_JWKS_FILE exclude each other"):
        settings(jwt_secret=SECRET, jwt_jwks_file=jwks)


@pytest.mark.parametrize("algorithms", ["HS256", "none", "RS256,HS256", ","])
def test_jwks_accepts_only_public_key_algorithms(jwks: Path, algorithms: str) -> None:
    with pytest.raises(ValidationError):
        settings(jwt_jwks_file=jwks, jwt_algorithms=algorithms)


def test_settings_survive_the_environment(monkeypatch: pytest.MonkeyPatch, jwks: Path) -> None:
    given = settings(jwt_jwks_file=jwks, jwt_algorithms="ES256, EdDSA", jwt_audience="x")
    for name, value in given.environment().items():
        monkeypatch.setenv(name, value)
    assert IdentitySettings() == given


# --- store labels -----------------------------------------------------------


def test_different_names_have_different_labels() -> None:
    names = ["a", "a.b", "a%2Eb", "a/b", "ä", "A", "a b", "%", "_", "*", "a@b.c", "a%2eb"]
    labels = [label(name) for name in names]
    assert len(set(labels)) == len(names)
    assert not any("." in each or "*" in each for each in labels)


def test_labels_are_valid_for_stores() -> None:
    """Stores reserve one root label for themselves."""
    labels = {name: label(name) for name in ("langgraph", "%6Canggraph", "Langgraph")}
    assert labels["langgraph"] != "langgraph"
    assert len(set(labels.values())) == len(labels)
