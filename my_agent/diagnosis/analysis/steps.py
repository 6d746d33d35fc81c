"""Steps: what to look at next, chosen by what is there and what is missing."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from my_agent.diagnosis.analysis.anomalies import Anomalies, Anomaly

MOST = 6
"""Steps that are given."""
BLAMED, PODS = 2, 2

_ASKED: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...] = tuple(
    (re.compile(said, re.IGNORECASE), re.compile(known, re.IGNORECASE), step)
    for said, known, step in (
        (r"no space left|enospc|disk|ephemeral-storage|read-only file", r"disk|filesystem|df\b",
         "`df -h` and `df -i` on the host of {component}, and what grew there"),
        (r"oom|out ?of ?memory|heap|allocate|exit(?:ed)? (?:with )?(?:code|status)[: ]{1,9}137", r"mem|heap|rss",
         "the memory of {component} over time, and its limit"),
        (r"certificate|x509|handshake", r"cert_expir", "the dates of the certificate that {component} gets: `openssl s_client -connect HOST:443 | openssl x509 -noout -dates`"),
        (r"no such host|nxdomain|servfail|resolve|getaddrinfo|unknownhost|name or service", r"dns",
         "what the name server answers for the name that {component} can't resolve: `dig NAME`"),
        (r"too many (?:connections|clients)|connection slots|pool", r"connections|pool",
         "the number of open connections of {component}, and who holds them"),
        (r"deadlock|lock wait|could not obtain lock|blocked", r"lock", "which transactions hold the locks in {component}"),
        (r"timed? ?out|deadline exceeded|slow|latency|took \d", r"latency|duration|cpu",
         "the load, the processor and the latency of {component} over time"),
        (r"denied|forbidden|unauthori[sz]ed|authentication|credentials", r"^$", "which account {component} uses, and what changed in its rights"),
        (r"i/o error|faulty|degraded|medium error|unavail\b", r"smart", "the state of the devices of {component}: `dmesg`, `smartctl -a DEVICE`"),
    )
)  # fmt: skip
_RESTARTS = re.compile(
    r"back-off|crashloop|exit(?:ed)? (?:with )?(?:code|status)|restart count|terminated",
    re.IGNORECASE,
)
_NODE = re.compile(
    r"nodes are available|nodenotready|node is not ready|evict|pressure|low on resource",
    re.IGNORECASE,
)
_CLAIM = re.compile(
    r"persistentvolumeclaim|storageclass|failedmount|provisioningfailed", re.IGNORECASE
)


def next_steps(found: Anomalies, *, most: int = MOST) -> list[str]:
    """Return what to look at next, the most useful first."""
    return list(dict.fromkeys(_steps(found)))[:most]


def _steps(found: Anomalies) -> Iterator[str]:
    trouble = [each for each in found.trouble if each.novelty != "chronic"]
    yield from _blamed(found)
    yield from _kubernetes(found, trouble)
    if not trouble:
        yield from _nothing(found)
        return
    yield from _changed(found, trouble)
    yield from _asked(found, trouble)
    yield from _around(found, trouble)


def _blamed(found: Anomalies) -> Iterator[str]:
    """Yield the components that others blame and that say nothing themselves."""
    silent = [name for name in found.blamed if name not in found.components]
    silent.sort(
        key=lambda name: (
            -len({each.component for each in found.blamed[name]}),
            -found.blamed[name][0].score,
        )
    )
    for name in silent[:BLAMED]:
        who = next((each.component for each in found.blamed[name] if each.component), "a component")
        yield f"logs or metrics of {name} from that time: {who} names it, and there is no data of it"


def _kubernetes(found: Anomalies, trouble: list[Anomaly]) -> Iterator[str]:
    ours = [each for each in trouble if each.form.startswith(("kubectl", "k8s", "kubernetes"))]
    forms: dict[str, set[str]] = {}
    for group in (found.ranked, found.changes, found.fine):
        for each in group:
            forms.setdefault(each.component, set()).add(each.form)
    pods = dict.fromkeys(each.component for each in ours if each.component)
    for name in list(pods)[:PODS]:
        if not any("describe" in form for form in forms.get(name, ())):
            yield f"`kubectl describe pod {name}`"
        only = all(form.startswith("kubectl") for form in forms.get(name, ()))
        if only and any(_RESTARTS.search(each.text) for each in ours if each.component == name):
            yield f"`kubectl logs {name} --previous`: what its container said before it ended"
    if any(_NODE.search(each.text) for each in ours):
        yield "`kubectl describe node`: conditions, taints and what is allocated"
    if any(_CLAIM.search(each.text) for each in ours):
        yield "`kubectl describe pvc` and `kubectl get storageclass`"


def _nothing(found: Anomalies) -> Iterator[str]:
    first, last = found.clock.first, found.clock.last
    if first is not None and last is not None:
        yield f"logs from the time of the incident: these are from {_date(first)} to {_date(last)}, and nothing in them goes wrong"
    else:
        yield "logs from the time of the incident, with their dates: nothing in these goes wrong"
    yield "logs and metrics of the components that it calls: databases, queues, name servers"
    if not found.metrics:
        yield "metrics of it as CSV or from Prometheus: requests, errors, latency, processor and memory"


def _changed(found: Anomalies, trouble: list[Anomaly]) -> Iterator[str]:
    onset = found.clock.onset
    begun = (
        onset
        if onset is not None
        else min((e.when for e in trouble if e.when is not None), default=None)
    )
    early = [
        each
        for each in found.changes
        if each.change in ("deploy", "configuration", "scale")
        and begun is not None
        and each.when is not None
        and each.when <= begun + found.clock.tolerance
    ]
    if early:
        what = " ".join(early[-1].text.split())[:120]
        yield f"what changed with `{what}`, shortly before it began"


def _asked(found: Anomalies, trouble: list[Anomaly]) -> Iterator[str]:
    for said, known, step in _ASKED:
        if any(known.search(each) for each in found.metrics):
            continue
        shows = next(
            (each for each in trouble if each.kind == "trouble" and said.search(each.text)), None
        )
        if shows is not None:
            yield step.format(component=shows.component or "the system")


def _around(found: Anomalies, trouble: list[Anomaly]) -> Iterator[str]:
    """Yield what would show order and novelty: earlier lines, dates, and other views of the same."""
    if found.unread or found.dropped:
        yield "the same logs of a shorter time around the beginning: these were too long to read all of them"
    if found.clock.first is None:
        yield "the same lines with their dates, to see what came first"
    elif found.clock.baseline == 0:
        yield "lines from before it began, to see what is normal"
    if len({(each.source, each.form) for each in trouble}) == 1:
        yield "another view of the same time, such as metrics, or logs of the callers"


def _date(when: int) -> str:
    return datetime.fromtimestamp(when / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
