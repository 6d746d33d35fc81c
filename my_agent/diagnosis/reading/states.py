"""States: what a value that a tool shows means, where the tool's words leave no doubt."""

import re

from my_agent.diagnosis.reading.record import words
from my_agent.diagnosis.reading.summary import Stance

_BAD = words(
    "crashloopbackoff oomkilled error evicted imagepullbackoff errimagepull createcontainerconfigerror"
    " createcontainererror invalidimagename runcontainererror containercannotrun failed notready unhealthy"
    " unschedulable failedscheduling failedmount failedattachvolume failedcreatepodsandbox backoff dead"
    " failedcreate backofflimitexceeded deadlineexceeded degraded outofsync nodenotready lost unknown"
    " containerstatusunknown terminated:error init:crashloopbackoff init:error nodelost preempting"
    " systemoom oomkilling freediskspacefailed imagegcfailed evictionthresholdmet failedpreemption"
    " progressdeadlineexceeded minimumreplicasunavailable failedbinding provisioningfailed networkunavailable"
    " unreachable down restarting paused failure missing suspended killing:error rejected nodehasdiskpressure"
    " errimageneverpull registryunavailable poststarthookerror failedpoststarthook failedkillpod"
)
_PENDING = frozenset(("pending", "containercreating", "podinitializing", "terminating", "waiting"))
_GOOD = words(
    "running completed succeeded ready bound active healthy synced true complete up available"
)
_OF_TEN = re.compile(r"(\d{1,9})/(\d{1,9})")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s?%")
_COUNTED_BAD = re.compile(r"(?<![\d.])[1-9]\d{0,8} (?:unavailable|failed)\b", re.IGNORECASE)
_EXITED = re.compile(r"Exited \((\d{1,5})\)")
_FULL, _ROOMY, _OFTEN = 95.0, 80.0, 3
_SHARES = ("use%", "iuse%", "capacity", "memory%", "cpu%", "used%", "mem %", "%iused", "mem%")
_STATES = (
    "status",
    "state",
    "reason",
    "phase",
    "health status",
    "sync status",
    "health",
    "active",
    "sync",
    "load",
)
# Conditions of nodes that are bad if true; all others are bad if false.
_PRESSURES = (
    "diskpressure",
    "memorypressure",
    "pidpressure",
    "networkunavailable",
    "outofdisk",
    "replicafailure",
)
_CONDITIONS = ("ready", "containersready", "initialized", "podscheduled", "available", "established",
               "complete", "progressing", *_PRESSURES)  # fmt: skip
_TELLING = words(
    "message description error lasterror last_error err reason details detail title msg"
)


def word(value: str) -> Stance | None:
    """Return what the word of a state means, or None if it may mean anything."""
    said = value.strip().strip("\"',").lower()
    if said in _BAD or said.startswith(("init:crash", "init:err", "init:oom")):
        return "trouble"
    if said in _PENDING:
        return "trouble"
    if said in _GOOD:
        return "fine"
    if (
        "(unhealthy)" in said
        or "notready" in said
        or said.startswith(("restarting (", "outofsync"))
    ):
        return "trouble"
    if (exited := _EXITED.match(value)) is not None:
        return "fine" if exited[1] == "0" else "trouble"
    return "fine" if said.startswith("up ") else None


def value(key: str, said: str) -> Stance | None:
    """Return what the value of a key means, or None if it may mean anything.

    Args:
        key: The name of a column or of a value, such as `Use%`, `Exit Code`, `ready`.
        said: Its value as a text.
    """
    name = key.strip().lower()
    plain = said.strip().strip("\"',")
    lower = plain.lower()
    if name in _SHARES and (share := _PERCENT.match(plain)) is not None:
        return _share(float(share[1]))
    if (
        name in ("exit code", "exitcode", "exit_code", "code")
        and plain.isdigit()
        and name != "code"
    ):
        return "fine" if plain == "0" else "trouble"
    if name in ("restart count", "restartcount", "restarts"):
        count = plain.partition(" ")[0]
        return "trouble" if count.isdigit() and len(count) < 9 and int(count) >= _OFTEN else None
    if name in ("ready", "completions") and (parts := _OF_TEN.fullmatch(plain)) is not None:
        return "trouble" if int(parts[1]) < int(parts[2]) else "fine" if parts[2] != "0" else None
    if name in _CONDITIONS and lower in ("true", "false", "unknown"):
        good = "false" if name in _PRESSURES else "true"
        return "fine" if lower == good else "trouble"
    if name in ("running", "healthy", "available", "up") and lower in ("true", "false"):
        return "fine" if lower == "true" else "trouble"
    if (
        name in ("failure", "failed", "degraded", "oomkilled", "network_partitions_detected")
        and lower == "true"
    ):
        return "trouble"
    if name in ("replicas", "pods statuses", "deployment status") and _COUNTED_BAD.search(plain):
        return "trouble"
    return word(plain.partition(" from ")[0]) if name in _STATES else None


def is_telling(key: str) -> bool:
    """Return whether the value of a key is a sentence that says what is the matter."""
    return key.strip().lower() in _TELLING


def metric(name: str, value: float) -> Stance | None:
    """Return what a value of a metric means that everybody exports in the same way."""
    if name in ("up", "probe_success", "mysql_up", "pg_up", "redis_up"):
        return "fine" if value == 1 else "trouble"
    if (
        name.endswith("_waiting_reason")
        or name == "kube_pod_container_status_last_terminated_reason"
    ):
        return None
    if name == "ALERTS":
        return "trouble" if value == 1 else None
    return None


def _share(share: float) -> Stance | None:
    if share >= _FULL:
        return "trouble"
    return "fine" if share <= _ROOMY else None
