"""Anomalies: what is new, rare and wrong comes first, by component and with what to look at next."""

from my_agent.diagnosis.analysis import anomalies, blame, changes, overview, steps, timing
from my_agent.diagnosis.reading.digest import BUCKETS, Digest, Group, Place, Shift, Stance

SECOND = 1_000_000
HOUR = 3_600 * SECOND
START = 1_700_000_000 * SECOND


def group(
    text: str,
    *,
    at: float | None = None,
    until: float | None = None,
    count: int = 1,
    component: str = "shop",
    level: str = "error",
    stance: Stance = "trouble",
    form: str = "syslog",
) -> Group:
    """Return a group whose records are spread evenly from `at` to `until`, parts of an hour."""
    made = Group(form, component, level, stance, text, text, count, [Place(0, len(text), 1)])
    if at is not None:
        end = at if until is None else until
        made.when, made.last = START + int(at * HOUR), START + int(end * HOUR)
        for number in range(count):
            moment = at + (end - at) * number / max(1, count - 1)
            part = min(BUCKETS - 1, int(moment * BUCKETS))
            made.histogram[part] = made.histogram.get(part, 0) + 1
    return made


def digest(*groups: Group, shifts: tuple[Shift, ...] = ()) -> Digest:
    times = [each.when for each in groups if each.when is not None]
    for number, each in enumerate(groups):
        each.places = [Place(number * 100, number * 100 + len(each.text), number + 1)]
    made = Digest("syslog", lines=sum(each.count for each in groups), groups=list(groups))
    if times or shifts:
        made.first, made.last = START, START + HOUR
    made.shifts = list(shifts)
    return made


def normal(component: str = "shop") -> Group:
    text = "request handled"
    return group(
        text, at=0, until=1, count=200, component=component, level="info", stance="neutral"
    )


def test_what_is_new_comes_before_what_was_always_there() -> None:
    noise = group("cache miss failed", at=0, until=1, count=300)
    new = group("write failed", at=0.7, until=0.9, count=40)
    found = anomalies.find({"a": digest(normal(), noise, new)})
    assert [each.text for each in found.trouble] == ["write failed", "cache miss failed"]
    assert [each.novelty for each in found.trouble] == ["new", "chronic"]
    assert found.clock.onset == new.when
    assert found.clock.baseline >= timing.CHRONIC


def test_a_group_that_becomes_much_more_frequent_has_risen() -> None:
    before = group("timed out", at=0, until=1, count=1)
    before.histogram = {2: 1, 5: 1, 9: 1, **dict.fromkeys(range(45, 60), 20)}
    before.count = sum(before.histogram.values())
    before.when = START + HOUR * 2 // BUCKETS
    found = anomalies.find({"a": digest(normal(), before)})
    assert found.trouble[0].novelty == "risen"


def test_even_trouble_has_no_onset_and_without_dates_nothing_is_new() -> None:
    even = anomalies.find({"a": digest(normal(), group("failed", at=0, until=1, count=100))})
    assert even.clock.onset is None
    undated = anomalies.find({"a": digest(group("failed"))})
    assert undated.clock.first is None
    assert [each.novelty for each in undated.ranked] == ["unknown"]
    assert anomalies.find({}).ranked == []


def test_what_is_normal_is_no_anomaly_unless_there_is_much_of_it() -> None:
    burst = group("login refused", at=0.8, count=90, level="info", stance="neutral")
    fail = group("call failed", at=0.8)
    found = anomalies.find({"a": digest(normal(), burst, fail)})
    assert [(each.kind, each.text) for each in found.ranked] == [
        ("trouble", "call failed"),
        ("burst", "login refused"),
    ]


def test_many_refused_logins_are_shown_though_the_service_is_well() -> None:
    many = group("Failed password for root from 192.0.2.1", at=0, until=1, count=300,
                 level="", stance="neutral")  # fmt: skip
    assert [each.kind for each in anomalies.find({"a": digest(normal(), many)}).ranked] == ["burst"]


def test_events_of_kubernetes_are_never_chronic() -> None:
    event = group("ProvisioningFailed", at=0, until=0.9, count=42, form="kubectl-events")
    late = group("FailedScheduling", at=0.9, form="kubectl-events")
    found = anomalies.find({"a": digest(normal(), event, late)})
    assert {each.novelty for each in found.trouble} == {"unknown"}


def test_ranking_is_bounded() -> None:
    many = [group(f"failed {number}", at=0.5) for number in range(500)]
    assert len(anomalies.find({"a": digest(*many)}).ranked) == anomalies.MOST


def test_metrics_that_changed_are_anomalies() -> None:
    shift = Shift("shop", "cpu", 0.1, 0.9, START + HOUR // 2, Place(0, 5, 1))
    found = anomalies.find({"a": digest(shifts=(shift,))})
    assert found.ranked[0].text == "cpu rose from 0.1 to 0.9"
    assert found.ranked[0].kind == "shift"


def test_says_who_blames_whom() -> None:
    call = group("call to stock failed: 503", at=0.6, component="shop")
    down = group("accept failed", at=0.5, component="stock-7d9c6b5f4d-x2x9z")
    pay = group("could not connect to pay-db:5432", at=0.6, component="shop")
    found = anomalies.find({"a": digest(normal(), call, pay), "b": digest(down)})
    assert ("shop", "stock") in found.calls
    assert set(found.blamed) == {"stock", "pay-db"}
    assert "stock" in found.components
    told = steps.next_steps(found)
    assert told[0].startswith("logs or metrics of pay-db")
    assert not any("of stock from that time" in each for each in told)


def test_names_no_generic_words() -> None:
    assert blame.named("connection to the server failed", "shop", {"shop"}) == ()
    assert blame.named("lookup shop-db on 10.0.0.1:53: no such host", "shop", ()) == ("shop-db",)
    assert blame.named("DSN=user:pw@tcp(orders-db:3306)/orders", "shop", ()) == ("orders-db",)
    assert blame.canonical("web-6bc5876d74-4lbfd") == "web"


def test_shows_by_component_what_came_first_and_what_began_together() -> None:
    deploy = group("deployed v42", at=0.45, level="info", stance="neutral")
    first = group("write failed", at=0.5, component="db")
    later = group("call to db failed", at=0.501, component="shop")
    found = anomalies.find({"a": digest(normal(), deploy, later), "b": digest(first)})
    told = overview.shown(found)
    assert told.first is not None
    assert told.first.text == "write failed"
    assert [each.component for each in told.moments[0].lines] == ["db", "shop"]
    assert [each.text for each in told.changes] == ["deployed v42"]
    db = next(each for each in told.sections if each.component == "db")
    assert db.blamed_by == ("shop",)
    assert any("deployed v42" in each for each in steps.next_steps(found))


def test_sections_are_bounded_and_say_what_is_left_out() -> None:
    many = [group(f"failed {n}", at=0.5, component=f"c{n % 20}") for n in range(200)]
    told = overview.shown(anomalies.find({"a": digest(*many)}))
    assert len(told.sections) == overview.SECTIONS
    assert told.more == 20 - overview.SECTIONS
    assert all(len(each.lines) <= overview.LINES and each.more == 5 for each in told.sections)


def test_says_what_to_look_at_next() -> None:
    pod = group("Back-off restarting failed container", component="web-0", form="kubectl-events")
    claim = group("pod has unbound immediate PersistentVolumeClaims, 0/2 nodes are available",
                  component="web-0", form="kubectl-events")  # fmt: skip
    told = steps.next_steps(anomalies.find({"a": digest(pod, claim)}))
    assert "`kubectl describe pod web-0`" in told
    assert any("--previous" in each for each in told)
    assert any("kubectl describe pvc" in each for each in told)
    quiet = steps.next_steps(anomalies.find({"a": digest(normal())}))
    assert quiet[0].startswith("logs from the time of the incident: these are from 2023-11-14")


def test_tells_changes_from_trouble() -> None:
    assert changes.of("Scaled up replica set web-1 to 3", "kubectl-events") == "scale"
    assert changes.of("DeleteTrail by admin", "cloudtrail") == "configuration"
    assert changes.of("DeleteTopicsListener fired", "log4j") == ""
    assert changes.of("Starting controlled shutdown", "log4j") == "shutdown"
