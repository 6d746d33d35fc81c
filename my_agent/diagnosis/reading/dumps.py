"""Dumps: named values on lines of their own, as `kubectl describe`, YAML and indented JSON have them."""

import re

from my_agent.diagnosis.reading import dates, states
from my_agent.diagnosis.reading.record import Record, workload
from my_agent.diagnosis.reading.spot import Spot

_KEY = re.compile(
    r"(?P<indent>[ \t]*)(?P<items>(?:- )*)(?:\"(?P<quoted>[^\"\\]{1,200})\"|(?P<key>[A-Za-z_.$/@(][\w ().$/@%-]{0,100}?))"
    r"[ \t]*:(?:[ \t]+(?P<value>\S.*)|[ \t]*\Z)"
)
_ALIGNED = re.compile(r"[A-Z][\w ().-]{0,60}:[ \t]{2,}\S|[A-Z][\w ().-]{0,60}:\Z")
_BEGINS = re.compile(r"(?:apiVersion|kind|metadata|spec|status|items):|---\Z|[{\[]\Z")
_BRACKETS = re.compile(r"[{}\[\], \t]+")
# Long parts that tell nothing about health; their lines are one group each.
_NOISE = frozenset(
    (
        *(
            "managedfields",
            "labels",
            "annotations",
            "volumes",
            "mounts",
            "tolerations",
            "node-selectors",
        ),
        *(
            "uid",
            "resourceversion",
            "container id",
            "image id",
            "qos class",
            "service account",
            "host port",
        ),
        *("selflink", "ownerreferences", "generation", "priority", "ips", "tokenexpirationseconds"),
        *("volumemounts", "containerid", "imageid"),
    )
)
# The line above each row where MySQL shows rows as lists.
_ROW = re.compile(r"\*{3,80} \d{1,9}\. row \*{3,80}")
# Words of a value that is a sentence.
_SENTENCE = 4
_DEEPEST = 30


class Dump:
    """A dump that is being read.

    Attributes:
        form: `kubectl-describe`, `yaml` or `json`.
        subject: What it is about: the name of a resource, or an empty text.
    """

    def __init__(self, form: str, subject: str, given: int) -> None:
        self.form = form
        self.subject = subject
        self._given = given
        self._path: list[tuple[int, str]] = []
        self._top = ""

    def take(self, line: str, spot: Spot) -> Record | None:
        """Return the record of a line. None: the line is not of the dump, which has ended."""
        said = line.strip()
        if _BRACKETS.fullmatch(said) or said == "---" or _ROW.fullmatch(said):
            if said == "---" or (
                self.form == "yaml" and not line[:1].isspace() and said[:1] in "{}"
            ):
                self._path = []
            return spot.record(self.form, self.subject, "", said, stance="neutral", name="brackets")
        found = _KEY.match(line[:4_000])
        if found is None:
            return self._bare(line, said, spot)
        indent = len(found["indent"]) + len(found["items"])
        key, value = found["quoted"] or found["key"], (found["value"] or "").rstrip(" ,")
        if (
            self.form != "json"
            and not indent
            and key[0].islower()
            and self.form == "kubectl-describe"
        ):
            return None
        if not indent and self._top == key and self.form == "yaml":
            return None
        self._top = key if not indent else ""
        self._enter(indent, key)
        self._name(indent, key, value)
        return self._value(key, value, indent, spot)

    def _enter(self, indent: int, key: str) -> None:
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()
        if len(self._path) < _DEEPEST:
            self._path.append((indent, key))

    def _name(self, indent: int, key: str, value: str) -> None:
        """Learn what the dump is about."""
        parents = [each for _, each in self._path[:-1]]
        top = not indent or (self.form == "json" and len(self._path) <= 1)
        if key == "Name" and top and value:
            self.subject = workload(value.strip('"').rpartition("/")[2])
            self._path = [(0, key)]
        elif key == "name" and parents[-1:] == ["metadata"] and len(parents) <= 3 and value:
            self.subject = workload(value.strip('"'))

    def _value(self, key: str, value: str, indent: int, spot: Spot) -> Record:
        names = [each for _, each in self._path]
        if any(each.lower() in _NOISE for each in names):
            noise = next(each for each in names if each.lower() in _NOISE)
            return spot.record(
                self.form, self.subject, "", f"{key}: {value}", stance="neutral", name=noise
            )
        known = states.value(key, value)
        sentence = self.form == "yaml" and not indent and len(value.split()) >= _SENTENCE
        telling = sentence or (states.is_telling(key) and " " in value)
        stance = known or ("" if telling else "neutral")
        when = (
            dates.parse(value.strip('"'), self._given)
            if "time" in key.lower() or key in ("Started", "Finished")
            else None
        )
        inside = [
            each for each in names[-4:-1] if each not in ("items", "spec", "status", "Containers")
        ]
        shown = ", ".join([*inside, f"{key}: {value}" if value else f"{key}:"])
        return spot.record(
            self.form, self.subject, "", shown, stance=stance, when=when,
            name="" if not stance else f"{'/'.join(names)}={value[:80] if stance != 'neutral' else ''}",
        )  # fmt: skip

    def _bare(self, line: str, said: str, spot: Spot) -> Record | None:
        """Read a line without a key: a part of the value above it."""
        if not line[:1].isspace() and not said.startswith(("- ", '"')):
            return None
        names = [each for _, each in self._path]
        if not names:
            return None
        noise = next((each for each in names if each.lower() in _NOISE), "")
        telling = states.is_telling(names[-1])
        return spot.record(
            self.form, self.subject, "", f"{names[-1]}: {said}", stance="" if telling and not noise else "neutral",
            name=noise or ("" if telling else "/".join(names)),
        )  # fmt: skip


def begins(line: str, following: str) -> str:
    """Return the form of the dump that a line begins, or an empty text.

    Args:
        line: The line.
        following: The line after it.
    """
    line, following = line[:4_000], following[:4_000]
    if _ROW.match(line):
        return "rows"
    if _BEGINS.match(line):
        if line[:1] in "{[":
            return (
                "json" if _KEY.match(following) or following.strip()[:1] in ("{", "[", '"') else ""
            )
        return "yaml" if _KEY.match(following) or line.startswith("---") else ""
    if _ALIGNED.match(line) and (following[:1].isspace() or _ALIGNED.match(following)):
        return "kubectl-describe"
    found, after = _KEY.match(line), _KEY.match(following)
    if found is None or after is None or found["indent"] or not line[:1].isalnum():
        return ""
    if found["key"] == after["key"] and not after["indent"]:
        # A program that writes its name before each line.
        return ""
    one_word = " " not in (found["key"] or "") and (
        after["indent"] or " " not in (after["key"] or "")
    )
    return "yaml" if one_word else ""
