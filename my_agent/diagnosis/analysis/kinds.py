"""Kinds: what kind of statement a group of lines is. Two kinds are two witnesses."""

from my_agent.diagnosis.analysis.anomalies import Anomaly
from my_agent.diagnosis.reading.digest import Group

_STATES = ("kubectl-describe", "kubectl-get", "yaml", "df", "free", "top", "ps", "netstat", "table")


def kind_of(group: Group | Anomaly, source: str = "") -> str:
    """Return the kind of statement: `trace`, `event`, `state`, `access`, `metric`, or its level.

    Args:
        group: what is stated.
        source: the format of its source, which tells what a line is that says nothing alone.
    """
    kind = _kind(group, group.form)
    return _kind(group, source) if kind == "notice" and source else kind


def _kind(group: Group | Anomaly, form: str) -> str:
    if isinstance(group, Anomaly) and group.shift is not None:
        return "metric"
    if form.endswith("-trace"):
        return "trace"
    if form.endswith("-events"):
        return "event"
    if "access" in form:
        return "access"
    if form in ("cloudtrail", "gcp-audit", "audit"):
        return "audit"
    if form.startswith(("prometheus", "csv")):
        return "metric"
    if form.startswith(_STATES):
        return "state"
    if form == "probe":
        return "probe"
    if group.level in ("error", "warning"):
        return group.level
    return "trouble" if group.stance == "trouble" else "notice"
