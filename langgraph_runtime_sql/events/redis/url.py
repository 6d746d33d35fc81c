"""Redis URLs and key prefixes: what may be given. Nothing here shows a password."""

import re
from typing import Any
from urllib.parse import urlsplit

from langgraph_runtime_sql.errors import BadRedis

SCHEMES = ("redis", "rediss", "unix")
FORMS = "redis://user:password@host:6379/0, rediss://... (with TLS) or unix:///path/to/socket?db=0"
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")


def check_url(url: str) -> None:
    """Refuse a URL that no client can be made of.

    Raises:
        BadRedis: it is none, or names several servers.
    """
    scheme = url.partition("://")[0].lower()
    if "sentinel" in scheme or "cluster" in scheme or "," in url.rpartition("@")[2]:
        raise BadRedis(
            "The Redis URL names several servers. Sentinel and Cluster are not supported: name "
            f"one primary, or a proxy in front of it, as {FORMS}."
        )
    if scheme not in SCHEMES or "://" not in url or re.search(r"\s", url):
        raise BadRedis(f"The Redis URL must be of the form {FORMS}.")
    try:
        parts = urlsplit(url)
        # Reading it is what checks it.
        port = parts.port
        _connection(url)
    except (ValueError, TypeError, AttributeError, OSError) as error:
        # Without the cause, which would show the URL.
        raise BadRedis(
            f"The Redis URL has a part that cannot be understood ({type(error).__name__}); "
            f"it must be of the form {FORMS}."
        ) from None
    if scheme == "unix" and not parts.path.strip("/"):
        raise BadRedis("The Redis URL names no socket; it must be unix:///path/to/socket.")
    if scheme != "unix" and (not parts.hostname or port == 0):
        raise BadRedis(f"The Redis URL names no host; it must be of the form {FORMS}.")
    if scheme != "unix" and not re.fullmatch(r"/?|/\d{1,5}", parts.path):
        raise BadRedis("The Redis URL must end in the number of a database, such as /0.")


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that could be mistaken for a pattern or a part of a key.

    Raises:
        BadRedis: it is one.
    """
    if not _PREFIX.fullmatch(prefix):
        raise BadRedis(
            "The prefix of Redis keys must have 1 to 64 letters, digits or `_`, `.`, `:`, `-`, "
            "and begin with a letter or digit."
        )


def is_local(url: str) -> bool:
    """Whether it names a socket of this machine."""
    return urlsplit(url).scheme == "unix"


def shown(url: str) -> str:
    """The URL as people may see it: without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _connection(url: str) -> Any:
    """A connection that is not opened; what it cannot be made of raises."""
    import redis.asyncio as redis_client

    pool: Any = redis_client.from_url(url).connection_pool
    return pool.make_connection()
