"""Context keys: what a thread is about, as a short text that is equal for equal contexts.

`domain:<registrable domain>` where there is a website, else
`icp:<rule name>#<hash of the payload>`. Everything here is pure.
"""

import re
from typing import Any

from contexts import websites
from contexts.payloads import payload_hash

MAX_RULE_NAME = 100

# The list of suffixes is read at first use, which should not be inside of a transaction.
websites.registrable("example.com")
_SCHEME = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//+|^https?:/*", re.IGNORECASE)
_END_OF_HOST = re.compile(r"[/?#\\]")
_PORT = re.compile(r":[0-9]*$")


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
