"""Reading what people paste: six formats of logs, metrics, traces, and the words beside them."""

from datetime import UTC, datetime

import pytest

from my_agent.diagnosis import words
from my_agent.diagnosis.reading import formats, reader, sources, templates
from my_agent.diagnosis.reading.reader import Reading, Source
from my_agent.diagnosis.reading.record import micros, parse_time
from my_agent.diagnosis.state import Wish

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
AT = micros(datetime(2026, 3, 2, 9, 40, 1, tzinfo=UTC))


def read(message: str) -> tuple[str, Reading]:
    """Return the words of a message and what its sources say."""
    said, given = sources.split(message)
    named = [Source(f"s{n}", e.kind, e.format, e.name, e.text, NOW) for n, e in enumerate(given)]
    return said, reader.read(named)


@pytest.mark.parametrize(
    ("name", "line", "service", "level", "text"),
    [
        (
            "json",
            '{"ts":"2026-03-02T09:40:01Z","level":"ERROR","service":"pay","msg":"boom"}',
            "pay", "error", "boom",
        ),
        (
            "logfmt",
            'time=2026-03-02T09:40:01Z level=warn service=pay msg="slow \\"call\\"" err=timeout',
            "pay", "warning", 'slow "call": timeout',
        ),
        ("syslog", "Mar  2 09:40:01 host pay[12]: write failed", "pay", "error", "write failed"),
        ("syslog", "<12>1 2026-03-02T09:40:01Z host pay 12 - - hot", "pay", "warning", "hot"),
        (
            "access",
            '10.0.0.1 - - [02/Mar/2026:09:40:01 +0000] "GET /a HTTP/1.1" 502 12 "-" "curl"',
            "front", "error", "GET /a HTTP/1.1 answered 502",
        ),
        ("klog", "E0302 09:40:01.000000       1 main.go:12] bad call", "front", "error", "bad call"),
        ("plain", "2026-03-02 09:40:01,000 ERROR [pay] bad", "pay", "error", "bad"),
        ("plain", "[2026-03-02T10:40:01+01:00] [WARN] pay: hot", "pay", "warning", "hot"),
        (
            "dated", "2026-03-02 09:40:01.000 UTC [44] FATAL:  disk full",
            "front", "error", "disk full",
        ),
    ],
)  # fmt: skip
def test_each_format_is_read(name: str, line: str, service: str, level: str, text: str) -> None:
    found = formats.parse(line)
    assert found is not None
    assert found[0] == name
    said, reading = read(f"==> /var/log/front.log.txt <==\n{line}")
    [record] = reading.records
    assert (record.service, record.level, record.text) == (service, level, text)
    assert record.when == AT
    assert said == ""


def test_offsets_lead_to_the_line_and_stack_traces_stay_with_it() -> None:
    log = (
        "2026-03-02 09:40:01,000 ERROR [pay] bad é\r\n"
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1\n'
        "\n"
        "2026-03-02 09:40:02,000 INFO [pay] good"
    )
    said, given = sources.split(f"Look at this:\n{log}\nIt hurts.")
    assert said == "Look at this:\nIt hurts."
    [source] = given
    assert source.lines == 5
    records = read(log)[1].records
    shown = [source.text[each.start : each.end] for each in records]
    assert shown == [
        "2026-03-02 09:40:01,000 ERROR [pay] bad é",
        "2026-03-02 09:40:02,000 INFO [pay] good",
    ]


def test_errors_without_a_date_or_name_are_read_too() -> None:
    trace = "Traceback (most recent call last):\n  File 'job.py', line 3\nKeyError: 'total'"
    said, reading = read(f"our job crashes:\n{trace}")
    assert said == "our job crashes:"
    assert [(e.service, e.level, e.when) for e in reading.records][-1] == (
        "application",
        "error",
        None,
    )


def test_metrics_are_read_long_and_wide() -> None:
    long = "timestamp,service,metric,value\n2026-03-02T09:40:01Z,pay,cpu,99.5\nbroken,row\n1772444401,pay,cpu,x"
    [point] = read(long)[1].points
    assert (point.service, point.metric, point.value, point.when) == ("pay", "cpu", 99.5, AT)
    wide = "==> pay.csv <==\ntime;cpu;shop.errors\n2026-03-02 09:40:01;1;2"
    points = read(wide)[1].points
    assert [(e.service, e.metric, e.value) for e in points] == [
        ("pay", "cpu", 1),
        ("shop", "errors", 2),
    ]


def test_traces_say_which_service_calls_which() -> None:
    spans = (
        '[{"span_id":"a","service":"shop","name":"GET /","status":"ERROR","start":"2026-03-02T09:40:01Z"},'
        '{"span_id":"b","parent_id":"a","service":"pay","name":"charge","status":"OK"}]'
    )
    first, second = read(spans)[1].spans
    assert (first.service, first.caller, first.failed, first.when) == ("shop", "", True, AT)
    assert (second.service, second.caller, second.failed) == ("pay", "shop", False)


@pytest.mark.parametrize(
    "text",
    [
        "2026 was a bad year, time to go home",
        "a, b, and c",
        "{not json}",
        "[1, 2, 3]",
        "error: it does not work = why",
        "```\nprint('hello')\n```",
    ],
)
def test_words_are_no_source(text: str) -> None:
    said, given = sources.split(text)
    assert given == []
    assert said


def test_date_without_a_year_is_in_the_last_twelve_months() -> None:
    january = datetime(2026, 1, 2, tzinfo=UTC)
    assert parse_time("Dec 31 23:00:00", january) == micros(datetime(2025, 12, 31, 23, tzinfo=UTC))
    assert parse_time("1772444401000", NOW) == parse_time("1772444401", NOW) == AT
    assert parse_time("yesterday", NOW) is None


def test_templates_group_messages_that_differ_in_numbers_and_ids() -> None:
    lines = [f"2026-03-02 09:40:01,000 ERROR [pay] job {n} of 10.0.0.{n} failed" for n in range(9)]
    lines.append("2026-03-02 09:40:01,000 ERROR [pay] the disk is full")
    groups = templates.mine(read("\n".join(lines))[1].records)
    assert sorted(len(each) for each in groups.values()) == [1, 9]


@pytest.mark.parametrize(
    ("text", "has_sources", "wanted"),
    [
        ("thanks!", True, "thanks"),
        ("ok thanks, but why?", True, "status"),
        ("no", True, "conclude"),
        ("I don't know", True, "conclude"),
        ("stop", True, "conclude"),
        ("start over", True, "remark"),
        ("do you know why?", True, "status"),
        ("", True, "status"),
        ("danke!", True, "thanks"),
        ("set the confidence to 1", True, "remark"),
        ("that's all I have", True, "conclude"),
        ("No", False, "ask"),
        ("why do you think so?", True, "status"),
        ("give me the report", True, "report"),
        ("hello", False, "help"),
        ("checkout is down since ten", False, "ask"),
        ("it is not the database, it is the network", True, "remark"),
        ("nothing works any more since we moved to the new data centre last week", True, "remark"),
        ("было плохо", True, "remark"),
    ],
)
def test_words_without_data_are_understood(text: str, has_sources: bool, wanted: Wish) -> None:
    assert words.wish(text, has_sources=has_sources) == wanted


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("please check https://shop.example/health.", ["https://shop.example/health"]),
        ("check shop.example and pay.example:8443", ["https://shop.example", "https://pay.example"]),
        ("shop.example is down", []),
        ("look at payments.log", []),
        ("check the logs", []),
    ],
)  # fmt: skip
def test_only_hosts_that_the_user_asks_for_are_probed(text: str, hosts: list[str]) -> None:
    assert words.probes(text, 3) == hosts
