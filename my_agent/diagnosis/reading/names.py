"""Names: the component that the name of a source or a command tells."""

import re

from my_agent.diagnosis.reading.record import words, workload

_SUFFIX = re.compile(
    r"(?:\.(?:log|txt|csv|tsv|json|jsonl|ndjson|out|err|ya?ml|gz|prom|\d{1,8}|\d{4}-\d\d-\d\d)){1,6}\Z",
    re.IGNORECASE,
)
# Names that say what kind of file it is, and not whose.
_GENERIC = words(
    "log logs out output stdout stderr error errors err access console paste pasted message messages syslog"
    " kern dmesg auth daemon journal debug trace traces spans metrics events event describe pods pod top df free"
    " ps incident data file text input app application main test report dump all combined deployment job nodes node"
    " kubectl get docker compose json csv yaml argocd trace metric stack previous nginx0 journalctl audit cloudtrail"
    " evidence details info previous current latest new old stack sample upload untitled db"
)
_WORDS = re.compile(r"[-_. ()\[\]]")
PROMPT = re.compile(
    r"(?:\$|%|[\w.-]{1,60}@[\w.-]{1,60}[^$#%\n]{0,80}[$#%]|#(?= (?:kubectl|docker|df|free|top|journalctl|cat|tail|"
    r"systemctl|dmesg|ps|netstat|ss|curl|grep|helm|oc|crictl|aws|gcloud|az|psql|mysql|redis-cli) )) (?P<command>\S.*)"
)
"""A command as it stands behind the prompt of a shell."""
FILE = re.compile(r"==>(?P<name>[^\n]{1,300})<==")
"""The line that `tail` writes in front of each file."""
FILE_LINE = re.compile(r"^[ \t]{0,8}==>[^\n]{1,300}<==[ \t]{0,8}$", re.MULTILINE)
"""Matches that line in a text."""
_LOGS = re.compile(
    r"(?:kubectl|oc|k)(?: -\S+(?: [\w-]+)?){0,4} logs?(?P<rest> .*)|(?:docker(?: compose)?|podman|crictl|docker-compose) logs?(?P<more> .*)"
)
_UNIT = re.compile(
    r"journalctl .{0,200}?(?:-u|--unit)[ =]?(?P<unit>[\w@.-]{1,100})|systemctl status (?P<service>[\w@.-]{1,100})"
)
_WITH_VALUE = frozenset(
    ("-n", "--namespace", "-c", "--container", "--tail", "--since", "--context", "-l", "--selector")
)


def component(name: str) -> str:
    """Return the component that the name of a source tells, or an empty text.

    Args:
        name: A file, with its path and suffixes, or a command.
    """
    name = name.strip()
    if " " in name:
        return _of_command(name)
    base = name.replace("\\", "/").rpartition("/")[2]
    base = _SUFFIX.sub("", base[-300:])
    parts = _WORDS.split(base.lower())
    if all(each in _GENERIC or not each.isalpha() for each in parts):
        return ""
    return workload(base)


def section(line: str) -> str | None:
    """Return the name of what a line begins: a file or the output of a command; None: nothing."""
    file = FILE.fullmatch(line)
    if file is not None:
        return file["name"].strip()
    prompt = PROMPT.match(line[:1_000])
    return None if prompt is None else prompt["command"]


def _of_command(command: str) -> str:
    unit = _UNIT.search(command[:1_000])
    if unit is not None:
        return (unit["unit"] or unit["service"]).removesuffix(".service")
    logs = _LOGS.match(command[:1_000])
    if logs is None:
        return ""
    said = (logs["rest"] or logs["more"]).split()
    skipped = False
    for word in said:
        if skipped:
            skipped = False
        elif word.startswith("-"):
            skipped = word in _WITH_VALUE
        else:
            return workload(word.rpartition("/")[2])
    return ""
