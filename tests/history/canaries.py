"""Canaries: texts that occur nowhere else, which each tenant puts into all that it sends."""

import re
import secrets
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.support.issuer import bearer, token

# Number of ids of each kind from which requests choose.
KEPT = 12
# Characters around a canary that the evidence keeps.
AROUND = 150
_MARK = re.compile(r"(?:canary|trace)[0-9a-f]{24}", re.IGNORECASE)
# Keys whose values are free texts, and keys whose values may be anything.
_TEXTS = {"answer", "content", "description", "message", "note", "question", "reason", "text"}
_VALUES = {"a", "value", "response"}
_IDS = ("thread_id", "assistant_id", "cron_id", "document_id")


@dataclass
class Tenant:
    """A tenant with one user, and the ids of its objects.

    Attributes:
        canary: In all content that the tenant sends. One word, so that it stays whole in tokens.
        trace: In the header `X-Request-ID`, which logs may show and other tenants may not see.
        ids: Ids by their name in paths. Deleted objects stay listed.
        runs: Run ids with those of their threads.
    """

    name: str
    roles: tuple[str, ...] = ()
    webhook: str = ""
    canary: str = field(default_factory=lambda: f"canary{secrets.token_hex(12)}")
    trace: str = field(default_factory=lambda: f"trace{secrets.token_hex(12)}")
    ids: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    runs: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The users of all tenants have the same name.
        self._tokens = {
            roles: bearer(token(tenant_id=self.name, sub="ada", roles=list(roles)))
            for roles in (self.roles, ("operator",))
        }

    def headers(self, *, operator: bool = False) -> dict[str, str]:
        """Return the headers of a request of the user, or of the tenant's operator."""
        return {
            **self._tokens[("operator",) if operator else self.roles],
            "user-agent": f"fuzzer {self.canary}",
            "x-note": self.canary,
            "x-request-id": f"{self.trace}-{uuid4()}",
        }

    def note(self, name: str, value: str) -> None:
        """Keep the id of an object."""
        self.ids[name] = [*self.ids[name][-KEPT + 1 :], value]

    def learn(self, answer: Any) -> None:
        """Keep the ids that an answer names."""
        if not isinstance(answer, dict):
            return
        for name in _IDS:
            if isinstance(answer.get(name), str):
                self.note(name, answer[name])
        if isinstance(answer.get("run_id"), str) and isinstance(answer.get("thread_id"), str):
            self.runs = [*self.runs[-KEPT + 1 :], (answer["thread_id"], answer["run_id"])]
        checkpoint = answer.get("checkpoint")
        if isinstance(checkpoint, dict) and isinstance(checkpoint.get("checkpoint_id"), str):
            self.note("checkpoint_id", checkpoint["checkpoint_id"])
        waiting = answer.get("__interrupt__")
        for each in waiting if isinstance(waiting, list) else ():
            self.note("interrupt_id", str(each.get("id")))


def marked(value: Any, canary: str) -> Any:
    """Return a JSON value with a canary in each of its texts, values and metadata."""
    if isinstance(value, list):
        return [marked(each, canary) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _marked(name, each, canary) for name, each in value.items()}
    if "input" in found or "metadata" in found:
        found["metadata"] = {**(found.get("metadata") or {}), "note": canary}
    return found


def _marked(name: str, value: Any, canary: str) -> Any:
    if name == "website":
        return f"{canary}.example"
    if name in _VALUES and isinstance(value, str | int):
        return canary
    if name in _TEXTS and value and isinstance(value, str):
        return f"{value} {canary}"
    return marked(value, canary)


def excerpts(text: str) -> str:
    """Return what is around the first place of each canary and trace in a text, of any tenant."""
    return "\n".join(_excerpts(text))


def _excerpts(text: str) -> Iterator[str]:
    seen = set()
    for found in _MARK.finditer(text):
        if (mark := found[0].lower()) not in seen:
            seen.add(mark)
            yield text[max(0, found.start() - AROUND) : found.end() + AROUND]
