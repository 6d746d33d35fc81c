"""Context keys: what a thread is about, as a short text that is equal for equal contexts.

`domain:<registrable domain>` where there is a website, else
`icp:<rule name>#<hash of the payload>`. Everything here is pure.
"""

import hashlib
import ipaddress
import json
import re
from dataclasses import dataclass
from typing import Any

import idna
import tldextract

MAX_WEBSITE = 2048
MAX_RULE_NAME = 100
HASH_DIGITS = 16

# The suffix list inside the package: no network, no cache on disk. Private suffixes
# count, so that two shops on one platform are two companies.
_extract = tldextract.TLDExtract(
    suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True
)
# The list is read at first use, which should not be inside of a transaction.
_extract("example.com")
_SCHEME = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//+|^https?:/*", re.IGNORECASE)
_END_OF_HOST = re.compile(r"[/?#\\]")
_PORT = re.compile(r":[0-9]*$")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def context_key(website: str | None, rule_name: str, payload: Any) -> str:
    """The key of a context.

    Args:
        website: As a person types it; None or blank where there is none.
        rule_name: Names the context where there is no website.
        payload: JSON that tells rules of one name apart.

    Raises:
        ValueError: the website has no host name, the rule name is blank, longer than
            100 characters or not printable, the payload is not JSON.
    """
    if website is not None and website.strip():
        return f"domain:{domain(website)}"
    name = " ".join(rule_name.split())
    if not 0 < len(name) <= MAX_RULE_NAME or not name.isprintable():
        raise ValueError(f"a rule's name has 1 to {MAX_RULE_NAME} printable characters")
    return f"icp:{name}#{payload_hash(payload)}"


def domain(website: str) -> str:
    """The registrable domain of a website, in lower case and punycode.

    A host that has none (an address, a name of an intranet) stands for itself.

    Raises:
        ValueError: there is no host name in it.
    """
    host = _host(website)
    found = _extract(host).top_domain_under_public_suffix
    return found or host.removeprefix("www.")


def _host(website: str) -> str:
    text = website.strip().strip("<>\"'").strip()
    authority = _END_OF_HOST.split(_SCHEME.sub("", text), maxsplit=1)[0]
    host = authority.rpartition("@")[2].strip()
    problem = f"{website[:80]!r} is not a website such as example.com"
    if len(website) > MAX_WEBSITE:
        raise ValueError(problem)
    host = _PORT.sub("", host).strip()
    if host.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(host[1:].partition(']')[0])}]"
        except ValueError as error:
            raise ValueError(problem) from error
    if not host.isascii():
        try:
            host = idna.encode(host.rstrip(".。"), uts46=True).decode("ascii")
        except idna.IDNAError as error:
            raise ValueError(problem) from error
    host = host.rstrip(".").lower()
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError(problem)
    return host


def readable(host: str) -> str:
    """A domain as people write it, without punycode."""
    try:
        return idna.decode(host)
    except idna.IDNAError:
        return host


def canonical(payload: Any) -> str:
    """A payload as JSON that does not depend on the order of keys or the form of numbers.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.dumps(_plain(payload), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError("the payload is not JSON") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def payload_hash(payload: Any) -> str:
    """The first digits of the SHA-256 of the canonical payload; no payload is an empty one."""
    text = canonical({} if payload is None else payload)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


class Absent:
    """Where one of two documents has nothing."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True)
class Change:
    """One difference between two documents.

    Attributes:
        path: Keys and positions from the root.
        old: What was there, or ABSENT.
        new: What is there now, or ABSENT.
    """

    path: tuple[str | int, ...]
    old: Any
    new: Any


def diff(old: Any, new: Any, path: tuple[str | int, ...] = ()) -> list[Change]:
    """The smallest parts that differ; none exactly where the canonical forms are equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            change
            for key in keys
            for change in diff(old.get(key, ABSENT), new.get(key, ABSENT), (*path, key))
        ]
    if isinstance(old, list) and isinstance(new, list):
        return [
            change
            for at in range(max(len(old), len(new)))
            for change in diff(_item(old, at), _item(new, at), (*path, at))
        ]
    if ABSENT not in (old, new) and canonical(old) == canonical(new):
        return []
    return [Change(path, old, new)]


def _item(items: list[Any], at: int) -> Any:
    return items[at] if at < len(items) else ABSENT
