"""Sources: find in a message the logs, metrics and traces, and the words beside them."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from my_agent.diagnosis.events import Kind
from my_agent.diagnosis.reading import formats

_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
# As `tail` writes it in front of each file.
_FILE = re.compile(r"==>(?P<name>.+)<==")
_CONTINUED = re.compile(
    r"[ \t]+\S|Traceback|Caused by|\.\.\. \d+ more|[\w.]+(?:Error|Exception)\b|\s*at |goroutine "
)
_HEADER = re.compile(r"\s*\"?(?:timestamp|time|ts|date)\"?\s*[,;\t]", re.IGNORECASE)
_ROW = re.compile(r"\s*+\"?\d[\d:TZ. +/-]{7,}+\"?[^\S\t]*+[,;\t]")
_SUFFIX = re.compile(r"(?:\.(?:log|txt|csv|json|jsonl|out|err)){1,5}$", re.IGNORECASE)


class Given(NamedTuple):
    """A source as the user gave it.

    Attributes:
        format: one of `formats.FORMATS`, `csv`, `spans`.
        name: the file's name without its suffix, or an empty text.
    """

    kind: Kind
    format: str
    name: str
    lines: int
    text: str


def split(message: str) -> tuple[str, list[Given]]:
    """Return the words of a message, and the sources in it."""
    words: list[str] = []
    given: list[Given] = []
    rest = 0
    for fence in _FENCE.finditer(message):
        _collect(message[rest : fence.start()], words, given)
        inside = list(_parts(fence[1]))
        if any(isinstance(each, Given) for each in inside):
            given += [each for each in inside if isinstance(each, Given)]
        else:
            words.append(fence[1])
        rest = fence.end()
    _collect(message[rest:], words, given)
    return "\n".join(filter(None, (each.strip() for each in words))), given


def _collect(text: str, words: list[str], given: list[Given]) -> None:
    for each in _parts(text):
        if isinstance(each, Given):
            given.append(each)
        else:
            words.append(each)


def _parts(text: str) -> Iterator[Given | str]:
    """Yield the words and sources of a text without fences, in their order."""
    try:
        document = json.loads(text) if text.lstrip().startswith("[") else None
    except ValueError:
        document = None
    if isinstance(document, list) and document and all(isinstance(e, dict) for e in document):
        kind: Kind = "trace" if "span_id" in document[0] or "spanId" in document[0] else "log"
        whole = "\n".join(json.dumps(each) for each in document)
        yield Given(kind, "spans" if kind == "trace" else "json", "", len(document), whole)
        return
    lines: list[str] = []
    forms: list[str] = []
    name = ""
    for line in text.splitlines():
        header = _FILE.fullmatch(line.strip())
        form = "" if header is not None else _format(line, forms[-1] if forms else "")
        if forms and form and _kind(form) == _kind(forms[-1]):
            lines.append(line)
            forms.append(form)
            continue
        if lines:
            yield _given(lines, forms, name)
            # The name of a file ends with its data.
            name = ""
        lines, forms = ([line], [form]) if form else ([], [])
        if header is not None:
            name = _SUFFIX.sub("", header["name"].strip(" ").rpartition("/")[2])
        elif not form and line.strip():
            yield line
    if lines:
        yield _given(lines, forms, name)


def _kind(form: str) -> Kind:
    return "metrics" if form == "csv" else "trace" if form == "spans" else "log"


def _given(lines: list[str], forms: list[str], name: str) -> Given:
    """Return a source. Its format is the most common one of its lines."""
    form = max(sorted(set(forms)), key=forms.count)
    return Given(_kind(form), form, name, len(lines), "\n".join(lines))


def _format(line: str, before: str) -> str:
    """Return the format of a line, or an empty text for words."""
    text = line.strip()
    if text.startswith("{") and ('"span_id"' in text or '"spanId"' in text):
        return "spans"
    if _HEADER.match(text) or (before == "csv" and _ROW.match(text)):
        return "csv"
    found = formats.parse(text) if text else None
    if found is not None:
        return found[0]
    # Lines of a stack trace, and empty lines, belong to the line before them.
    return (
        before
        if before not in ("", "csv", "spans") and (not text or _CONTINUED.match(line))
        else ""
    )
