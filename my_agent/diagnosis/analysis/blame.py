"""Blame: which other components a line names as those it waits for or cannot reach."""

import re
from collections.abc import Collection

MOST = 4
"""Components that one line can name."""
_LINK = 40
_TOKEN = re.compile(r"[A-Za-z0-9][\w.-]*")
_CALLED = re.compile(
    r"(?:\b(?:calling|call to|calls to|upstream|connect(?:ing)? to|connection to|reach|request to|response from|dependency|dial(?:ing)? tcp(?:: lookup)?|lookup"
    r"|resolve(?: host)?|no such host|contacting|talk to|timeout (?:from|of)|for host|to host|host|server at|broker|database at)\b[ :=]{1,3}|@tcp\(|https?://|@)"
    r"[\"'`(]?(?:https?://)?(?:[\w.-]{1,40}@)?(?P<name>[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)*)",
    re.IGNORECASE,
)
_POD = re.compile(r"-[0-9a-f]{6,10}-[a-z0-9]{5}$")
_NO_NAMES = frozenset(
    (
        *("the", "a", "an", "to", "of", "for", "is", "was", "in", "on", "at", "by", "from", "host", "server", "service", "upstream"),
        *("database", "db", "localhost", "client", "peer", "backend", "any", "all", "port", "socket", "address", "remote", "it", "this"),
        *("main", "app", "application", "container", "pod", "node", "kernel", "kubelet", "error", "info", "warning", "default", "root"),
        *("user", "system", "process", "thread", "job", "task", "tcp", "udp", "http", "https", "name", "not", "no", "failed", "timeout"),
        *("closed", "refused", "reset", "lost", "local", "cache", "api", "log", "data", "text", "file", "test", "worker", "shutdown"),
        *("broker", "proxy", "master", "leader", "controller", "connection", "partition", "request", "response", "session", "resource"),
        *("transaction", "backoff", "namespace", "cluster", "image", "volume", "network", "disk", "memory", "query", "table", "driver"),
    )
)  # fmt: skip


_SEE = re.compile(r"\b(?:see|details?|documentation|visit|refer to|help)\b", re.IGNORECASE)


def canonical(name: str) -> str:
    """Return the name of what a pod belongs to; other names as they are."""
    return _POD.sub("", name)


def named(text: str, own: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the other components that a line names.

    Args:
        text: The line.
        own: Its component.
        known: Names of the components with data of their own.
    """
    found: dict[str, None] = {}
    for match in _CALLED.finditer(text):
        name = canonical(match["name"])
        is_link = _SEE.search(text, max(0, match.start() - _LINK), match.start()) is not None
        if name in known or (len(name) > 2 and name.lower() not in _NO_NAMES and not is_link):
            found[name] = None
    for match in _TOKEN.finditer(text):
        name = canonical(match[0].rstrip("."))
        if name in known and name.lower() not in _NO_NAMES:
            found[name] = None
    none = (own, canonical(own))
    return tuple(e for e in found if e not in none and not _is_class(e))[:MOST]


def _is_class(name: str) -> bool:
    """Return whether a name is that of a class of Java, which is a part of its own component."""
    return name.count(".") > 1 and name.rpartition(".")[2][:1].isupper()
