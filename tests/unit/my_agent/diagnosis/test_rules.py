"""Rules: a cause takes two independent observations that say it, and none that says the opposite."""

import pytest

from my_agent.diagnosis.analysis import anomalies, rules
from my_agent.diagnosis.analysis.proposal import Proposal
from my_agent.diagnosis.reading import stance
from my_agent.diagnosis.reading.digest import Digest, Group, Place, Shift

START, SECOND = 1_700_000_000_000_000, 1_000_000
Line = tuple[str, str, float | None]


def propose(*sources: list[Line], form: str = "log4j") -> list[Proposal]:
    """Propose causes from lines: component, text, and seconds."""
    digests = {}
    for number, lines in enumerate(sources):
        made = Digest(form, len(lines))
        for line, (component, text, at) in enumerate(lines):
            when = None if at is None else START + int(at * SECOND)
            level = "error" if "ERROR" in text else ""
            made.groups.append(
                Group(form, component, level, stance.of(text, level), text, text, 1,
                      [Place(line * 100, line * 100 + 9, line + 1)], when, when)
            )  # fmt: skip
        times = [each.when for each in made.groups if each.when is not None]
        made.first, made.last = min(times, default=None), max(times, default=None)
        digests[f"s{number}"] = made
    return rules.propose(anomalies.find(digests))


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("disk_full", [("db", "write failed: No space left on device", 1), ("db", "/dev/sda1 50G 50G 0 100% /data disk full", None)]),
        ("out_of_memory", [("web", "Reason: OOMKilled", None), ("web", "Exit Code: 137", None)]),
        ("certificate_expired", [("shop", "x509: certificate has expired", 1), ("shop", "TLS handshake error: remote error", 2)]),
        ("image_pull", [("web", "Failed to pull image \"x:1\": manifest unknown", None), ("web", "ImagePullBackOff", None)]),
        ("wrong_architecture", [("web", "exec /app: exec format error", None), ("web", "Back-off restarting failed container", None)]),
        ("too_many_connections", [("db", "FATAL: sorry, too many clients already", 1), ("shop", "failed to connect to db", 2)]),
        ("unschedulable", [("web", "0/3 nodes are available: 3 Insufficient memory.", None), ("web", "PodScheduled   False", None)]),
        ("setting_missing", [("web", "Environment variable KEY is undefined", None), ("web", "Exit Code: 1", None)]),
        ("volume_missing", [("redis-pvc", "ProvisioningFailed: storageclass.storage.k8s.io \"fast\" not found", None), ("redis", "pod has unbound immediate PersistentVolumeClaims, 0/2 nodes are available", None)]),
        ("deadlock", [("db", "LATEST DETECTED DEADLOCK", None), ("db", "*** WE ROLL BACK TRANSACTION (2)", None)]),
        ("network_down", [("kernel", "AirPort: Link Down on en0", 1), ("mail", "connect failed: Network is down", 1)]),
    ],
)  # fmt: skip
def test_names_a_cause_that_two_observations_show(kind: str, lines: list[Line]) -> None:
    found = propose(lines)
    assert [each.kind for each in found] == [kind]
    assert len(found[0].quotes) == 2
    texts = [text for _, text, _ in lines]
    assert all(each.text in texts for each in found[0].quotes)


@pytest.mark.parametrize(
    "lines",
    [
        # One line is one observation, however much it says.
        [("db", "No space left on device, disk full, DiskPressure True, evicted", 1)],
        # The same statement of the same component is one kind.
        [("db", "No space left on device: a", 1), ("db", "No space left on device: b", 2)],
        # Words without trouble.
        [("db", "INFO disk full check passed, 12 % used", 1), ("db", "no space left on device: 0", 2)],
        [("web", "java -XX:+HeapDumpOnOutOfMemoryError", None), ("web", "no OOM kills, exit code 0", None)],
        [("db", "deadlock detector enabled", 1), ("db", "deadlocks: 0", 2)],
        [("shop", "certificate valid until 2031", 1), ("shop", "TLS handshake failed", 2)],
        # A cause is not named by effects alone.
        [("web", "Exit Code: 137", None), ("web", "Back-off restarting failed container", None)],
        # An effect long before its cause is none of it.
        [("web", "Environment variable KEY is undefined", 900), ("web", "Exit Code: 1", 1)],
        # An effect of another component that does not call the first is none.
        [("db", "FATAL: sorry, too many clients already", 1), ("mail", "failed to connect to smtp-relay", 2)],
    ],
)  # fmt: skip
def test_names_no_cause(lines: list[Line]) -> None:
    assert propose(lines) == []


def test_another_source_is_another_observation() -> None:
    line = "dial tcp: lookup stock-db: no such host"
    found = propose([("shop", line, 1)], [("cart", line, 2)])
    assert [each.kind for each in found] == ["dns_failure"]
    assert found[0].component == "stock-db"
    assert {each.source for each in found[0].quotes} == {"s0", "s1"}


def test_a_line_that_is_pasted_twice_is_one_observation() -> None:
    line = "dial tcp: lookup stock-db: no such host"
    assert propose([("shop", line, 1)], [("shop", line, 1)]) == []
    assert propose([("shop", line, 1)], [("", line, None)]) == []


def test_rows_of_one_table_are_one_observation() -> None:
    rows: list[Line] = [
        (name, f"/dev/{name} 50G 50G 0 100% /{name}", None) for name in ("data", "srv")
    ]
    assert propose(rows) == []
    snaps: list[Line] = [("a", "/dev/loop0 55M 55M 0 100% /snap/core/1", None)]
    assert propose(snaps, [("b", "write failed: No space left on device", 1)]) == []


def test_names_the_observations_behind_a_cause() -> None:
    lines = [("web", "Reason: OOMKilled"), ("web", "Exit Code: 137")]
    made = Digest("log4j", 2)
    for number, (component, text) in enumerate(lines):
        place = Place(number * 50, number * 50 + len(text), number + 1)
        made.groups.append(Group("log4j", component, "", "trouble", text, text, 1, [place]))
    (named,) = rules.name(anomalies.find({"a": made}))
    assert [each.places[0].line for each in named.behind] == [1, 2]
    assert [each.text for each in named.proposal.quotes] == [each.text for each in named.behind]


def test_the_opposite_contradicts() -> None:
    lines: list[Line] = [
        ("shop", "x509: certificate has expired", 1),
        ("shop", "TLS handshake error", 2),
        ("shop", "certificate valid until 2031", 3),
    ]
    assert propose(lines) == []
    assert propose(lines[:2])[0].refutation is not None


def test_a_metric_is_another_kind_of_observation() -> None:
    made = Digest("csv", 10, first=START, last=START + 3_600 * SECOND)
    place = Place(0, 9, 1)
    made.shifts = [
        Shift("mail", "cpu_usage", 0.05, 1.0, START + 60 * SECOND, place),
        Shift("mail", "latency_p99", 0.1, 4.0, START + 90 * SECOND, Place(10, 19, 2)),
    ]
    found = rules.propose(anomalies.find({"m": made}))
    assert [(each.kind, each.component) for each in found] == [("cpu_saturated", "mail")]
    made.shifts = made.shifts[1:]
    assert rules.propose(anomalies.find({"m": made})) == []


@pytest.mark.parametrize(
    ("metric", "before", "after", "is_named"),
    [
        ("CpuUsageRate(%)", 7, 98, True),
        ("CpuUsageRate(%)", 45, 68, False),
        ("cpu_cores", 0.2, 0.9, True),
        ("cpu_millis", 100, 2_000, True),
        ("cpu_millis", 100, 200, False),
        ("cpu_millis", 100, 3, False),
    ],
)
def test_a_processor_is_saturated_near_its_limit(
    metric: str, before: float, after: float, is_named: bool
) -> None:
    made = Digest("csv", 10, first=START, last=START + 3_600 * SECOND)
    made.shifts = [
        Shift("mail", metric, before, after, START + 60 * SECOND, Place(0, 9, 1)),
        Shift("mail", "latency_p99", 0.1, 4.0, START + 60 * SECOND, Place(0, 9, 1)),
    ]
    assert bool(rules.propose(anomalies.find({"m": made}))) == is_named


def test_a_long_statement_is_cut_in_the_sentence() -> None:
    long = f"Environment variable KEY is undefined {'x' * 500}"
    found = propose([("web", long, None), ("web", "Exit Code: 1", None)])
    assert len(found[0].cause) < rules.SAID + 100
    assert all(len(each.text) <= rules.LONGEST for each in found[0].quotes)
