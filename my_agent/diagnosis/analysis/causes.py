"""Causes: kinds of causes that rules can name, and the signs that show them.

A sign is one statement, or one change of a metric. A cause is named only if two independent ones hold.
"""

import re
from dataclasses import dataclass
from typing import Literal


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sign:
    """What shows a cause, or an effect of it.

    Attributes:
        name: A short name: two statements of one name are of one kind.
        logs: Matches what a record says.
        metric: Matches the name of a metric that rose.
        role: `cause`: it says the cause itself; `effect`: it follows from it.
        is_named: Whether the cause is that of the component that it names, if it names one.
        is_one: Whether all such statements of a source are one observation, such as rows of a table.
    """

    name: str
    logs: re.Pattern[str] | None = None
    metric: re.Pattern[str] | None = None
    role: Literal["cause", "effect"] = "cause"
    is_named: bool = False
    is_one: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of cause.

    Attributes:
        kind: Its short name.
        title: In words, with `{component}`.
        signs: What shows it, the most telling first.
        against: Matches a statement that all is well, which contradicts it.
        refuted: Words of a line that would refute it.
        test: What those words test.
    """

    kind: str
    title: str
    signs: tuple[Sign, ...]
    against: re.Pattern[str] | None = None
    refuted: tuple[str, ...] = ()
    test: str = ""


_RESTARTS = Sign(
    "restarts",
    _any(r"crashloopbackoff", r"back-off restarting", r"\bexit(?:ed)?(?: with)?[ _-]?(?:code|status)\"?[:= ]{1,12}[1-9]", r"\bbackofflimitexceeded",
         r"reason:\s{1,12}error\b", r"\brestart count:\s{1,12}[1-9]", r"\bmain process exited", r"status=\d{1,3}/failure", r"\baborting$"),
    role="effect",
)  # fmt: skip
_CALLS = Sign(
    "calls",
    _any(r"connection (?:refused|reset|timed out|failed)", r"failed to connect", r"(?:could not|cannot|unable to) connect", r"call to \S{1,80} failed",
         r"upstream", r"\b50[234]\b", r"no live upstreams", r"timed? ?out", r"econnrefused"),
    role="effect",
)  # fmt: skip

CAUSES: tuple[Cause, ...] = (
    Cause(
        "disk_full", "the disk of {component} is full",
        (
            Sign("enospc", _any(r"no space left on device", r"\benospc\b", r"disk quota exceeded", r"\berrno:? ?28\b")),
            Sign("usage", _any(r"(?<!loop)\d (?:9[5-9]|100)\s?%\s{1,4}/(?!snap|boot|media|mnt/cdrom|cdrom|run|sys|dev)", r"(?:disk|file ?system|volume|partition|inodes?)\b[^\n]{0,60}\b(?:9[5-9]|100)(?:\.\d+)?\s?%",
                               r"(?:disk|file ?system|volume|tablespace|domain \S{1,40}|partition) (?:is |are )?(?:almost |nearly )?full\b"), is_one=True),
            Sign("pressure", _any(r"\bdiskpressure\b[^\n]{0,40}\btrue\b", r"nodehasdiskpressure", r"low on resource: (?:ephemeral-storage|imagefs|nodefs)",
                                  r"evictionthresholdmet", r"freediskspacefailed")),
            Sign("eviction", _any(r"\bevicted\b"), role="effect"),
            Sign("metric", metric=_any(r"disk.{0,20}us(?:ed|age)|filesystem.{0,20}us(?:ed|age)|disk_used|fs_usage")),
        ),
        _any(r"disk full check passed"), ("disk", "passed"), "a check of the disk that passed",
    ),
    Cause(
        "out_of_memory", "{component} has too little memory",
        (
            Sign("killed", _any(r"\boomkill", r"\boom-?killed\b")),
            Sign("kernel", _any(r"out of memory: kill", r"invoked oom-?killer", r"oom_reaper", r"memory cgroup out of memory")),
            Sign("heap", _any(r"outofmemoryerror", r"heap out of memory", r"allocation failed - javascript heap", r"gc overhead limit exceeded")),
            Sign("refused", _any(r"cannot allocate (?:the |\d{1,20} bytes of )?memory", r"\benomem\b", r"failed to allocate memory", r"errno:? ?12\b",
                                 r"cannot allocate \d{1,20} bytes", r"cannot allocate the memory")),
            Sign("exit", _any(r"\bexit(?:ed)?(?: with)?[ _-]?(?:code|status)\"?[:= ]{1,12}137\b"), role="effect"),
            _RESTARTS,
            Sign("metric", metric=_any(r"mem(?:ory)?.{0,20}us(?:ed|age)|working_set|heap.{0,12}used|\brss\b")),
        ),
        None, (), "",
    ),
    Cause(
        "certificate_expired", "the certificate of {component} has expired",
        (
            Sign("expired", _any(r"certificate (?:has |is |was )?expired", r"\bcert(?:_has_| has | )expired", r"expired certificate",
                                 r"certificate (?:has )?expired or is not yet valid", r"expiredcert\w{0,20}"), is_named=True),
            Sign("handshake", _any(r"(?:tls|ssl)\b[^\n]{0,40}handshake", r"handshake (?:failed|failure|error)", r"certificate verify failed", r"sslhandshakeexception"), role="effect"),
            _CALLS,
        ),
        _any(r"certificate valid until", r"certificate (?:is )?valid"), ("certificate", "valid", "until"), "a certificate that is valid",
    ),
    Cause(
        "image_pull", "the image of {component} can't be pulled",
        (
            Sign("missing", _any(r"manifest unknown", r"manifest for \S{1,200} not found", r"repository does not exist", r"pull access denied", r"failed to pull image",
                                 r"rpc error: [^\n]{0,120}pull")),
            Sign("backoff", _any(r"\bimagepullbackoff\b", r"\berrimagepull\b", r"\binvalidimagename\b", r"back-off pulling image"), role="effect"),
        ),
        None, ("successfully", "pulled", "image"), "an image that was pulled",
    ),
    Cause(
        "wrong_architecture", "the program of {component} is built for another kind of processor",
        (Sign("format", _any(r"exec format error")), _RESTARTS),
    ),
    Cause(
        "program_missing", "the program that {component} is to run does not exist",
        (
            Sign("missing", _any(r"executable file not found", r"exec: \"[^\"\n]{1,200}\": [^\n]{0,40}no such file", r"invalid or missing program image", r"error: could not find or load main class",
                                 r"cannot find module")),
            _RESTARTS,
            Sign("load", _any(r"runcontainererror", r"containercannotrun"), role="effect"),
        ),
    ),
    Cause(
        "too_many_connections", "{component} has no free connections",
        (
            Sign("limit", _any(r"too many (?:connections|clients)", r"remaining connection slots are reserved", r"max_connections", r"max_user_connections")),
            Sign("pool", _any(r"connection pool (?:is )?exhausted", r"timeout waiting for (?:a )?connection from pool", r"connection is not available, request timed out",
                              r"queuepool limit", r"pool exhausted", r"no available connection and the queue")),
            _CALLS,
        ),
    ),
    Cause(
        "too_many_files", "{component} has no free file descriptors",
        (
            Sign("limit", _any(r"too many open files", r"\bemfile\b", r"\benfile\b")),
            Sign("accept", _any(r"accept[^\n]{0,40}(?:failed|error)"), role="effect"),
            _CALLS, _RESTARTS,
        ),
    ),
    Cause(
        "unschedulable", "no node can run {component}",
        (
            Sign("reason", _any(r"\d insufficient (?:cpu|memory|ephemeral-storage|pods|\S{1,40}/gpu)", r"didn't match pod's node affinity/selector", r"untolerated taint",
                                r"had taint", r"didn't match (?:node selector|pod anti-affinity|pod affinity)")),
            Sign("pending", _any(r"podscheduled[\s:=]{1,40}false", r"\bstatus:\s{1,20}pending", r"\bpending\b"), role="effect"),
        ),
        None, ("successfully", "assigned"), "a pod that was assigned to a node",
    ),
    Cause(
        "volume_missing", "the volume of {component} can't be provided",
        (
            Sign("class", _any(r"storageclass\S{0,40} \S{1,80} not found", r"storageclass\S{0,40} [^\n]{0,20}does not exist", r"provisioningfailed", r"persistentvolumeclaim \S{1,120} not found")),
            Sign("unbound", _any(r"unbound (?:immediate )?persistentvolumeclaims?", r"failedmount\b", r"failedattachvolume", r"podscheduled[\s:=]{1,40}false"), role="effect"),
        ),
    ),
    Cause(
        "object_missing", "an object that {component} refers to does not exist",
        (
            Sign("missing", _any(r"\b(?:secrets?|configmaps?|namespaces?|serviceaccounts?) \\?\"[^\"\n]{1,120}\" not found", r"the server doesn't have a resource type", r"no matches for kind")),
            Sign("config", _any(r"createcontainerconfigerror", r"failedmount\b", r"failedcreate\b", r"sync(?: status)?:?\s{0,12}failed", r"phase:\s{1,20}failed", r"one or more objects failed to apply"), role="effect"),
        ),
    ),
    Cause(
        "setting_missing", "a setting that {component} needs is missing or wrong",
        (
            Sign("variable", _any(r"environment variable \S{1,80} (?:is )?(?:not set|undefined|missing|required|not defined)", r"(?:missing|required) (?:required )?environment variable")),
            Sign("option", _any(r"unknown variable '", r"unknown (?:option|directive) ", r"unrecognized (?:option|argument|configuration)", r"(?:invalid|malformed|failed to (?:parse|load)) config",
                                r"\[emerg\]")),
            _RESTARTS,
            Sign("start", _any(r"^\W{0,3}aborting", r"\[error\] aborting", r"failed to start", r"configuration file \S{1,200} test failed", r"control process exited"), role="effect"),
        ),
    ),
    Cause(
        "port_in_use", "another program has the port that {component} wants",
        (
            Sign("bind", _any(r"address already in use", r"\beaddrinuse\b")),
            _RESTARTS,
            Sign("start", _any(r"failed to start (?!listening)", r"exiting\b", r"main process exited"), role="effect"),
        ),
    ),
    Cause(
        "deadlock", "locks in {component} wait for each other",
        (
            Sign("deadlock", _any(r"latest detected deadlock", r"deadlock found", r"deadlock detected", r"\b40p01\b", r"found one java-level deadlock")),
            Sign("victim", _any(r"we roll back transaction", r"chosen as the deadlock victim", r"try restarting transaction", r"waits for \S{1,40}lock"), role="effect"),
        ),
        _any(r"deadlock detector"),
    ),
    Cause(
        "device_failed", "a device of {component} has failed",
        (
            Sign("device", _any(r"\bfaulty\s{1,8}/dev", r"\bcannot open\b", r"unrecovered read error", r"medium error", r"i/o error, dev", r"buffer i/o error", r"failed devices\s?:\s?[1-9]",
                                r"devices (?:are|is) faulted", r"offline uncorrectable", r"blk_update_request: i/o error")),
            Sign("array", _any(r"clean, degraded", r"state:? degraded", r"\bdegradedarray\b", r"state:? (?:unavail|faulted)", r"\braid\S{0,12} [^\n]{0,40}degraded", r"insufficient replicas")),
            Sign("system", _any(r"ext4-fs error", r"xfs[^\n]{0,40}(?:error|shutdown)", r"remounting filesystem read-only", r"read-only file ?system", r"pool \S{1,40}unavailable"), role="effect"),
        ),
    ),
    Cause(
        "power_supply", "power supplies of {component} fail",
        (Sign("supply", _any(r"\bpsu failure", r"power supply[^\n]{0,40}(?:fail|fault|lost)", r"power redundancy lost")),
         Sign("ac", _any(r"\bac lost\b", r"input lost", r"voltage (?:out of range|fault)"))),
    ),
    Cause(
        "kernel_fault", "the kernel failed",
        (
            Sign("fault", _any(r"null pointer dereference", r"soft lockup", r"corrupted stack end", r"general protection fault", r"kasan: ", r"kernel bug at", r"unable to handle kernel",
                               r"circular locking dependency", r"hard lockup", r"rcu_\w{1,20} (?:self-)?detected stall")),
            Sign("panic", _any(r"kernel panic", r"\boops: ", r"\bcall trace:", r"not syncing"), role="effect"),
        ),
    ),
    Cause(
        "mount_failed", "a file system that {component} needs can't be mounted",
        (Sign("mount", _any(r"mount (?:\S{1,20} )?failed", r"mount\.\w{1,12}: [^\n]{0,80}(?:failed|denied|timed out|refused)", r"failed to mount", r"mountvolume\.setup failed")),
         Sign("absent", _any(r"stale (?:nfs )?file handle", r"nfs: server \S{1,80} not responding"))),
    ),
    Cause(
        "network_down", "{component} has lost its network",
        (
            Sign("link", _any(r"link (?:is )?down", r"no carrier", r"carrier lost", r"disassociated", r"interface \S{1,20} down")),
            Sign("route", _any(r"no route to host", r"noroutetohostexception", r"network (?:is )?(?:unreachable|down)", r"\benetunreach\b")),
        ),
        _any(r"link (?:is )?up\b"),
    ),
    Cause(
        "partition", "the network between the members of {component} is split",
        (
            Sign("split", _any(r"network_partitions?(?:_detected)?\"?\s{0,2}[:=]\s{0,2}(?:true|\[\s{0,20}\{)", r"split[ -]brain", r"(?:network )?partition detected", r"mnesia[^\n]{0,80}running_partitioned_network")),
            Sign("member", _any(r"node[^\n]{0,60}(?:down|unreachable|not running)", r"lost quorum", r"minority"), role="effect"),
        ),
    ),
    Cause(
        "credentials_refused", "{component} does not accept the credentials of a client",
        (
            Sign("database", _any(r"password authentication failed for user", r"access denied for user", r"sasl authentication failed", r"noauth authentication required", r"wrongpass ")),
            _RESTARTS,
            Sign("client", _any(r"(?:could not|cannot|unable to|failed to) connect", r"connection (?:to \S{1,80} )?failed"), role="effect"),
        ),
    ),
    Cause(
        "rate_limited", "{component} limits the rate of calls",
        (
            Sign("throttled", _any(r"throttlingexception", r"rate exceeded", r"toomanyrequests", r"rate limit(?: has been)? (?:exceeded|reached)"), is_named=True),
            Sign("answer", _any(r"\b(?:status|http|code)[^\n\d]{1,12}429\b", r"429 too many requests", r"slowdown: please reduce"), is_named=True),
        ),
    ),
    Cause(
        "garbage_collection", "the heap of {component} is too small, and collecting garbage stops it",
        (
            Sign("failure", _any(r"concurrent mode failure", r"promotion failed", r"to-space exhausted", r"gc overhead limit exceeded")),
            Sign("pause", _any(r"full gc[^\n]{0,300}\b[1-9]\d{0,3}\.\d{1,9} secs", r"pause full[^\n]{0,80}\b\d{4,7}\.\d{1,6}ms", r"detected jvm pause")),
        ),
    ),
    Cause(
        "cpu_saturated", "{component} has too little processor time",
        (
            Sign("usage", metric=_any(r"cpu")),
            Sign("latency", metric=_any(r"latency|duration|p9\d|response_time"), role="effect"),
            Sign("throttled", _any(r"cpu (?:is )?throttl", r"event loop (?:is )?(?:lag|block)", r"thread starvation")),
        ),
    ),
)  # fmt: skip
"""The causes that rules know."""
