"""Faults: the kinds of causes, and how logs and metrics show them."""

import re
from typing import NamedTuple


class Fault(NamedTuple):
    """A kind of cause.

    Attributes:
        title: in words, behind `because of`.
        logs: matches messages that show it, or None.
        metrics: matches names of metrics that show it, or None.
    """

    title: str
    logs: re.Pattern[str] | None
    metrics: re.Pattern[str] | None


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


UNKNOWN = "unknown"
DEPLOY = "bad_deploy"

FAULTS: dict[str, Fault] = {
    "disk_full": Fault(
        "a full disk",
        _any(
            r"no space left",
            r"\benospc\b",
            r"disk (?:is )?full",
            r"disk quota exceeded",
            r"read-only file system",
            r"could not (?:extend|write).{0,200}(?:file|block)",
        ),
        _any(r"disk|filesystem|volume|inode"),
    ),
    "out_of_memory": Fault(
        "too little memory",
        _any(
            r"out ?of ?memory",
            r"oom-?kill",
            r"cannot allocate memory",
            r"heap space",
            r"memory limit exceeded",
            r"exit(?:ed with)? (?:code|status) 137",
            r"allocation failed",
        ),
        _any(r"mem|heap|rss"),
    ),
    "cpu_saturation": Fault(
        "a saturated processor",
        _any(
            r"cpu (?:throttl|saturat|quota)",
            r"run queue",
            r"load average",
            r"event loop (?:is )?(?:lag|block)",
            r"gc overhead",
            r"thread starvation",
        ),
        _any(r"cpu|load|throttl"),
    ),
    "certificate_expired": Fault(
        "an expired certificate",
        _any(
            r"certificate (?:has |is )?expired",
            r"cert_has_expired",
            r"expired certificate",
            r"x509: certificate",
            r"certificate is not (?:yet )?valid",
        ),
        None,
    ),
    "dns_failure": Fault(
        "a failure of name resolution",
        _any(
            r"nxdomain",
            r"servfail",
            r"no such host",
            r"name resolution",
            r"getaddrinfo",
            r"could not resolve",
            r"name or service not known",
        ),
        _any(r"dns"),
    ),
    "pool_exhausted": Fault(
        "an exhausted pool of connections",
        _any(
            r"too many (?:connections|clients)",
            r"remaining connection slots",
            r"(?:connection )?pool (?:is )?(?:exhausted|timeout|limit|empty)",
            r"queuepool limit",
            r"no (?:idle|free) connections?",
        ),
        _any(r"connections|pool"),
    ),
    "network": Fault(
        "a fault of the network",
        _any(
            r"packet loss",
            r"no route to host",
            r"network (?:is )?unreachable",
            r"link (?:is )?down",
            r"retransmi",
            r"carrier lost",
        ),
        _any(r"packet|retransmit|network|latency_link"),
    ),
    "deadlock": Fault(
        "locks that block each other",
        _any(
            r"deadlock",
            r"lock wait timeout",
            r"could not obtain lock",
            r"blocked by (?:process|transaction)",
        ),
        _any(r"lock"),
    ),
    "quota": Fault(
        "an exceeded quota",
        _any(
            r"rate limit",
            r"quota exceeded",
            r"too many requests",
            r"\b(?:status|http|code)[ =:]+429\b",
        ),
        _any(r"quota|rate_limit"),
    ),
    "credentials": Fault(
        "refused credentials",
        _any(
            r"authentication failed",
            r"(?:invalid|bad|expired) (?:credentials|password|token|api key)",
            r"access denied for user",
            r"permission denied",
        ),
        None,
    ),
    "configuration": Fault(
        "a wrong configuration",
        _any(
            r"(?:invalid|bad|malformed) config",
            r"unknown (?:config )?key",
            r"missing (?:required )?(?:environment )?(?:variable|setting)",
            r"failed to (?:parse|load) (?:the )?config",
        ),
        None,
    ),
    DEPLOY: Fault(
        "a new version",
        _any(
            r"nullpointer",
            r"\btypeerror\b",
            r"\bkeyerror\b",
            r"\battributeerror\b",
            r"panic:",
            r"unhandled exception",
            r"(?:column|relation|table) \S+ does not exist",
            r"no such (?:method|column)",
            r"undefined (?:is not|method|variable)",
        ),
        None,
    ),
    "crash": Fault(
        "a crash",
        _any(
            r"segmentation fault|segfault",
            r"core dumped",
            r"crashloop",
            r"terminated (?:unexpectedly|by signal)",
            r"killed by signal",
            r"process died",
        ),
        _any(r"restarts"),
    ),
}
"""The known faults."""

CHANGE = _any(
    r"deploy(?:ed|ing|ment)?\b",
    r"roll(?:ed|ing)? ?out",
    r"released? v?\d",
    r"started version",
    r"upgraded? to",
    r"new version",
)
"""Matches messages about a change of the service's version."""

_SYMPTOM = _any(r"error|latency|p9\d|duration|5xx|fail|timeout")


def of_message(text: str) -> str | None:
    """Return the fault that a message shows, or None."""
    return next(
        (name for name, each in FAULTS.items() if each.logs and each.logs.search(text)), None
    )


def of_metric(name: str) -> str | None:
    """Return the fault that an abnormal value of a metric shows, or None.

    Error rates and latencies are symptoms of any fault.
    """
    if _SYMPTOM.search(name):
        return None
    return next(
        (fault for fault, each in FAULTS.items() if each.metrics and each.metrics.search(name)),
        None,
    )


def title(fault: str) -> str:
    """Return a fault in words."""
    return FAULTS[fault].title if fault in FAULTS else "an unknown fault"
