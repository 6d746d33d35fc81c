"""Audit: events of clouds and of Kubernetes as objects, whose names are their own."""

from collections.abc import Mapping
from typing import Any

from my_agent.diagnosis.reading import access, dates
from my_agent.diagnosis.reading.record import Line, workload


def read(found: Mapping[str, Any], given: int) -> Line | None:
    """Read an event of a cloud's audit log or of Kubernetes. None: it is another object."""
    for key, reader in _READERS.items():
        if key in found:
            line = reader(found, given)
            if line is not None:
                return line
    return None


def _cloud_trail(found: Mapping[str, Any], given: int) -> Line | None:
    if "eventSource" not in found:
        return None
    error = " ".join(filter(None, (_text(found, "errorCode"), _text(found, "errorMessage"))))
    text = f"{_text(found, 'eventName')}{' by ' + _who(found) if _who(found) else ''}"
    component = _text(found, "eventSource").removesuffix(".amazonaws.com")
    level = "error" if error else "info"
    when = dates.parse(_text(found, "eventTime"), given)
    return Line("cloudtrail", when, component, level, f"{text}: {error}" if error else text)


def _who(found: Mapping[str, Any]) -> str:
    identity = _inside(found, "userIdentity")
    return _text(identity, "arn") or _text(identity, "invokedBy") or _text(identity, "type")


def _google(found: Mapping[str, Any], given: int) -> Line | None:
    payload = _inside(found, "protoPayload")
    if "methodName" not in payload:
        return None
    status = _inside(payload, "status")
    code, message = _text(status, "code"), _text(status, "message")
    resource = _text(payload, "resourceName")
    said = " ".join(filter(None, (_text(payload, "methodName"), resource)))
    if code or message:
        said = f"{said}: {' '.join(filter(None, (code, message)))}"
    severity = _text(found, "severity").lower()
    level = "error" if code or severity in ("error", "critical", "alert", "emergency") else "info"
    when = dates.parse(_text(found, "timestamp"), given)
    component = _text(payload, "serviceName").removesuffix(".googleapis.com")
    return Line("gcp-audit", when, component, "warning" if severity == "warning" else level, said)


def _kubernetes_audit(found: Mapping[str, Any], given: int) -> Line | None:
    status = _inside(found, "responseStatus")
    code = status.get("code")
    said = f"{_text(found, 'verb')} {_text(found, 'requestURI')}"
    said = " ".join(filter(None, (said, str(code or ""), _text(status, "message"))))
    level = access.level(code) if isinstance(code, int) else "info"
    when = dates.parse(_text(found, "requestReceivedTimestamp"), given)
    user = _text(_inside(found, "user"), "username")
    return Line("kubernetes-audit", when, user, level, said)


def _kubernetes_event(found: Mapping[str, Any], given: int) -> Line | None:
    about = _inside(found, "involvedObject") or _inside(found, "regarding")
    if not about or "reason" not in found:
        return None
    text = f"{_text(found, 'reason')}: {_text(found, 'message') or _text(found, 'note')}"
    level = "warning" if _text(found, "type") == "Warning" else "info"
    times = (_text(found, each) for each in ("firstTimestamp", "eventTime", "lastTimestamp"))
    when = next((each for each in (dates.parse(time, given) for time in times) if each), None)
    return Line("kubectl-events", when, workload(_text(about, "name")), level, text)


def _flow(found: Mapping[str, Any], given: int) -> Line | None:
    """Read an entry of the activity log of Azure."""
    if "resultType" not in found and "resultSignature" not in found:
        return None
    result = _text(found, "resultType") or _text(found, "resultSignature")
    described = _text(found, "resultDescription")
    bad = result.lower() in ("failure", "failed") or _text(found, "level").lower() == "error"
    text = " ".join(filter(None, (_text(found, "operationName"), result, described)))
    when = dates.parse(_text(found, "time"), given)
    component = _text(found, "resourceId").rpartition("/")[2]
    return Line("azure-activity", when, component, "error" if bad else "info", text)


_READERS = {
    "eventName": _cloud_trail,
    "protoPayload": _google,
    "requestReceivedTimestamp": _kubernetes_audit,
    "involvedObject": _kubernetes_event,
    "regarding": _kubernetes_event,
    "operationName": _flow,
}


def _inside(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return "" if value is None or isinstance(value, dict | list) else str(value)
