"""Thread policy: the rules, as pure functions. `threads.py` applies them inside transactions.

A thread under the policy has `agent`, `status` and `context_key` in its metadata. `PolicyStatus`
lists the values of `status`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from hooks.thread_settings import ThreadSettings
from my_agent.keys import CONTEXT, TENANT_ID, USER_ID
from my_agent.threads.context_key import context_key
from my_agent.threads.policy_status import THREAD_LOCKED, PolicyStatus
from my_agent.web.websites import readable

# A tuple, not a set: a client's `status` may be unhashable, and a set would raise TypeError.
_STATUSES = tuple(PolicyStatus)

# Why a thread was closed: a newer thread has its context, or its user changed to another context.
SUPERSEDED, CONTEXT_CHANGED = "superseded", "context_changed"
# Maximum number of threads among which a user chooses.
CANDIDATES = 3
# An id that no interrupt has.
NO_INTERRUPT = "0" * 32

Metadata = Mapping[str, Any]
Changes = dict[str, Any]


class InvalidContext(ValueError):
    """The context in a thread's metadata is invalid.

    Attributes:
        key: The metadata key with the invalid value.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


@dataclass(frozen=True)
class Owner:
    """The owner of a thread. The fields are None without authentication."""

    tenant_id: Any = None
    user_id: Any = None

    @classmethod
    def of(cls, metadata: Metadata) -> "Owner":
        """Return the owner in a thread's metadata."""
        return cls(metadata.get(TENANT_ID), metadata.get(USER_ID))

    @property
    def labels(self) -> Changes:
        """Return the owner as metadata."""
        found = {TENANT_ID: self.tenant_id, USER_ID: self.user_id}
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True)
class Session:
    """One user's context of one agent. The policy limits the open threads of each session."""

    owner: Owner
    agent: str
    key: str

    @property
    def labels(self) -> Changes:
        """Return the session as metadata."""
        return {**self.owner.labels, "agent": self.agent, "context_key": self.key}

    @property
    def name(self) -> str:
        """Return the name of the session's lock.

        All contexts of a user and agent share one lock, because a thread can change its context.
        """
        return repr((self.owner.tenant_id, self.owner.user_id, self.agent))

    def may_follow(self, other: "Session") -> bool:
        """Return whether a thread of this session may replace a closed thread of `other`."""
        return (self.owner.tenant_id, self.agent) == (other.owner.tenant_id, other.agent)


def agent_of(metadata: Metadata) -> str | None:
    """Return the agent in a thread's metadata, or the graph if there is no agent."""
    agent = metadata.get("agent") or metadata.get("graph_id")
    return agent if isinstance(agent, str) else None


def is_governed(metadata: Metadata) -> bool:
    """Return whether a thread with this metadata is under the policy."""
    return "context_key" in metadata and metadata.get("status") in _STATUSES


def names_context(metadata: Metadata) -> bool:
    """Return whether metadata has a website, a rule name or a payload."""
    return any(metadata.get(key) is not None for key in CONTEXT)


def key_of(metadata: Metadata, settings: ThreadSettings) -> str:
    """Compute the context key for a thread's metadata.

    Raises:
        InvalidContext: the website, the rule name or the payload is invalid.
    """
    website, rule_name = metadata.get("website"), metadata.get("rule_name")
    for key, value in (("website", website), ("rule_name", rule_name)):
        if not isinstance(value, str | None):
            raise InvalidContext(key, f"`{key}` must be a string")
    try:
        return context_key(website, rule_name or settings.icp_rule_name, metadata.get("payload"))
    except ValueError as error:
        wrong = (
            "website" if website and website.strip() else "rule_name" if rule_name else "payload"
        )
        raise InvalidContext(wrong, str(error)) from error


def opening(session: Session) -> Changes:
    """Return the metadata of a new thread of a session."""
    return {**session.labels, "status": PolicyStatus.OPEN}


def surplus(open_threads: Sequence[Any], settings: ThreadSettings) -> Sequence[Any]:
    """Select the open threads that must close before a session may open another thread.

    Args:
        open_threads: The session's open threads, last used first.
        settings: The limit of open threads.
    """
    if not settings.single_thread_per_context:
        return ()
    return open_threads[settings.max_open_threads_per_agent - 1 :]


def succession(status: str, *, same_context: bool) -> Literal["resume", "replace", "follow"]:
    """Decide how a request to replace a thread is answered.

    Args:
        status: The status of the thread.
        same_context: Whether the request names the context of the thread.

    Returns:
        `resume`: the thread itself continues. `replace`: a new thread opens and this one closes.
        `follow`: a new thread opens; this one is already closed.
    """
    if status != PolicyStatus.OPEN:
        return "follow"
    return "resume" if same_context else "replace"


def closing(
    updated_at: datetime,
    now: datetime,
    settings: ThreadSettings,
    *,
    in_flight: bool,
    reason: str = SUPERSEDED,
) -> Changes:
    """Return the metadata changes that close an open thread.

    A thread with runs in flight becomes `pending_lock` and locks after its last run. A stale
    thread is archived at once if the settings say so.

    Args:
        updated_at: The last use of the thread.
        now: The current time.
        settings: The age at which threads are stale, and whether stale threads are archived.
        in_flight: Whether the thread has pending or running runs.
        reason: `SUPERSEDED` or `CONTEXT_CHANGED`.
    """
    if in_flight:
        return {"status": PolicyStatus.PENDING_LOCK, "reason": reason}
    changes = {**locking(now), "reason": reason}
    if settings.auto_archive_stale_locked and is_stale(updated_at, now, settings):
        changes |= archiving(now)
    return changes


def locking(now: datetime) -> Changes:
    """Return the metadata changes that lock a thread."""
    return {"status": PolicyStatus.LOCKED, "locked_at": now.isoformat()}


def archiving(now: datetime) -> Changes:
    """Return the metadata changes that archive a thread."""
    return {"status": PolicyStatus.ARCHIVED, "archived_at": now.isoformat()}


def is_stale(updated_at: datetime, now: datetime, settings: ThreadSettings) -> bool:
    """Return whether a thread has been unused for more than `thread_stale_days`."""
    return now - updated_at > timedelta(days=settings.thread_stale_days)


def is_recent(updated_at: datetime, now: datetime, settings: ThreadSettings) -> bool:
    """Return whether an open thread was used within `thread_resume_window_days`."""
    return now - updated_at <= timedelta(days=settings.thread_resume_window_days)


def question_ids(interrupts: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the ids of the questions that a thread's interrupts ask."""
    asked = [each.get("value") for group in interrupts.values() for each in group]
    ids = [each.get("id") for each in asked if isinstance(each, Mapping)]
    return [each for each in ids if isinstance(each, str)]


def pinned(command: Any, interrupts: Mapping[str, Sequence[Any]]) -> Changes | None:
    """Bind an answer to the interrupt that waits while its run is created.

    A second click at the same question creates a run that starts when the next question waits. Its
    answer must not go there.

    Args:
        command: The command of the new run.
        interrupts: The thread's interrupts, by task.

    Returns:
        The command with its answer by the interrupt's id. None: there is nothing to bind.
    """
    if not isinstance(command, Mapping) or command.get("resume") is None:
        return None
    answer = command["resume"]
    waiting = [each["id"] for group in interrupts.values() for each in group if "id" in each]
    by_id = isinstance(answer, Mapping) and bool(answer) and all(map(_is_interrupt_id, answer))
    # Several interrupts at once need an answer by id, which langgraph tells the client.
    if by_id or len(waiting) > 1:
        return None
    return {**command, "resume": {waiting[0] if waiting else NO_INTERRUPT: answer}}


def _is_interrupt_id(key: Any) -> bool:
    return isinstance(key, str) and re.fullmatch("[0-9a-f]{32}", key) is not None


def refusal(thread_id: Any, status: str) -> Changes:
    """Return the body of the 409 answer to a write to a thread that is not open."""
    return {
        "error": THREAD_LOCKED,
        "hint": "create_new",
        "thread_id": str(thread_id),
        "status": status,
        "detail": f"Thread {thread_id} is read-only (thread_locked: {status}). "
        "Its history is kept. Create a new thread to continue.",
    }


def resolve(eligible: Sequence[Mapping[str, Any]], settings: ThreadSettings) -> Changes | None:
    """Decide between the threads that can be resumed. Return None to create a new thread.

    Args:
        eligible: The threads that can be resumed, last used first.
        settings: Whether the user chooses among several threads.

    Returns:
        `{"action": "resume", "thread_id"}` or `{"action": "choose", "candidates", "message"}`.
    """
    if not eligible:
        return None
    if len(eligible) == 1 or not settings.return_user_strict:
        return {"action": "resume", "thread_id": str(eligible[0]["thread_id"])}
    shown = eligible[:CANDIDATES]
    labels = _labels(shown)
    candidates = [
        {
            "thread_id": str(row["thread_id"]),
            "label": label,
            "updated_at": row["updated_at"].isoformat(),
        }
        for row, label in zip(shown, labels, strict=True)
    ]
    message = sentence(labels, len(eligible))
    return {"action": "choose", "candidates": candidates, "message": message}


def label(metadata: Metadata) -> str:
    """Return a short name of a thread for its user: its website, or the name of its rule."""
    kind, _, rest = str(metadata.get("context_key", "")).partition(":")
    return readable(rest) if kind == "domain" else rest.rpartition("#")[0]


def _labels(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    named = [(label(row["metadata"]), row["updated_at"]) for row in rows]
    names = [name for name, _ in named]
    return [
        # Threads with equal names are distinguished by the time of their last use.
        f"{name} ({updated_at:%d %b %Y, %H:%M} UTC)" if names.count(name) > 1 else name
        for name, updated_at in named
    ]


def sentence(labels: Sequence[str], number: int) -> str:
    """Write the assistant's question when several threads can be resumed.

    Args:
        labels: The names of the threads that are offered, at least two.
        number: The number of threads that can be resumed.
    """
    listed = f"{', '.join(labels[:-1])} and {labels[-1]}"
    latest = "" if number == len(labels) else "; the latest are"
    separator = ":" if not latest else f"{latest}:"
    return (
        f"You have {number} open sessions{separator} {listed}. "
        "Which one would you like to continue, or shall we start a new one?"
    )
