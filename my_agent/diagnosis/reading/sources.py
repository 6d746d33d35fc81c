"""Sources: find in a message what was pasted, and the words beside it."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from my_agent.diagnosis.reading import names
from my_agent.diagnosis.reading.record import clean
from my_agent.diagnosis.reading.scan import Scan
from my_agent.diagnosis.reading.summary import Kind

HEAD = 65_536
"""Characters of an upload that tell what it is."""
NAME = 200
"""Characters of the name of a source."""
_FENCE = re.compile(r"^[ \t]{0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n`]{0,200})\n", re.MULTILINE)
_ENDS = re.compile(r"^[ \t]{0,3}(?P<mark>`{3,200}|~{3,200})[ \t]{0,200}$", re.MULTILINE)
_SUFFIX = re.compile(r"(?:\.(?:log|txt|csv|json|jsonl|out|err)){1,5}\Z", re.IGNORECASE)
_METRICS = frozenset(("csv", "prometheus"))
# Forms that a sentence may look like by chance.
_DOUBTFUL = frozenset(
    ("yaml", "kubectl-describe", "bare", "prefixed", "dated", "table", "trace", "conditions")
)
# Forms of lists that people write themselves, of so many lines.
_WRITTEN, _LIST = frozenset(("", "yaml", "prefixed")), 6
# What a program says when it fails: `curl: (7) Failed to connect`.
_PROGRAM = re.compile(
    r"[\w./-]{1,60}: (?:\(\d+\) |[\w./-]{1,80}: )?.{0,200}(?i:fail|error|denied|refused|not found|cannot|unable|timed? ?out|no such)"
)
_WORD = re.compile(r"[^\W\d_]+(?:['\N{RIGHT SINGLE QUOTATION MARK}-][^\W\d_]+)*")
_PERSON = re.compile(
    r"\b(?:i|we|you|my|our|us|please|why|what|how|thanks|help|can|could|should|is|are|does|do|that's|here|this)\b|\?\s*\Z",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b(?:i|we|my|our|please|thanks|why)\b|\?\s*\Z", re.IGNORECASE)
_SPACED = re.compile(r"\S(?:\t| {3,})\S")
# Shares of words in a sentence, and of lines that are none in a paste.
_PROSE, _ODD = 0.7, 0.4
_LONG, _SENTENCE, _SEVERAL, _MANY = 60, 200, 2, 4
_GIVEN = 4_102_444_800_000_000


class Given(NamedTuple):
    """A source as the user gave it.

    Attributes:
        format: The most common reader of its lines, such as `syslog`; `text` if none knows them.
        name: The name of its file without suffix, the command that printed it, or an empty text.
    """

    kind: Kind
    format: str
    name: str
    lines: int
    text: str


class _Line(NamedTuple):
    text: str
    form: str


def split(message: str) -> tuple[str, list[Given]]:
    """Return the words of a message, and what was pasted in it.

    What may be either is both: nothing that was pasted is lost, and nothing that was said.
    """
    words: list[str] = []
    given: list[Given] = []
    # From the first named file on, everything is a part of files: also fences and sentences.
    file = names.FILE_LINE.search(message)
    files = "" if file is None else message[file.start() :]
    message = message if file is None else message[: file.start()]
    place = 0
    while (fence := _FENCE.search(message, place)) is not None:
        _collect(message[place : fence.start()], words, given)
        end = _end(message, fence)
        inside = message[fence.end() : end.start() if end else len(message)]
        given += _sections(inside)
        place = end.end() if end else len(message)
    _collect(message[place:], words, given)
    asked = _asked(files)
    words += asked
    # A question is no evidence, and any other sentence may be.
    given += _sections(
        files.rstrip().rpartition("\n\n")[0] if asked[-1:] and asked[-1].endswith("?") else files
    )
    return "\n".join(filter(None, (each.strip() for each in words))), given


def _asked(files: str) -> list[str]:
    """Return the last paragraph behind files if a person has written it: it is evidence and words."""
    last = [each.strip() for each in files.rstrip().rpartition("\n\n")[2].splitlines()]
    is_said = len(last) <= _MANY and all(_is_prose(each) for each in last)
    return last if is_said and any(_PERSON.search(each[:300]) for each in last) else []


def _end(message: str, fence: re.Match[str]) -> re.Match[str] | None:
    """Return the end of a fence: the same mark, at least as long; None: the message ends before."""
    ends = _ENDS.finditer(message, fence.end())
    return next((each for each in ends if each["mark"].startswith(fence["mark"])), None)


def sniff(head: str, name: str) -> tuple[Kind, str]:
    """Return the kind and the format of an upload.

    Args:
        head: Its first characters, at most `HEAD` of them are read.
        name: Its name.
    """
    forms = Counter(each.form for each in _lines(head[:HEAD], name) if each.text.strip())
    return _kind(forms), _format(forms)


def _kind(forms: Counter[str]) -> Kind:
    form = _format(forms)
    if form in _METRICS:
        return "metrics"
    if form == "span":
        return "trace"
    return "text" if form == "text" else "log"


def _format(forms: Counter[str]) -> str:
    known = {form: count for form, count in forms.items() if form not in ("", "command")}
    return max(sorted(known), key=lambda each: known[each])[:40] if known else "text"


def _lines(text: str, name: str = "") -> Iterator[_Line]:
    """Yield the lines of a text with their ends, and the form that each has."""
    start = 0
    for end, form, _ in Scan(text, name, _GIVEN).steps():
        for line in text[start:end].splitlines(keepends=True):
            yield _Line(line, form)
        start = max(start, end)


def _sections(text: str) -> list[Given]:
    """Return what is in a fence: all of it, by files and commands."""
    found: list[Given] = []
    lines: list[_Line] = []
    name = ""
    for line in _lines(text):
        header = _header(line)
        if header is not None:
            found += _given(lines, name)
            name, keep = header
            lines = [line] if keep else []
        else:
            lines.append(line)
    return found + _given(lines, name)


def _header(line: _Line) -> tuple[str, bool] | None:
    """Return the name that a line gives to what follows, and whether it is a part of it."""
    said = line.text.strip()
    file = names.FILE.fullmatch(said)
    if file is not None:
        base = file["name"].strip().rpartition("/")[2]
        return clean(_SUFFIX.sub("", base)[:NAME]), False
    prompt = names.PROMPT.match(said[:1_000]) if line.form == "command" else None
    return (clean(prompt["command"][:NAME]), True) if prompt is not None else None


def _given(lines: list[_Line], name: str) -> list[Given]:
    """Return the source that consists of lines; none if they are empty."""
    while lines and not lines[-1].text.strip():
        lines.pop()
    while lines and not lines[0].text.strip():
        lines.pop(0)
    if not lines:
        return []
    forms = Counter(each.form for each in lines if each.text.strip())
    text = "".join(each.text for each in lines).rstrip("\r\n")
    return [Given(_kind(forms), _format(forms), name, len(lines), text)]


def _collect(text: str, words: list[str], given: list[Given]) -> None:
    """Tell the words and the sources of a text without fences apart."""
    paste = _Paste(words, given)
    for part in _parts(text):
        paste.add(part)
    paste.close()


def _parts(text: str) -> Iterator[list[_Line]]:
    """Yield headers, empty lines, and runs of lines that a reader knows or that none knows."""
    part: list[_Line] = []
    for line in _lines(text):
        alone = not line.text.strip() or _header(line) is not None
        if part and (alone or bool(line.form) != bool(part[-1].form) or _differ(part[-1], line)):
            yield part
            part = []
        part.append(line)
        if alone:
            yield part
            part = []
    if part:
        yield part


def _differ(one: _Line, other: _Line) -> bool:
    """Return whether lines are of different kinds: metrics, spans or a log."""
    special = _METRICS | {"span"}
    return one.form != other.form and (one.form in special or other.form in special)


class _Paste:
    """A message without its fences, of which the beginning was read."""

    def __init__(self, words: list[str], given: list[Given]) -> None:
        self._words = words
        self._given = given
        self._lines: list[_Line] = []
        self._name = ""
        self._inside = False
        self._after_blank = True

    def add(self, part: list[_Line]) -> None:
        """Take the next part."""
        if not part[0].text.strip():
            self._after_blank = True
            if self._inside:
                self._lines += part
            return
        header = _header(part[0])
        if header is not None:
            self.close()
            self._name, keep = header
            self._inside = True
            self._lines = part if keep else []
        elif not self._is_evidence(part):
            self.close()
            self._words += [each.text.strip() for each in part]
            self._keep_doubts(part)
        else:
            if self._lines and self._is_new(part):
                self.close()
            told = not self._lines and not self._name and _is_list(part)
            self._lines += part
            self._inside = True
            self._words += [each.text.strip() for each in part if told or self._is_said(each, part)]
        self._after_blank = False

    def close(self) -> None:
        """End the source that is being read."""
        self._given += _given(self._lines, self._name)
        self._lines, self._name, self._inside = [], "", False

    def _is_new(self, part: list[_Line]) -> bool:
        before = next((each for each in reversed(self._lines) if each.form), None)
        return before is not None and bool(part[0].form) and _differ(before, part[0])

    def _is_evidence(self, part: list[_Line]) -> bool:
        if part[0].form or (self._inside and not self._after_blank):
            return True
        said = [each.text.strip() for each in part]
        odd = sum(not _is_prose(each) for each in said)
        personal = any(_PERSON.search(each[:300]) for each in said)
        if self._inside:
            return odd > 0 or not personal
        if len(part) >= _SEVERAL:
            return odd >= _ODD * len(part) or (len(part) >= _MANY and not personal)
        return odd > 0 and (_SPACED.search(said[0]) is not None or len(said[0]) > _LONG)

    def _is_said(self, line: _Line, part: list[_Line]) -> bool:
        """Return whether a line of the evidence may be a sentence of the person."""
        if line.form and line.form not in _DOUBTFUL:
            return False
        said = line.text.strip()
        if not _is_prose(said) or len(said) > _SENTENCE:
            return False
        few = len(part) < _MANY and not line.form and not self._name
        return few or _SPEAKER.search(said[:300]) is not None

    def _keep_doubts(self, part: list[_Line]) -> None:
        """Keep what a program may have said as evidence, too."""
        lines = [each for each in part if _PROGRAM.match(each.text.strip()[:400])]
        self._given += _given(lines, "")


def _is_list(part: list[_Line]) -> bool:
    """Return whether lines may be a list that a person has written."""
    return len(part) <= _LIST and all(each.form in _WRITTEN for each in part)


def _is_prose(said: str) -> bool:
    """Return whether a line looks like a sentence of a person."""
    said = said[:600]
    if _SPACED.search(said):
        return False
    tokens = said.split()
    plain = sum(_WORD.fullmatch(each.strip("\"'.,;:!?()*_")) is not None for each in tokens)
    return plain >= _PROSE * len(tokens)
