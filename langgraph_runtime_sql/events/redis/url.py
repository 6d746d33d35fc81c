"""Check Redis URLs and key prefixes. No message shows a password."""

import re
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from langgraph_runtime_sql.errors import BadRedis

SCHEMES = ("redis", "rediss", "unix")
FORMS = "redis://user:password@host:6379/0, rediss://... (with TLS) or unix:///path/to/socket?db=0"
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")


def check_url(url: str) -> None:
    """Refuse an unusable Redis URL.

    Raises:
        BadRedis: the URL is invalid or names several servers.
    """
    # Imported late, because a process without Redis does not need the driver.
    import redis.asyncio as redis_client

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
        # The property raises for an invalid port.
        port = parts.port
        pool: Any = redis_client.from_url(url).connection_pool
        pool.make_connection()
    except (ValueError, TypeError, AttributeError, OSError) as error:
        # The cause would show the URL.
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
    """Refuse an unusable prefix of keys.

    Raises:
        BadRedis: it has characters that a pattern or key could misread.
    """
    if not _PREFIX.fullmatch(prefix):
        raise BadRedis(
            "The prefix of Redis keys must have 1 to 64 letters, digits or `_`, `.`, `:`, `-`, "
            "and begin with a letter or digit."
        )


def is_local(url: str) -> bool:
    """Return whether the URL names a Unix socket."""
    return urlsplit(url).scheme == "unix"


def is_exposed(url: str) -> bool:
    """Return whether the URL names another machine without TLS.

    A host name without a dot, such as `cache`, counts as another machine too.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() != "redis":
        return False
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def shown(url: str) -> str:
    """Return the URL without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
