"""Reading: every kind of text that people paste, in bounded size, with places that lead back to it."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from my_agent.diagnosis.reading import dates, scan, sources
from my_agent.diagnosis.reading.digest import GROUPS, PLACES, QUOTE, Digest, Group, digest
from my_agent.diagnosis.reading.record import micros

NOW = micros(datetime(2026, 3, 2, 12, 0, tzinfo=UTC))
AT = micros(datetime(2026, 3, 2, 9, 40, 1, tzinfo=UTC))
TYPE = TypeAdapter(Digest)


def read(text: str, name: str = "") -> Digest:
    """Return the digest of a text that was given at `NOW`."""
    return digest(text, name, "log", "", NOW)


def only(text: str, name: str = "") -> Group:
    """Return the only group of a text."""
    [group] = read(text, name).groups
    return group


def bad(found: Digest) -> list[tuple[str, str]]:
    """Return component and text of what says that something is wrong."""
    return [(each.component, each.text) for each in found.groups if each.stance == "trouble"]


@pytest.mark.parametrize(
    ("form", "line", "component", "level", "text"),
    [
        ("json", '{"ts":"2026-03-02T09:40:01Z","level":"ERROR","service":"pay","msg":"boom"}', "pay", "error", "boom"),
        ("json", '{"@timestamp":"2026-03-02T09:40:01Z","log.level":"warn","message":"hot","service":{"name":"pay"}}', "pay", "warning", "hot"),
        ("json", '{"timestamp":"2026-03-02T09:40:01Z","severity_text":"ERROR","body":"boom","resource":{"service.name":"pay"}}', "pay", "error", "boom"),
        ("json", '{"level":50,"time":1772444401000,"name":"pay","msg":"boom","err":{"message":"no route"}}', "pay", "error", "boom: no route"),
        ("json", '{"t":{"$date":"2026-03-02T09:40:01.000+00:00"},"s":"W","c":"STORAGE","msg":"slow"}', "STORAGE", "warning", "slow"),
        ("json", '{"__REALTIME_TIMESTAMP":"1772444401000000","PRIORITY":"3","SYSLOG_IDENTIFIER":"pay","MESSAGE":"boom"}', "pay", "error", "boom"),
        ("json", '{"time":"2026-03-02T09:40:01Z","req":{"method":"GET","url":"/a?b=1"},"res":{"statusCode":503},"msg":"done","app":"pay"}', "pay", "error", "done GET /a 503"),
        ("logfmt", 'time=2026-03-02T09:40:01Z level=warn service=pay msg="slow \\"call\\"" err=timeout', "pay", "warning", 'slow "call": timeout'),
        ("logfmt", "ts=2026-03-02T09:40:01Z caller=api.go:85 method=Health took=40us", "api.go:85", "", "method=Health took=40us"),
        ("syslog", "Mar  2 09:40:01 host pay[12]: write failed", "pay", "", "write failed"),
        ("syslog", "<12>1 2026-03-02T09:40:01Z host pay 12 - - hot", "pay", "warning", "hot"),
        ("syslog", "2026-03-02T09:40:01.000000+00:00 host pay[12]: hot", "pay", "", "hot"),
        ("syslog", 'Mar  2 09:40:01 host k3s[7]: time="2026-03-02T09:40:01Z" level=error msg="no leader"', "k3s", "error", "no leader"),
        ("access", '10.0.0.1 - - [02/Mar/2026:09:40:01 +0000] "GET /a?b=1 HTTP/1.1" 502 12 "-" "curl"', "", "error", "GET /a HTTP/1.1 502"),
        ("access", '2026-03-02T09:40:01Z "GET /a HTTP/1.1" 404 -', "", "warning", "GET /a HTTP/1.1 404"),
        ("klog", "E0302 09:40:01.000000       1 main.go:12] bad call", "main.go", "error", "bad call"),
        ("log", "2026-03-02 09:40:01,000 ERROR [pay] bad", "pay", "error", "bad"),
        ("log", "[2026-03-02T10:40:01+01:00] [WARN] pay: hot", "pay", "warning", "hot"),
        ("log", "2026-03-02 09:40:01.000 UTC [44] FATAL:  disk full", "", "error", "disk full"),
        ("log", "2026-03-02 09:40:01 [error] 12#12: *3 connect() failed", "", "error", "*3 connect() failed"),
        ("log", "[Mon Mar 02 09:40:01.000000 2026] [core:error] [pid 12:tid 3] AH00124: loop", "core", "error", "AH00124: loop"),
        ("log", "Mon Mar  2 09:40:01 UTC 2026 ERROR: no database", "", "error", "no database"),
        ("log", "26/03/02 09:40:01 INFO executor.Executor: ready", "executor.Executor", "info", "ready"),
        ("log", "260302 094001 148 WARN dfs.DataNode$Xceiver: late", "dfs.DataNode$Xceiver", "warning", "late"),
        ("log", "03-02 09:40:01.000  1702  2395 E WindowManager: gone", "WindowManager", "error", "gone"),
        ("log", "2026-03-02 09:40:01,000 - WARN  [Worker:188:Manager$Send@688] - leaving", "Manager$Send", "warning", "leaving"),
        ("log", "2026-03-02 09:40:01,000 INFO [main] org.acme.App: up", "org.acme.App", "info", "up"),
        ("log", "2026-03-02 09:40:01.000 ERROR 1 --- [nio-8080-exec-1] c.a.Pay : boom", "c.a.Pay", "error", "boom"),
        ("log", "2026-03-02 09:40:01, Info                  CBS    loaded", "CBS", "info", "loaded"),
        ("log", "2026-03-02 09:40:01,000 - shop.pay - ERROR - boom", "shop.pay", "error", "boom"),
        ("log", "2026-03-02T09:40:01.000Z 0 [ERROR] [MY-010119] [Server] Aborting", "Server", "error", "Aborting"),
        ("log", "2026-03-02T09:40:01.000Z\terror\tqueue/sender.go:128\tdropped", "queue/sender.go", "error", "dropped"),
        ("redis", "1:M 02 Mar 2026 09:40:01.000 # Out of space", "redis", "warning", "Out of space"),
        ("piped", "20260302-9:40:1:0|Step_LSC|30002312|onChanged 3579", "Step_LSC", "", "onChanged 3579"),
        ("bgl", "- 1772444401 2026.03.02 R02 2026-03-02-09.40.01.000000 R02 RAS KERNEL FATAL parity error", "KERNEL", "error", "parity error"),
        ("cluster", "- 1772444401 2026.03.02 dn1 Mar 2 09:40:01 dn1/dn1 crond[2915]: closed", "crond", "", "closed"),
        ("hpc", "134681 node-246 unix.hw state.off 1772444401 1 Component is off", "unix.hw", "", "state.off Component is off"),
        ("dated", "[03.02 09:40:01] chrome.exe - proxy.example:80 close, 0 bytes", "chrome.exe", "", "proxy.example:80 close, 0 bytes"),
        ("cloudtrail", json.dumps({"eventTime": "2026-03-02T09:40:01Z", "eventSource": "s3.amazonaws.com", "eventName": "PutObject", "errorCode": "AccessDenied"}), "s3", "error", "PutObject: AccessDenied"),
        ("gcp-audit", json.dumps({"timestamp": "2026-03-02T09:40:01Z", "severity": "ERROR", "protoPayload": {"serviceName": "compute.googleapis.com", "methodName": "insert", "status": {"code": 8, "message": "quota"}}}), "compute", "error", "insert: 8 quota"),
        ("kubectl-events", json.dumps({"type": "Warning", "reason": "BackOff", "message": "again", "lastTimestamp": "2026-03-02T09:40:01Z", "involvedObject": {"name": "pay-6bc5876d74-4lbfd"}}), "pay", "warning", "BackOff: again"),
    ],
)  # fmt: skip
def test_each_format_is_read(form: str, line: str, component: str, level: str, text: str) -> None:
    group = only(line)
    assert (group.form, group.component, group.level, group.text) == (form, component, level, text)
    assert group.when == AT


@pytest.mark.parametrize(
    ("line", "component", "level", "text"),
    [
        ("web-1  | \x1b[31mERROR\x1b[0m no route", "web", "error", "no route"),
        ("pod/pay-6bc5876d74-4lbfd/app 2026-03-02T09:40:01Z ERROR boom", "pay", "error", "boom"),
        ("2026-03-02T09:40:01.5Z stderr F level=error msg=boom", "", "error", "boom"),
        ("nova-api.log.1 2026-03-02 09:40:01 WARN nova.wsgi: late", "nova-api", "warning", "late"),
        ("INFO:     10.0.0.1:5 - \"GET /a HTTP/1.1\" 500 Internal", "", "error", "GET /a HTTP/1.1 500"),
        ("ERROR:shop.pay:boom", "shop.pay", "error", "boom"),
        ("[  516.671899][    C1] watchdog: BUG: soft lockup", "kernel", "error", "watchdog: BUG: soft lockup"),
    ],
)  # fmt: skip
def test_what_tools_put_before_a_line_is_read(
    line: str, component: str, level: str, text: str
) -> None:
    group = only(line)
    assert (group.component, group.level, group.text) == (component, level, text)


def test_a_named_source_is_the_component_of_its_loggers() -> None:
    line = "2026-03-02 09:40:01,000 ERROR [main] org.acme.Pay: boom"
    assert only(line, "/var/log/payments.log.1").component == "payments"
    assert only(line, "kubectl logs -n shop deploy/payments --tail 5").component == "payments"
    assert only(line, "app.log").component == "org.acme.Pay"


def test_places_lead_to_the_lines() -> None:
    text = "first\r\n\n2026-03-02 09:40:01,000 ERROR [pay] bad \u00e9\r\nodd"
    one, two, three = read(text).groups
    shown = [text[each.places[0].start : each.places[0].end] for each in (one, two, three)]
    assert shown == ["first", "2026-03-02 09:40:01,000 ERROR [pay] bad \u00e9", "odd"]
    assert [each.places[0].line for each in (one, two, three)] == [1, 3, 4]
    # What has no date follows the line before it.
    assert (three.form, three.when) == ("text", AT)
    assert read(text).unknown == 2


def test_a_trace_is_one_record_that_tells_its_cause() -> None:
    java = (
        "2026-03-02 09:40:01,000 ERROR [pay] request failed\n"
        "java.lang.IllegalStateException: wrapped\n"
        "\tat org.acme.Pay.run(Pay.java:12)\n"
        "Caused by: java.io.IOException: No space left on device\n"
        "\tat org.acme.Disk.write(Disk.java:7)\n"
        "\t... 3 more\n"
        "2026-03-02 09:40:02,000 INFO [pay] next"
    )
    first, second = read(java).groups
    assert first.text == "request failed\nCaused by: java.io.IOException: No space left on device"
    assert java[first.places[0].start : first.places[0].end].endswith("... 3 more")
    assert second.text == "next"


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("python-trace", "Traceback (most recent call last):\n  File \"a.py\", line 3, in run\n    x()\nKeyError: 'total'", "KeyError: 'total'"),
        ("java-trace", "Exception in thread \"main\" java.lang.OutOfMemoryError: Metaspace\n\tat a.B.c(B.java:3)", "Exception in thread \"main\" java.lang.OutOfMemoryError: Metaspace"),
        ("go-trace", "panic: tx closed\n\ngoroutine 1 [running]:\nmain.run(0xc000, {0x1, 0x2})\n\t/app/main.go:7 +0x2c\nexit status 2", "panic: tx closed"),
        ("node-trace", "TypeError: x is not a function\n    at run (/app/a.js:3:4)\n    at node:internal:12", "TypeError: x is not a function"),
        ("dotnet-trace", "Unhandled exception. System.IO.IOException: disk\n   at Shop.Pay.Run() in /src/Pay.cs:line 4", "Unhandled exception. System.IO.IOException: disk"),
    ],
)  # fmt: skip
def test_bare_traces_are_errors(form: str, text: str, said: str) -> None:
    group = only(text)
    assert (group.form, group.level, group.stance, group.text) == (form, "error", "trouble", said)


DESCRIBED = """Name:             pay-6bc5876d74-4lbfd
Namespace:        shop
Containers:
  app:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Ready:          False
    Restart Count:  16
    Limits:
      memory:  50Mi
Conditions:
  Type              Status
  Initialized       True
  Ready             False
Volumes:
  token:
    Type:  Projected
Events:
  Type     Reason   Age                    From     Message
  ----     ------   ----                   ----     -------
  Normal   Pulled   56m (x5 over 58m)      kubelet  Container image "pay:1" already present
  Warning  BackOff  3m19s (x256 over 58m)  kubelet  Back-off restarting failed container
"""


def test_what_kubectl_describes_is_read() -> None:
    found = read(DESCRIBED)
    assert (found.form, found.unknown) == ("kubectl-describe", 0)
    assert {each.component for each in found.groups} == {"pay"}
    assert bad(found) == [
        ("pay", "app, State: Waiting"),
        ("pay", "app, State, Reason: CrashLoopBackOff"),
        ("pay", "app, Last State, Reason: OOMKilled"),
        ("pay", "app, Last State, Exit Code: 137"),
        ("pay", "app, Ready: False"),
        ("pay", "app, Restart Count: 16"),
        ("pay", "Ready False"),
        ("pay", "BackOff: Back-off restarting failed container"),
    ]
    event = found.groups[-1]
    assert (event.form, event.level, event.count) == ("kubectl-events", "warning", 256)
    assert event.when == NOW - (3 * 60 + 19) * 1_000_000
    assert any(each.text == "app, Limits, memory: 50Mi" for each in found.groups)


def test_ages_tell_no_time_where_the_source_is_old() -> None:
    old = DESCRIBED.replace(
        "Conditions:", "    Started: Tue, 12 Aug 2025 06:42:07 +0200\nConditions:"
    )
    assert read(old).groups[-1].when is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (("NAME                   READY   STATUS             RESTARTS      AGE\n"
         "pay-6bc5876d74-4lbfd   0/1     CrashLoopBackOff   16 (3m ago)   58m\n"
         "web-6bc5876d74-x4lbf   1/1     Running            0             58m\n"),
         ["pay"]),
        (("Filesystem      Size  Used Avail Use% Mounted on\n"
         "/dev/sda1        50G   50G     0 100% /\ntmpfs           7.8G     0  7.8G   0% /dev/shm\n"),
         ["/"]),
        (("               total        used        free      shared  buff/cache   available\n"
         "Mem:           15914       15700          90         100         124          60\n"), ["Mem:"]),
        ("NAME      READY   UP-TO-DATE   AVAILABLE   AGE\npay       0/3     3            0           4d\n", ["pay"]),
        ("default   pay-747ccfb9db-78qds   0/1   CrashLoopBackOff   1 (8s ago)   12s", ["pay"]),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: pay\nstatus:\n  phase: Failed\n", ["pay"]),
    ],
)  # fmt: skip
def test_rows_that_state_a_bad_value_are_trouble(text: str, wanted: list[str]) -> None:
    found = read(text)
    assert [component for component, _ in bad(found)] == wanted
    assert found.unknown == 0


def test_events_in_a_document_have_places_of_their_own() -> None:
    records = [
        {"eventTime": "2026-03-02T09:40:01Z", "eventSource": "ec2.amazonaws.com", "eventName": name}
        for name in ("RunInstances", "StopInstances")
    ]
    for text in (json.dumps({"Records": records}), json.dumps({"Records": records}, indent=2)):
        one, two = read(text).groups
        place = two.places[0]
        assert json.loads(text[place.start : place.end]) == records[1]
        assert text.count("\n", 0, place.start) == place.line - 1
        assert (one.component, two.text) == ("ec2", "StopInstances")


def test_other_documents_are_read_line_by_line() -> None:
    found = read(
        json.dumps({"data": {"partitions_detected": True, "nodes": [{"running": False}]}}, indent=2)
    )
    assert (found.form, found.unknown) == ("json", 0)
    assert len(bad(found)) == 1


def test_numbers_that_tell_good_from_bad_are_no_one_group() -> None:
    lines = [
        f"2026-03-02 09:40:0{n},000 INFO [pay] disk at {n} % of 10.0.0.{n}" for n in range(1, 9)
    ]
    lines += ["2026-03-02 09:40:09,000 INFO [pay] job failed with 3 errors"]
    lines += ["2026-03-02 09:40:09,000 INFO [pay] job failed with 0 errors"]
    counts = [each.count for each in read("\n".join(lines)).groups]
    assert counts[0] == 8
    group = read("\n".join(lines)).groups[0]
    assert len(group.places) == PLACES
    assert group.places[-1].line == 8
    assert sum(group.histogram.values()) == 8


def test_metrics_that_stay_at_another_value_are_shifts() -> None:
    rows = [f"{1772444401 + 60 * n},{10 + n % 2},{5 if n < 20 else 50}" for n in range(40)]
    found = read("timestamp,pay.cpu,pay.latency\n" + "\n".join(rows))
    [shift] = found.shifts
    assert (shift.component, shift.metric, shift.before, shift.after) == ("pay", "latency", 5, 50)
    assert (shift.when, shift.place.line) == (AT + 20 * 60_000_000, 22)
    assert found.metrics == ["pay cpu", "pay latency"]
    long = [f"{1772444401 + 60 * n},pay,cpu,{5 if n < 20 else 50}" for n in range(40)]
    assert read("timestamp,service,metric,value\n" + "\n".join(long)).shifts[0].metric == "cpu"


def test_text_of_prometheus_is_read() -> None:
    text = '# HELP up Whether it is up\n# TYPE up gauge\nup{job="pay"} 0\nup{job="web"} 1\nrequests_total{job="web"} 7\n'
    found = read(text)
    assert (found.form, found.unknown) == ("prometheus", 0)
    assert bad(found) == [("pay", 'up{job="pay"} 0')]


def test_spans_tell_who_calls_whom() -> None:
    spans = (
        '[{"span_id":"a","service":"shop","name":"GET /","status":"ERROR","start":"2026-03-02T09:40:01Z"},'
        '{"span_id":"b","parent_id":"a","service":"pay","name":"charge","status":"OK"}]'
    )
    found = read(spans)
    assert found.calls == [("shop", "pay")]
    assert [(each.component, each.level, each.when) for each in found.groups] == [
        ("shop", "error", AT),
        ("pay", "info", None),
    ]
    lines = "\n".join(json.dumps(each) for each in json.loads(spans))
    assert read(lines).calls == [("shop", "pay")]


def test_words_and_evidence_are_told_apart() -> None:
    message = (
        "Checkout is slow, why?\n\n"
        "==> /var/log/pay.log <==\n"
        "2026-03-02 09:40:01,000 ERROR [pay] bad\n"
        "odd line of the same file\n"
        "==> web.log <==\n"
        "2026-03-02 09:40:02,000 INFO [web] good\n\n"
        "$ kubectl get pods\n"
        "NAME   READY   STATUS\n"
        "web    1/1     Running\n\n"
        "Can you see what is wrong?"
    )
    said, given = sources.split(message)
    assert said == "Checkout is slow, why?\nCan you see what is wrong?"
    assert [(each.kind, each.name, each.lines) for each in given] == [
        ("log", "pay", 2),
        ("log", "web", 1),
        ("log", "kubectl get pods", 3),
    ]
    assert all(each.text in message for each in given)


def test_what_is_in_a_fence_is_evidence() -> None:
    said, given = sources.split("see\n```text\nnobody knows this\n```\nand\n~~~\n1 2 3\n~~~~\nok")
    assert said == "see\nand\nok"
    assert [(each.kind, each.format, each.text) for each in given] == [
        ("text", "text", "nobody knows this"),
        ("text", "text", "1 2 3"),
    ]
    assert sources.split("```\nnever ends")[1][0].text == "never ends"


@pytest.mark.parametrize(
    "text",
    [
        "2026 was a bad year, time to go home",
        "a, b, and c",
        "[1, 2, 3]",
        "check https://shop.example/health",
        "no, that is all I have",
        "We moved to the new data centre\nand nothing works since then,\nplease help us",
    ],
)
def test_words_are_no_source(text: str) -> None:
    said, given = sources.split(text)
    assert given == []
    assert said == text


def test_what_may_be_words_or_evidence_is_both() -> None:
    text = "curl: (7) Failed to connect to localhost: Connection refused"
    said, given = sources.split(text)
    assert said == text
    assert [each.text for each in given] == [text]


@pytest.mark.parametrize(
    ("head", "kind", "form"),
    [
        ("timestamp,cpu\n2026-03-02T09:40:01Z,5\n", "metrics", "csv"),
        ("Mar  2 09:40:01 host pay[12]: ok\n", "log", "syslog"),
        ('{"span_id":"a","service":"pay","name":"x"}\n', "trace", "span"),
        ("just some text\nof somebody\n", "text", "text"),
        ("", "text", "text"),
        (DESCRIBED, "log", "kubectl-describe"),
    ],
)
def test_uploads_are_sniffed(head: str, kind: str, form: str) -> None:
    assert sources.sniff(head, "upload") == (kind, form)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-03-02T09:40:01Z", AT),
        ("2026-03-02 10:40:01,000 +0100", AT),
        ("02/Mar/2026:09:40:01 +0000", AT),
        ("Mon, 02 Mar 2026 09:40:01 GMT", AT),
        ("Mar 02, 2026 9:40:01 AM", AT),
        ("1772444401.0", AT),
        ("1772444401000", AT),
        ("2022-08-22 03:51:19.5 +0000 UTC m=+0.305", 1661140279500000),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("2026-02-30T09:40:01Z", None),
        ("2026-03-02T25:40:01Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates_are_read(text: str, wanted: int | None) -> None:
    assert dates.parse(text, NOW) == wanted


def test_a_date_without_a_year_is_in_the_last_twelve_months() -> None:
    january = micros(datetime(2026, 1, 2, tzinfo=UTC))
    assert dates.parse("Dec 31 23:00:00", january) == micros(datetime(2025, 12, 31, 23, tzinfo=UTC))
    assert dates.parse("Feb 29 23:00:00", january) is None


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-02 09:40:01,000 ERROR",
        "2026-03-02 09:40:01,000 ERROR [" + "a" * 10_000 + "] x",
        "a" * 10_000 + ": x\n" * 3,
        "2026-03-02 09:40:01,000 ERROR [pay] \ud800\x00",
        '{"msg":"\ud800","level":"error"}',
        "0001-01-01T00:00:00+14:00 ERROR x",
        "[" * 50_000,
        '{"a":' * 50_000,
        "9" * 50_000,
        "\x1b[" * 1_000,
        "```",
        "\n\n\n",
        "",
    ],
)
def test_no_text_is_too_odd(text: str) -> None:
    found = read(text)
    TYPE.dump_json(found)
    sources.split(text)
    assert all(each.text for each in found.groups)


PIECES = st.sampled_from(
    [
        *("2026-03-02T09:40:01Z", "Mar  2 09:40:01", "[02/Mar/2026:09:40:01 +0000]", "0000-00-00 00:00:00", "99999999999"),
        *(" ERROR ", " [pay] ", "pay: ", '{"msg":', '"x"', "}", "[", "]", "time=", "level=error ", "\n", "\r\n", "\n  at x.y(z)"),
        *("NAME   READY", "0/1   Error", "Name:   x", "\n    Reason:  OOMKilled", "==> a <==", "$ df -h", "```", "Traceback (most recent call last):"),
        *("timestamp,a\n1,2", "# TYPE x gauge", "x{a=\"b\"} 1", "web-1  | ", "\x00", "\ud800", "\u2028", "\t", "%", "0", "100%", "a" * 300),
    ]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=40).map("".join), st.text(max_size=30))
def test_any_text_is_read_and_every_place_is_in_it(text: str, name: str) -> None:
    found = digest(text, name, "log", "", NOW)
    TYPE.dump_json(found)
    assert found.lines == text.count("\n") + (not text.endswith("\n") and bool(text))
    for group in found.groups:
        assert 0 < len(group.places) <= PLACES
        for place in group.places:
            assert 0 <= place.start <= place.end <= len(text)
            assert text.count("\n", 0, place.start) + 1 == place.line
    said, given = sources.split(text)
    sources.sniff(text, name)
    assert all(each.text in text for each in given)
    kept = "\n".join([said, *(each.text for each in given)])
    if "```" not in text:
        lines = [each for each in text.split("\n") if "==>" not in each]
        assert all(each.strip() in kept for line in lines for each in line.splitlines())


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252"]))
def test_bytes_of_any_encoding_are_read(data: bytes, encoding: str) -> None:
    text = data.decode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")
    TYPE.dump_json(read(f"2026-03-02 09:40:01 ERROR {text}\n{text}", text))


def test_a_digest_is_bounded() -> None:
    def word(number: int) -> str:
        return "".join(chr(97 + number // 26**place % 26) for place in range(5))

    lines = [
        f"2026-03-02 09:40:01,000 INFO [{word(n)}] {word(n * 7)} {word(n * 13)} {word(n * 3)} done"
        for n in range(14_000)
    ]
    lines[13_990] = "2026-03-02 09:40:02,000 ERROR [pay] the disk is full"
    found = read("\n".join(lines))
    assert len(found.groups) == GROUPS
    assert found.dropped > 0
    assert any(each.component == "pay" and each.level == "error" for each in found.groups)
    assert all(len(each.text) <= QUOTE for each in found.groups)


def test_lines_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LINES", 3)
    found = read("a\nb\nc\nd\ne")
    assert (found.lines, found.unread) == (5, 2)
