"""Wording: how logs say that something goes wrong, or goes well, in English.

What is matched is in lower case, except for `CAMEL`, `FILE` and what follows a statement.
"""

import re


def _words(*patterns: str) -> re.Pattern[str]:
    """Return what matches one of some phrases; a part of a longer word or identifier is none.

    The text is in lower case: comparing that way is three times as fast as ignoring the case.
    """
    return re.compile(rf"(?<![a-z])(?:{'|'.join(patterns)})(?![a-z])")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NOUN = _words(
    r"errors?", r"err", r"exceptions?", r"failures?", r"faults?", r"panics?", r"fatal", r"crash(?:es)?",
    r"deadlocks?", r"time-?outs?", r"leaks?", r"corruptions?", r"overloads?", r"overflows?", r"overruns?",
    r"underruns?", r"out ?of ?memory", r"oom(?:[ -]?kill(?:s|ed|er)?)?", r"outages?", r"packet loss", r"starvation",
    r"(?:disk|queue|buffer|table|device|file ?system|volume|pool|tablespace|memory|heap|partition|space|cache)"
    r" (?:is |are |was |almost |nearly )?full",
    r"split[ -]brain", r"back-?off", r"machine checks?", r"congestion", r"conflicts?", r"violations?", r"lock wait timeout", r"lockups?",
)  # fmt: skip
"""What can be a statement, or a part of a name such as `error log` and `deadlock detector`."""

PLAIN = _words(
    r"fail(?:s|ed|ing)?", r"errored", r"erroneous", r"panicked", r"crash(?:ed|ing)", r"crashloop(?:backoff)?",
    r"(?:err)?image(?:never)?pull(?:backoff)?", r"errimagepull", r"invalidimagename", r"create(?:container(?:config)?)error",
    r"failed(?:scheduling|mount|attachvolume|create(?:podsandbox)?|kill(?:pod)?|get(?:resource|pods|scale)?\w{0,20}"
    r"|sync|binding|prestophook|poststarthook|validation|comput\w{0,20}|update\w{0,20})",
    r"evict(?:ed|ing)", r"unhealthy", r"segfaults?", r"segmentation fault", r"core dumped", r"abort(?:ed|ing)",
    r"can ?not", r"can't", r"could ?n[o']t", r"could not", r"unable to", r"gave up", r"giving up", r"won't start",
    r"(?:was|were|is) not able to", r"refus(?:ed|es|ing)", r"reject(?:ed|s|ing)", r"denied", r"timed[ -]?out", r"timing out",
    r"exceed(?:ed|s|ing)", r"unreachable", r"unresponsive", r"unavailable", r"unsuccessful(?:ly)?",
    r"no route to host", r"no space left", r"no such (?:host|file|device|table|column|method|container|image)",
    r"no (?:healthy|live|available|free|usable|active|reachable|valid) (?:\w{1,20} )?(?:upstreams?|endpoints?|nodes?|hosts?|workers?|brokers?"
    r"|connections?|backends?|servers?|instances?|replicas?|slots?|threads?|memory|space)",
    r"no (?:leader|quorum|response|heartbeats?|reply|master|primary|endpoints|connection to|more connections)"
    r"(?! (?:errors?|fail\w{0,5}|required))",
    r"no (?:memory|space|disk space) (?:left|available)",
    r"(?:does|do|did)n't exist(?!,? skipping)", r"(?:does|do|did) not exist(?!,? skipping)", r"not exist(?!,? skipping)", r"not (?:be )?(?:available|reachable|accessible|responding"
    r"|responsive|running|ready|healthy|connected|mounted|enough|permitted|successful|succeed|ok|respond|alive|resolved|writable)",
    r"(?:is|are|has|was|went|gone|marked|declared|considered|seems|appears|link|host|node|server|peer|service|back-?end|interface)"
    r" (?:as |is |been )?(?:down|dead|offline|faulty|broken)",
    r"is not (?:trusted|a function)", r"(?:lost|losing) (?:the |its |our )?(?:connection|contact|leader\w{0,4}|quorum|task|executor|node|worker|lock|lease|session)",
    r"(?:connection|session|lease|heartbeat|packets?|node|executor|task|data)s? (?:was |were |has been |is |are )?lost",
    r"connection (?:was )?(?:reset|closed unexpectedly|broken)", r"connection reset by peer", r"broken pipe", r"(?:closed|terminated|exited|stopped|died) (?:unexpectedly|abnormally|prematurely)",
    r"(?:unexpectedly|prematurely) (?:closed|terminated|exited|stopped)", r"(?:killed|terminated) (?:by|process)", r"kill process", r"was killed",
    r"corrupt(?:ed)?", r"illegal", r"malformed", r"exhausted", r"overloaded", r"throttl(?:ed|ing)", r"deadlocked", r"too many", r"stuck",
    r"hung", r"hangs", r"frozen", r"stalled", r"stalls", r"starved", r"starving", r"blocked for more than", r"degraded", r"insufficient",
    r"misconfigur(?:ed|ation)", r"mismatch(?:ed)?", r"violates", r"duplicate (?:key|entry)", r"unrecognized",
    r"unknown (?:host|option|directive|database|column|command|flag|field|key|manifest)", r"manifest unknown", r"unexpected (?:token|end|eof|error|exception|exit|status|response|reply)",
    r"traceback", r"uncaught", r"unhandled", r"(?:null|nil) ?pointer", r"undefined (?:is not|method|variable|reference|symbol|function|index)",
    r"of (?:undefined|null)", r"nxdomain", r"servfail", r"bad (?:gateway|blocks?|sectors?|checksum|magic)", r"name or service not known",
    r"temporary failure in name resolution", r"read-only file ?system", r"remount\w{0,3} (?:file ?system )?read-only", r"i/o error", r"call trace", r"kernel bug", r"oops", r"soft lockup",
    r"internal server error", r"service unavailable", r"saturat(?:ed|ion)", r"sig(?:kill|segv|abrt|bus|ill|fpe)", r"died",
    r"e(?:conn(?:refused|reset|aborted)|timedout|hostunreach|netunreach|nospc|nomem|mfile|nfile|pipe|acces|perm|rofs|dquot|notfound|ai_again)",
    r"(?:certificate|cert|license|licence|token|credentials?|password|key|deadline|secret|x509|lock) (?:has |is |have |was )?expired",
    r"(?:cert_has_)?expired (?:certificate|cert|token|credentials?|license|key|or is not yet valid)", r"cert_has_expired", r"certificate verify failed",
    r"gateway time-?out", r"quota exceeded", r"rate limit(?:ed| reached)", r"unrecoverable", r"uncorrectable", r"catastrophic", r"manual intervention required", r"there (?:is|are) no (?:servers?|leader|nodes?|members?|space|memory|replicas?)", r"is undefined", r"faulty", r"unavail", r"circular locking dependency",
    r"we roll back", r"exec format error", r"outdated replica",
    r"use[- ]after[- ]free", r"double free", r"poison overwritten", r"out[- ]of[- ]bounds", r"(?:is|are|was|were) full",
    r"assertion fail(?:ed|ure)", r"being (?:terminated|killed)",
)  # fmt: skip
"""What is a statement unless it is negated, asked for, or in a name."""

MARKED = re.compile(
    r"(?<![\w-])(?:FATAL|PANIC|EMERG|CRITICAL|BUG)(?=[:\]]| \[| [a-z])|(?<![\w-])ERROR:"
)
"""A level that stands inside of a line, behind what a program writes before it; as it is written."""

WEAK = _words(
    r"retr(?:y|ies|ying|ied)", r"slow", r"not found", r"invalid", r"missing", r"unknown", r"unexpected(?:ly)?", r"high", r"low on", r"lag(?:ging|s)?",
    r"behind", r"expired", r"expires", r"dropp(?:ed|ing)", r"drops?", r"lost", r"disconnect(?:ed|s)?", r"unauthorized", r"forbidden",
    r"roll(?:ed|ing) ?back", r"stale", r"dead", r"killed", r"bad", r"wrong", r"critical", r"emergency", r"unsupported", r"not (?:supported|allowed|set|configured|valid|defined|started)",
    r"pressure", r"took too long", r"below", r"above", r"skew", r"unstable", r"suspect(?:ed)?", r"restarting", r"reset", r"delayed", r"overdue", r"long",
)  # fmt: skip
"""What is a statement in a line of level warning only."""

CAMEL = re.compile(
    r"(?<=[a-z0-9])(?:Error|Exception|Failure|Failed|Fault|Killed|Timeout)s?(?![A-Za-z])"
)
"""The end of a name such as `ConnectException`, which says what happened."""

FINE = _words(
    r"succeed(?:ed|s)?", r"success(?:ful|fully)?", r"passed", r"ok", r"okay", r"healthy", r"ready", r"recovered", r"resolved", r"restored",
    r"complet(?:ed|e)", r"enabled", r"valid until", r"up[ -]to[ -]date", r"established", r"within (?:the )?limits?", r"back to normal", r"cleared",
    r"corrected", r"is (?:up|running|online|alive|fine|normal|valid|listening|available)", r"re-?connected", r"normal", r"finished", r"accepted", r"synchroni[sz]ed", r"started",
)  # fmt: skip
"""What says that something goes well."""

ENDS_WELL = _words(
    r"succeed(?:ed|s)", r"success(?:ful|fully)?", r"passed", r"recovered", r"resolved", r"restored", r"cleared", r"corrected", r"re-?connected",
    r"re-?established", r"(?:back|now|again) (?:online|up|ok|healthy|ready|available|to normal|reachable)", r"(?:healthy|ok|up|ready|available|reachable) again", r"fixed",
)  # fmt: skip
"""What takes back the trouble before it in the same line."""

BAD_VALUE = re.compile(
    r"\bhttp/\d(?:\.\d)?\"?\s{1,4}5\d\d\b"
    r"|\b(?:status|code|status_?code|http_status|returned|responded with|got|http)\"?'?(?: code| status)?\s{0,3}[=: ]\s{0,3}[\"']?5\d\d\b(?![.:\w])"
    r"|\b5(?:00 internal|02 bad|03 service|04 gateway)"
    r"|\b(?:memory|disk|pid)pressure[\s:=\"',]{1,40}(?:status[\s:=\"']{1,5})?true\b|\bnetworkunavailable[\s:=]{1,40}true\b"
    r"|\b(?:ready|available|containersready|podscheduled|initialized|health|healthy|success|succeeded|reachable)[\s:=\"']{1,40}false\b"
    r"|\b0/\d{1,6} nodes are available"
    r"|\bexit(?:ed)?(?:[ _-]?with)?[ _-]?(?:code|status)?\"?\s{0,3}[=: ]\s{0,9}(?!143\b)[1-9]\d{0,9}\b(?![.:%])"
    r"|\brestart count:\s{0,12}[1-9]"
    r"|\b(?:used|full|usage|utili[sz]ation|cpu|memory|disk|heap|swap|inodes?)\b[^\n\d]{0,12}(?:9[5-9]|1\d\d)(?:\.\d+)?\s?%"
    r"|(?<!k, )\b(?:9[5-9]|100)(?:\.\d+)?\s?% (?:used|full|of (?:the )?(?:disk|memory|heap|space|capacity|cpu))\b",
)
"""A value that is bad whatever the words around it."""

GOOD_VALUE = re.compile(
    r"\bexit(?:ed)?(?: with)?[ _-]?(?:code|status)\"?\s{0,3}[=: ]\s{0,9}0\b"
    r"|\b(?:memory|disk|pid)pressure[\s:=\"',]{1,40}false\b"
    r"|\b(?:ready|available|healthy|success|ok)[\s:=\"']{1,40}true\b"
    r"|\b(?:no|0|zero) (?:errors?|failures?|problems?|issues?|warnings?)\b"
    r"|\b(?:errors?|failed|failures?|failed_count|error_count)\"?\s{0,2}[=:]\s{0,2}0\b"
    r"|(?<![\w.%])(?:[0-7]?\d)(?:\.\d+)?\s?% (?:used|full)\b",
)
"""A value that is good."""

LOGIN = re.compile(
    r"\b(?:failed (?:password|publickey|none|keyboard-interactive\S{0,4}) for|invalid user|authentication failures?;"
    r"|pam_unix|illegal user|possible break-in attempt|too many authentication failures|auth fail\b"
    r"|failed login|login failed|check pass; user unknown|maximum authentication attempts exceeded"
    r"|user unknown|preauth\b|more authentication failures?|anonymous ftp login)",
)
"""Somebody who was not let in: trouble of theirs, and nothing that the service suffers from."""

NEGATORS = _set(
    "no not without zero never none nor neither non avoid avoids avoiding prevent prevents preventing"
    " isn't wasn't didn't doesn't don't hasn't haven't aren't weren't won't ignore ignoring ignored suppress suppressed"
)
"""Words before a statement that turn it around."""

NUMBERED = _set(
    "task job shard stage core cpu node partition disk slot port attempt worker replica thread device drive rank line channel"
    " unit lun id number process instance step container pod index retry rack level"
)
"""Words before a number that is a name rather than a count."""

CONDITIONS = _set(
    "if when whether unless might may would echo should until checking scanning looking"
)
"""Words before what did not happen, or not yet."""

CHECKED = _words(
    r"(?:check(?:ing|s)?|scan(?:ning)?|look(?:ing)?|monitor(?:ing)?|test(?:ing)?|watch(?:ing)?|wait(?:ing)?) for (?:\w{1,20} ){0,2}$"
)

PARTS = _set(
    "handler handlers handling detector detection check checks checker checking recovery reporting reporter report reports log logs"
    " logging logger file files page pages budget threshold policy tolerance tolerant injection correction controller monitor"
    " monitoring callback boundary mode listener prevention protection tracking tracker domain domains rate count counter counts metric"
    " metrics total stream template translator resolver interval period timer settings setting level dialog score score_adj"
    " dumps safe handlers: limiter limit limits analysis value ms seconds s sec is_set"
)
"""Words behind a noun that make a name of both."""

SETTLED = _set(
    "enabled disabled configured registered installed initialized set passed cleared resolved recovered fixed ignored suppressed none"
    " corrected supported"
)
"""Words behind a noun that say that it is settled."""

NOTHING = re.compile(
    r"[\w.-]{0,20}[\"']?\s{0,3}[=:]{1,2}\s{0,3}(?:[\"'](?:[\"']|(?:none|null|false|ok|0)\b)"
    r"|(?:0+(?:\.0+)?(?![\w.])|no\b|none\b|null\b|nil\b|false\b|ok\b|success\b|<nil>|\[\]|\{\}|<none>|n/a\b|-(?!\w)|$|[,;)}]))"
    r"|\s{1,3}0(?![\w.:/])",
    re.IGNORECASE,
)
"""Behind a word: a value that says that there is none."""

SETTING = re.compile(
    r"[\"']?\s{0,3}[=:]?\s{0,3}(?:of |is |to )?\d[\d.]{0,12} ?(?:ms|s|sec|seconds?|m|min|minutes?|h)?\b(?! exceeded)",
    re.IGNORECASE,
)
"""Behind a word such as timeout: how long it is."""

FILE = re.compile(
    r"\.(?:log|conf|cfg|ini|java|py|go|js|ts|rb|cpp|cc|c|h|html?|css|png|ya?ml|json|xml|properties|sh|cs|php|so|txt|gz|sql|scala|kt|rs)[\d:,;)\]'\".]*$",
    re.IGNORECASE,
)
"""The end of a name of a file."""

ASKED = re.compile(
    r"(?:^|_)(?:on|is|has|log|max|min|num|no|allow|handle|fail_on|ignore|next)_$", re.IGNORECASE
)
"""The beginning of a key that sets something."""
