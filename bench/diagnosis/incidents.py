"""Incidents: services, a fault and its propagation, louder decoys, logs in six formats, metrics.

Each incident is drawn from a seed. Its phrases come from several products, and each service writes
one format of logs. A part of the incidents lacks the data of the failed service: the honest answer
is then that the cause is not known.
"""

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

NAMES = (
    *("checkout", "payments", "orders", "inventory", "search", "profile", "catalog", "billing"),
    *("shipping", "notifications", "sessions", "pricing", "recommendations", "ledger"),
)
STORES = ("orders-db", "redis-cache", "users-db", "message-queue", "object-store")
BATCH = ("nightly-report", "mail-digest", "metrics-export", "backup-agent", "image-resizer")
FORMATS = ("json", "logfmt", "syslog", "access", "klog", "plain")
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTES = 60

# The messages of each fault, and the metric that shows it.
FAULTS: dict[str, tuple[tuple[str, ...], tuple[str, float, float] | None]] = {
    "disk_full": (
        (
            "write failed: No space left on device",
            "PANIC: could not write to file pg_wal/0001: ENOSPC",
            "flush of segment 17 failed, disk full",
        ),
        ("disk_used_percent", 71, 100),
    ),
    "out_of_memory": (
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "container killed by oom-killer, exit code 137",
            "fork: Cannot allocate memory",
        ),
        ("memory_percent", 55, 99),
    ),
    "cpu_saturation": (
        (
            "event loop lag 4200 ms",
            "cpu throttled for 38 s of the last minute",
            "GC overhead limit exceeded, 97 percent of time in collections",
        ),
        ("cpu_percent", 32, 99),
    ),
    "certificate_expired": (
        (
            "TLS handshake error: certificate has expired",
            "x509: certificate has expired or is not yet valid",
            "CERT_HAS_EXPIRED while serving port 8443",
        ),
        None,
    ),
    "dns_failure": (
        (
            "lookup of config-host failed: no such host",
            "getaddrinfo EAI_AGAIN",
            "Temporary failure in name resolution",
        ),
        None,
    ),
    "pool_exhausted": (
        (
            "FATAL: remaining connection slots are reserved",
            "QueuePool limit of size 20 overflow 10 reached",
            "connection pool exhausted after 30000 ms",
            "FATAL: sorry, too many clients already",
        ),
        ("connections", 40, 200),
    ),
    "deadlock": (
        (
            "ERROR: deadlock detected, process 311 waits for ShareLock",
            "Lock wait timeout exceeded; try restarting transaction",
        ),
        ("lock_waits", 2, 90),
    ),
    "network": (
        (
            "eth0: link down",
            "no route to host 10.2.0.7",
            "packet loss 42 percent on the storage network",
        ),
        ("packet_retransmits", 3, 400),
    ),
    "credentials": (
        (
            "password authentication failed for user app",
            "Access denied for user svc",
            "invalid credentials: token was revoked",
        ),
        None,
    ),
    "quota": (
        ("429 Too Many Requests from the provider", "quota exceeded for project 4711"),
        None,
    ),
    "bad_deploy": (
        (
            "unhandled exception: TypeError: cannot read property total",
            "panic: runtime error: index out of range",
            'column "discount_v2" does not exist',
        ),
        None,
    ),
    "crash": (
        ("segmentation fault, core dumped", "worker terminated by signal 11"),
        ("restarts", 0, 7),
    ),
}
NORMAL = (
    "request handled in {n} ms",
    "refreshed {n} entries",
    "health check ok",
    "GET /v1/items answered 200 in {n} ms",
    "committed batch of {n}",
    "accepted connection {n}",
)
VICTIM = (
    "timeout calling {to} after {n} ms",
    "call to {to} failed: 503",
    "upstream {to} returned 502",
    "connection to {to} refused",
    "circuit breaker for {to} is open, error rate {n} percent",
)
# Victims that do not say what they called.
VAGUE = (
    "request failed after {n} ms",
    "giving up after 3 attempts",
    "responded 500 to the client",
)
# What a failed service may write in words of its own.
OWN_WORDS = (
    "fsync returned -1 on file {n}",
    "state machine left in step {n}, aborting",
    "cannot make progress, shutting the worker down",
)
CHRONIC = (
    "ERROR retrying job {n}: deadlock detected",
    "disk usage warning: disk full soon on volume {n}",
    "rate limit reached for client {n}",
    "could not resolve tracking-host: NXDOMAIN",
)
BURST = (
    ("job {n} failed: java.lang.OutOfMemoryError: Java heap space", "out_of_memory"),
    ("cannot write report {n}: No space left on device", "disk_full"),
    ("deadlock detected while locking row {n}", "deadlock"),
    ("too many connections for role batch ({n})", "pool_exhausted"),
)


@dataclass
class Incident:
    """A generated incident.

    Attributes:
        service: the service that failed, or None if its data is missing.
        fault: its fault, or None.
        decoys: services that look guilty and are not.
        message: what the user pastes.
        words: the user's sentence in it.
    """

    seed: int
    service: str | None
    fault: str | None
    decoys: set[str]
    message: str
    words: str
    formats: set[str]


@dataclass
class _World:
    rng: random.Random
    lines: dict[str, list[tuple[float, str, str]]] = field(default_factory=dict)
    metrics: list[tuple[float, str, str, float]] = field(default_factory=list)

    def say(self, service: str, minute: float, level: str, text: str) -> None:
        """Write a line of a service's log, if the service has one."""
        filled = text.replace("{n}", str(self.rng.randrange(10, 9000)))
        self.lines.setdefault(service, []).append((minute, level, filled))


def generate(seed: int) -> Incident:
    """Return the incident of a seed."""
    rng = random.Random(seed)
    world = _World(rng)
    names = rng.sample(NAMES, rng.randrange(3, 6))
    store = rng.choice(STORES)
    chain = ["gateway", *names[:2], rng.choice([names[2], store])]
    failed = chain[-1] if rng.random() < 0.7 else chain[2]
    fault = rng.choice(sorted(FAULTS))
    beside = [name for name in names if name not in chain] or ["profile"]
    batch = rng.choice(BATCH)
    services = [*dict.fromkeys([*chain, *beside, batch])]
    onset = rng.uniform(36, 44)
    for name in services:
        _live(world, name)
    _fail(world, failed, fault, onset)
    callers = list(reversed(chain[: chain.index(failed)]))
    # A failure climbs from the called to the caller.
    at, called = onset, failed
    for caller in callers:
        at += rng.uniform(0.7, 2.5)
        _suffer(world, caller, called, at)
        called = caller
    decoys = _decoys(world, beside, batch, onset)
    hidden = rng.random() < 0.2
    if hidden:
        world.lines.pop(failed, None)
        world.metrics = [each for each in world.metrics if each[1] != failed]
    return _render(world, seed, failed, fault, decoys, hidden, chain[0])


def _live(world: _World, name: str) -> None:
    rng = world.rng
    for _ in range(rng.randrange(40, 90)):
        world.say(name, rng.uniform(0, MINUTES), "info", rng.choice(NORMAL))
    for minute in range(MINUTES):
        world.metrics.append((minute, name, "cpu_percent", rng.gauss(30, 3)))
        world.metrics.append((minute, name, "memory_percent", rng.gauss(55, 2)))
        world.metrics.append((minute, name, "error_rate", abs(rng.gauss(0.5, 0.2))))


def _fail(world: _World, name: str, fault: str, onset: float) -> None:
    rng = world.rng
    phrases, metric = FAULTS[fault]
    if fault == "bad_deploy":
        world.say(name, onset - rng.uniform(0.5, 4), "info", "deployed version 2.14.0")
    # A cause is often quiet: its victims and the decoys write more.
    phrase = rng.choice(phrases if rng.random() < 0.88 else OWN_WORDS)
    for number in range(rng.randrange(2, 7)):
        world.say(name, onset + number * rng.uniform(0.4, 2), "error", phrase)
    if metric is not None and rng.random() < 0.8:
        label, normal, bad = metric
        kept = [each for each in world.metrics if (each[1], each[2]) != (name, label)]
        world.metrics = kept + [
            (m, name, label, rng.gauss(normal if m < onset else bad, 1 + normal * 0.02))
            for m in range(MINUTES)
        ]


def _suffer(world: _World, caller: str, called: str, at: float) -> None:
    rng = world.rng
    phrase = rng.choice(VICTIM if rng.random() < 0.85 else VAGUE).replace("{to}", called)
    for _ in range(rng.randrange(20, 60)):
        world.say(caller, rng.uniform(at, MINUTES), "error", phrase)
    world.say(caller, at, "error", phrase)
    world.metrics = [
        (m, who, what, value + 30 if (who, what) == (caller, "error_rate") and m > at else value)
        for m, who, what, value in world.metrics
    ]


def _decoys(world: _World, beside: list[str], batch: str, onset: float) -> set[str]:
    """Add what looks worse than the cause: old noise, a later burst, and a harmless version."""
    rng = world.rng
    noisy = beside[0]
    chronic = rng.choice(CHRONIC)
    for _ in range(rng.randrange(80, 160)):
        world.say(noisy, rng.uniform(0, MINUTES), "error", chronic)
    decoys = {noisy}
    if rng.random() < 0.7:
        burst, _ = rng.choice(BURST)
        # Some batch jobs fail before the incident, most of them later.
        begin = onset + (rng.uniform(4, 9) if rng.random() < 0.7 else rng.uniform(-9, -4))
        for _ in range(rng.randrange(60, 140)):
            world.say(batch, rng.uniform(begin, MINUTES), "error", burst)
        decoys.add(batch)
    if rng.random() < 0.6:
        other = rng.choice(beside)
        world.say(other, onset - rng.uniform(2, 20), "info", "rolled out version 7.3")
        decoys.add(other)
    return decoys


def _render(
    world: _World, seed: int, failed: str, fault: str, decoys: set[str], hidden: bool, front: str
) -> Incident:
    rng = world.rng
    words = rng.choice(
        (
            f"Since about 09:40 {front} answers with errors. What is the cause?",
            "Customers report failures, please find the cause.",
            f"{front} is down!! logs below",
        )
    )
    parts, formats = [words, ""], set()
    names = sorted(world.lines)
    rng.shuffle(names)
    for number, name in enumerate(names):
        # Access logs have no messages, so only the front can tell something with them.
        choices = [each for each in FORMATS if each != "access"]
        form = choices[(number + seed) % len(choices)]
        lines = [(*each, form) for each in world.lines[name]]
        if name == front:
            lines += [_request(rng, each) for each in list(world.lines[name])[::3]]
        parts.append(f"==> {name}.log <==")
        # The clocks of machines differ by some seconds.
        skew = rng.gauss(0, 6) / 60
        for minute, level, text, each in sorted(lines):
            formats.add(each)
            parts.append(_line(each, minute + skew, name, level, text))
        parts.append("")
    parts.append("timestamp,service,metric,value")
    for minute, name, metric, value in sorted(world.metrics):
        parts.append(f"{_time(minute).isoformat()},{name},{metric},{value:.2f}")
    return Incident(
        seed,
        service=None if hidden else failed,
        fault=None if hidden else fault,
        decoys=decoys,
        message="\n".join(parts),
        words=words,
        formats=formats,
    )


def _request(rng: random.Random, line: tuple[float, str, str]) -> tuple[float, str, str, str]:
    minute, level, _ = line
    return minute, level, f"/v1/items/{rng.randrange(999)}", "access"


def _time(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def _line(form: str, minute: float, service: str, level: str, text: str) -> str:
    at = _time(minute)
    iso = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if form == "json":
        return json.dumps({"ts": iso, "level": level, "service": service, "msg": text})
    if form == "logfmt":
        quoted = text.replace('"', '\\"')
        return f'time={iso} level={level} service={service} msg="{quoted}"'
    if form == "syslog":
        return (
            f"<{11 if level == 'error' else 14}>{at:%b %e %H:%M:%S} node-1 {service}[812]: {text}"
        )
    if form == "klog":
        return f"{level[0].upper()}{at:%m%d %H:%M:%S.%f}       1 main.go:88] {text}"
    if form == "access":
        status = 502 if level == "error" else 200
        return f'10.0.0.9 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {text} HTTP/1.1" {status} 512'
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} {level.upper()} [{service}] {text}"
