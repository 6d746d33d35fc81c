"""Stacks: traces of exceptions, which are one record however many lines they have."""

import re

_OPENS = (
    ("python-trace", re.compile(r"Traceback \(most recent call last\)")),
    ("java-trace", re.compile(r"Exception in thread \"")),
    (
        "go-trace",
        re.compile(
            r"panic: |fatal error: |goroutine \d+ \[|http: panic serving |unexpected fault address"
        ),
    ),
    ("dotnet-trace", re.compile(r"Unhandled [Ee]xception[.:]")),
    ("rust-trace", re.compile(r"thread '[^']{0,80}' (?:\(\d+\) )?panicked at ")),
    ("php-trace", re.compile(r"PHP (?:Fatal|Parse) error: ")),
    ("node-trace", re.compile(r"(?:Uncaught |Unhandled(?:Promise)?Rejection)")),
)
_BEGINNINGS = (
    *(
        "Traceback (",
        "Exception in thread",
        "panic: ",
        "fatal error: ",
        "goroutine ",
        "http: panic",
        "unexpected fault",
    ),
    *("Unhandled ", "thread '", "PHP ", "Uncaught ", "UnhandledPromise"),
)
_NAME = r"(?:[A-Za-z_$][\w$]{0,100}[./:\\]{1,2}){0,20}[A-Za-z_$][\w$]{0,100}"
_EXCEPTION = re.compile(
    rf"(?:{_NAME})?(?:Error|Exception|Throwable|Failure|Interrupt|Fault)(?: \[\w+\])?(?::\s.*|:?\Z)"
)
_LONG_NAME = re.compile(r"[a-z_]\w{0,60}(?:\.\w{1,60}){1,10}: \S.*")
_TELLING = re.compile(
    r"(?i:error|fail|fatal|denied|refused|cannot|can't|unable|no space|killed|expired|timed? ?out|panic)"
)
_CAUSE = re.compile(r"(?:Caused by|Suppressed|Wrapped by): |---> |\[cause\]: ")
_FRAME = re.compile(
    r"at \S|\.{3} \d+ (?:more|common)|Traceback \(|During handling of|The above exception was|goroutine \d+ \["
    r"|created by |--- End of (?:inner )?exception|\[stacktrace\]|#\d{1,3} \S|Stack trace:|File \"[^\"]*\", line|"
    r"note: run with|stack backtrace|\d{1,3}: 0x|\^+\Z|\}\Z"
)
_CALL = re.compile(r"[\w./@~$-]{1,200}\.[\w.*()\[\]{}$-]{1,200}\(|exit status \d+|\[signal ")
# A frame of Go whose file stands in the next line.
_GO_FRAME = re.compile(r"[\w-]{1,60}(?:\.[\w-]{1,60}){1,5}/[^\s:]{3,300}\Z")
_LANGUAGES = (
    (
        "java-trace",
        re.compile(r"at [\w.$/@<>]+\((?:[\w$-]+\.(?:java|kt|scala)|Native Method|Unknown Source)"),
    ),
    ("node-trace", re.compile(r"at .{0,200}(?:\.[cm]?[jt]sx?:\d+|node:|<anonymous>)")),
    ("dotnet-trace", re.compile(r"at .{1,300} in .{1,300}:line \d+|at [A-Z]\w+\.[\w.`<>]+\(")),
    ("python-trace", re.compile(r"File \"[^\"]{0,300}\", line \d+")),
)


def begins(line: str) -> str:
    """Return the kind of trace that a line surely begins, or an empty text."""
    if not line.startswith(_BEGINNINGS):
        return ""
    return next((form for form, pattern in _OPENS if pattern.match(line)), "")


def opens(line: str) -> str:
    """Return the kind of trace that a line begins, or an empty text."""
    return begins(line) or ("trace" if says(line) else "")


def says(line: str) -> bool:
    """Return whether a line names an exception and tells what it is."""
    return _EXCEPTION.match(line[:1_000]) is not None


def is_telling(line: str) -> bool:
    """Return whether a line of a record may say more than the first one."""
    return _TELLING.search(line[:400]) is not None and not line.startswith(("at ", "File "))


def is_cause(line: str) -> bool:
    """Return whether a line tells what was behind the exception before it."""
    return _CAUSE.match(line) is not None


def continues(line: str, form: str) -> bool:
    """Return whether a line belongs to the record before it, although nothing indents it.

    Args:
        line: The line without spaces around it.
        form: The form of that record.
    """
    if _FRAME.match(line) or _CAUSE.match(line) or says(line):
        return True
    if form == "python-trace":
        return _LONG_NAME.match(line) is not None
    if form == "go-trace" and _CALL.match(line) is not None:
        return True
    return _GO_FRAME.match(line[:400]) is not None


def language(line: str) -> str:
    """Return the kind of trace that a line is a frame of, or an empty text."""
    if line.startswith(("at ", "File ")):
        for form, pattern in _LANGUAGES:
            if pattern.match(line[:600]):
                return form
    return ""
