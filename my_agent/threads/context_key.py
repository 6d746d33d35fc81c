"""Context keys: a short text that identifies the subject of a thread. Equal contexts have equal keys.

A context with a website has the key `domain:<registrable domain>`. Any other context has the key
`icp:<rule name>#<hash of the payload>`. All functions are pure.
"""

import re
from typing import Any

from my_agent.threads.payloads import payload_hash
from my_agent.web import websites

MAX_RULE_NAME = 100

# The first use reads the list of public suffixes. Read it now: later it would delay a transaction.
websites.registrable("example.com")
_SCHEME = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//+|^https?:/*", re.IGNORECASE)
_END_OF_HOST = re.compile(r"[/?#\\]")
_PORT = re.compile(r":[0-9]*$")


def context_key(website: str | None, rule_name: str, payload: Any) -> str:
    """Compute the key of a context.

    Args:
        website: A website as a user types it. None or blank: the rule identifies the context.
        rule_name: The name of the rule. It counts only if there is no website.
        payload: JSON that distinguishes rules with the same name.

    Returns:
        `domain:<registrable domain>`, or `icp:<rule name>#<hash of the payload>`.

    Raises:
        ValueError: the website has no host name; or the rule name is blank, is longer than
            100 characters or has unprintable characters; or the payload is not JSON.
    """
    if website is not None and website.strip():
        return f"domain:{domain(website)}"
    name = " ".join(rule_name.split())
    if not 0 < len(name) <= MAX_RULE_NAME or not name.isprintable():
        raise ValueError(f"the rule name must have 1 to {MAX_RULE_NAME} printable characters")
    return f"icp:{name}#{payload_hash(payload)}"


def domain(website: str) -> str:
    """Return the registrable domain of a website, in lower case and punycode.

    A host without a registrable domain (an IP address, an intranet name) is returned as it is,
    without a leading `www.`.

    Args:
        website: A website as a user types it.

    Raises:
        ValueError: the website has no valid host name, or is longer than 2048 characters.
    """
    host = _host(website)
    return websites.registrable(host) or host.removeprefix("www.")


def _host(website: str) -> str:
    text = website.strip().strip("<>\"'").strip()
    authority = _END_OF_HOST.split(_SCHEME.sub("", text), maxsplit=1)[0]
    host = _PORT.sub("", authority.rpartition("@")[2].strip()).strip()
    problem = f"{website[:80]!r} is not a website such as example.com"
    if len(website) > websites.MAX_LENGTH:
        raise ValueError(problem)
    try:
        return websites.host_name(host)
    except ValueError as error:
        raise ValueError(problem) from error
