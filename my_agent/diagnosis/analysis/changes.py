"""Changes: lines that tell of something that was done, rather than of what went wrong."""

import re

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("deploy", re.compile(
        r"\b(?:deploy(?:ed|ing|ment of)|roll(?:ed|ing) ?out|released? v?\d|starting version|started version|upgrad(?:ed|ing) (?:to|from)"
        r"|new version|successfully pulled image|migration \S{1,60} (?:applied|started|completed))", re.IGNORECASE)),
    ("scale", re.compile(r"\b(?:scaled (?:up|down)|scalingreplicaset|new size: \d|resized? to|successfulrescale)", re.IGNORECASE)),
    ("configuration", re.compile(
        r"\b(?:config(?:uration)? (?:was )?(?:changed|reloaded|updated|applied)|reload(?:ed|ing) config|feature flag \S{1,60} (?:enabled|disabled|set|changed))", re.IGNORECASE)),
    ("shutdown", re.compile(
        r"\b(?:controlled shutdown|received (?:signal )?(?:sigterm|signal 15|15)|shutdown request|shutting down|stopping (?:service|server|container)"
        r"|normal shutdown|administrator command)", re.IGNORECASE)),
    ("start", re.compile(
        r"\b(?:linux version \d|starting up|server started|started container|database system is ready|ready for connections|boot(?:ed|ing) kernel"
        r"|restart(?:ed|ing) (?:service|server|container|the))", re.IGNORECASE)),
)  # fmt: skip


_CALL = re.compile(
    r"\b(?:Update|Put|Modify|Delete|Create|Attach|Detach|Revoke|Authorize|Stop|Terminate|Reboot|Disable)[A-Z][A-Za-z]{2,60}\b"
)
_AUDIT = ("audit", "cloudtrail")


def of(text: str, form: str) -> str:
    """Return which kind of change a line tells of, or an empty text.

    Args:
        text: The line.
        form: Its reader: an audit log has a line for each call that changes something.
    """
    if is_audit(form) and _CALL.search(text):
        return "configuration"
    return next((name for name, pattern in _PATTERNS if pattern.search(text)), "")


def is_audit(form: str) -> bool:
    """Return whether a reader is one of audit logs, which have a line for each call."""
    return any(each in form for each in _AUDIT)
