"""Redis URLs and prefixes: which are accepted or refused, and that no password is shown."""

import pytest

from langgraph_runtime_sql.errors import BadRedis
from langgraph_runtime_sql.events.redis.url import check_prefix, check_url, is_exposed, shown
from threadhold.platform import LangGraphPlatform


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6379/0",
        "redis://:secret@cache/15",
        "redis://user:p%40ss@10.0.0.1:7000/3?socket_timeout=3",
        "redis://[::1]:6379/0",
        "rediss://user:secret@cache.example.com:6380/0?ssl_cert_reqs=required",
        "unix:///run/redis.sock?db=2",
        "unix://user:secret@/run/redis.sock",
    ],
)
def test_url_of_a_single_server_is_accepted(url: str) -> None:
    check_url(url)
    assert "secret" not in shown(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "form"),
        ("localhost:6379", "form"),
        ("http://user:secret@cache", "form"),
        ("redis:/user:secret@cache", "form"),
        ("redis://user:secret@cache/0 ", "form"),
        ("redis://user:secret@cache/0\n", "form"),
        ("redis://", "host"),
        ("redis:///0", "host"),
        ("redis://user:secret@:6379/0", "host"),
        ("redis://user:secret@cache:port/0", "understood"),
        ("redis://user:secret@cache:99999/0", "understood"),
        ("redis://user:secret@cache/zero", "number"),
        ("redis://user:secret@cache/0/1", "number"),
        ("redis://user:secret@cache/0?no_such_option=1", "understood"),
        ("unix://", "socket"),
        ("redis+sentinel://user:secret@one:26379/primary", "Sentinel"),
        ("rediss+cluster://user:secret@one:6379", "Cluster"),
        ("redis://user:secret@one:6379,two:6379/0", "several"),
    ],
)
def test_unsupported_url_is_refused_without_showing_its_password(url: str, message: str) -> None:
    with pytest.raises(BadRedis, match=message) as refused:
        check_url(url)
    error: BaseException | None = refused.value
    assert "secret" not in str(error)
    assert error.__cause__ is None


@pytest.mark.parametrize("prefix", ["app", "threadhold:blue", "a" * 64, "A-1_b.c:d"])
def test_plain_name_is_accepted_as_prefix(prefix: str) -> None:
    check_prefix(prefix)


@pytest.mark.parametrize("prefix", ["", "*", "a b", "{a}", "a\n", "é", "a" * 65, ":a", "a?"])
def test_invalid_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(BadRedis, match="prefix"):
        check_prefix(prefix)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"redis_url": "redis://user:secret@cache:x/0"}, "understood"),
        ({"redis_url": "redis://user:secret@cache/0", "redis_prefix": "*"}, "prefix"),
    ],
)
def test_platform_refuses_invalid_redis_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadRedis, match=message) as refused:
        LangGraphPlatform(
            {"graphs": {"a": "some.module:graph"}}, database_url="postgresql://host/app", **options
        )  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "exposed"),
    [
        ("redis://cache:6379/0", True),
        ("redis://:secret@10.0.0.7:6379/0", True),
        ("redis://[2001:db8::1]/0", True),
        ("rediss://cache.example.com:6379/0", False),
        ("redis://localhost:6379/0", False),
        ("redis://127.0.0.9:6379/0", False),
        ("redis://[::1]:6379/0", False),
        ("unix:///run/redis.sock", False),
    ],
)
def test_another_host_without_tls_is_exposed(url: str, exposed: bool) -> None:
    assert is_exposed(url) is exposed
