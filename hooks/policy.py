"""Thread policy: the rules, pure. `threads.py` applies them inside transactions.

A thread under the policy has `agent`, `status` and `context_key` in its metadata; `PolicyStatus`
is that status.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from contexts.context_key import context_key
from contexts.keys import CONTEXT, TENANT_ID, USER_ID
from contexts.policy_status import THREAD_LOCKED, PolicyStatus
from contexts.websites import readable
from hooks.thread_settings import ThreadSettings

# A tuple, because clients may put what has no hash there.
_STATUSES = tuple(PolicyStatus)

# Why a thread was closed: a newer one of its context, or its user went on to another context.
SUPERSEDED, CONTEXT_CHANGED = "superseded", "context_changed"
CANDIDATES = 3

Metadata = Mapping[str, Any]
Changes = dict[str, Any]


class InvalidContext(ValueError):
    """A context that no key can be made of.

    Attributes:
        key: The metadata key that is wrong.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


@dataclass(frozen=True)
class Owner:
    """Whose thread it is; None where authentication does not say."""

    tenant_id: Any = None
    user_id: Any = None

    @classmethod
    def of(cls, metadata: Metadata) -> "Owner":
        """The owner that a thread's metadata names."""
        return cls(metadata.get(TENANT_ID), metadata.get(USER_ID))

    @property
    def labels(self) -> Changes:
        """The owner as metadata."""
        found = {TENANT_ID: self.tenant_id, USER_ID: self.user_id}
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True)
class Session:
    """What may have one open thread: a context of an agent, of one user."""

    owner: Owner
    agent: str
    key: str

    @property
    def labels(self) -> Changes:
        """The session as metadata."""
        return {**self.owner.labels, "agent": self.agent, "context_key": self.key}

    @property
    def name(self) -> str:
        """A name for a lock. It is the same for all contexts, between which threads move."""
        return repr((self.owner.tenant_id, self.owner.user_id, self.agent))

    def may_follow(self, other: "Session") -> bool:
        """Whether a thread of this may take the place of one of `other`, if that is closed."""
        return (self.owner.tenant_id, self.agent) == (other.owner.tenant_id, other.agent)


def agent_of(metadata: Metadata) -> str | None:
    """The agent that a thread's metadata names, or else its graph."""
    agent = metadata.get("agent") or metadata.get("graph_id")
    return agent if isinstance(agent, str) else None


def is_governed(metadata: Metadata) -> bool:
    """Whether a thread is under the policy."""
    return "context_key" in metadata and metadata.get("status") in _STATUSES


def names_context(metadata: Metadata) -> bool:
    """Whether metadata says what the thread is about."""
    return any(metadata.get(key) is not None for key in CONTEXT)


def key_of(metadata: Metadata, settings: ThreadSettings) -> str:
    """The context key that metadata asks for.

    Raises:
        InvalidContext: it cannot be made.
    """
    website, rule_name = metadata.get("website"), metadata.get("rule_name")
    for key, value in (("website", website), ("rule_name", rule_name)):
        if not isinstance(value, str | None):
            raise InvalidContext(key, f"`{key}` must be a text")
    try:
        return context_key(website, rule_name or settings.icp_rule_name, metadata.get("payload"))
    except ValueError as error:
        wrong = (
            "website" if website and website.strip() else "rule_name" if rule_name else "payload"
        )
        raise InvalidContext(wrong, str(error)) from error


def opening(session: Session) -> Changes:
    """The metadata of a thread that opens."""
    return {**session.labels, "status": PolicyStatus.OPEN}


def surplus(open_threads: Sequence[Any], settings: ThreadSettings) -> Sequence[Any]:
    """Which open threads of a session, last used first, make room for one more."""
    if not settings.single_thread_per_context:
        return ()
    return open_threads[settings.max_open_threads_per_agent - 1 :]


def succession(status: str, *, same_context: bool) -> Literal["resume", "replace", "follow"]:
    """What a user gets who asks for a session in place of a thread of that status.

    `resume`: the thread itself. `replace`: a new thread, and it closes. `follow`: a new
    thread; it is closed already.
    """
    if status != PolicyStatus.OPEN:
        return "follow"
    return "resume" if same_context else "replace"


def closing(
    updated_at: datetime,
    moment: datetime,
    settings: ThreadSettings,
    *,
    in_flight: bool,
    reason: str = SUPERSEDED,
) -> Changes:
    """What becomes of an open thread that makes room: it locks, once its runs have ended."""
    if in_flight:
        return {"status": PolicyStatus.PENDING_LOCK, "reason": reason}
    changes = {**locking(moment), "reason": reason}
    if settings.auto_archive_stale_locked and is_stale(updated_at, moment, settings):
        changes |= archiving(moment)
    return changes


def locking(moment: datetime) -> Changes:
    """The changes that lock a thread."""
    return {"status": PolicyStatus.LOCKED, "locked_at": moment.isoformat()}


def archiving(moment: datetime) -> Changes:
    """The changes that archive a thread."""
    return {"status": PolicyStatus.ARCHIVED, "archived_at": moment.isoformat()}


def is_stale(updated_at: datetime, moment: datetime, settings: ThreadSettings) -> bool:
    """Whether a thread has not been used for long."""
    return moment - updated_at > timedelta(days=settings.thread_stale_days)


def is_recent(updated_at: datetime, moment: datetime, settings: ThreadSettings) -> bool:
    """Whether an open thread is still one to go on with."""
    return moment - updated_at <= timedelta(days=settings.thread_resume_window_days)


def refusal(thread_id: Any, status: str) -> Changes:
    """The body of the answer to who writes to a thread that is not open."""
    return {
        "error": THREAD_LOCKED,
        "hint": "create_new",
        "thread_id": str(thread_id),
        "status": status,
        "detail": f"Thread {thread_id} is read-only (thread_locked: {status}). "
        "Its history stays; create a new thread to go on.",
    }


def resolve(eligible: Sequence[Mapping[str, Any]], settings: ThreadSettings) -> Changes | None:
    """What to do about threads that could be resumed, last used first; None: make a new one."""
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
    """What a person calls a thread: its website, else its rule."""
    kind, _, rest = str(metadata.get("context_key", "")).partition(":")
    return readable(rest) if kind == "domain" else rest.rpartition("#")[0]


def _labels(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    named = [(label(row["metadata"]), row["updated_at"]) for row in rows]
    names = [name for name, _ in named]
    return [
        # Alike but for when they were used: a person knows that too.
        f"{name} ({moment:%d %b %Y, %H:%M} UTC)" if names.count(name) > 1 else name
        for name, moment in named
    ]


def sentence(labels: Sequence[str], number: int) -> str:
    """What the assistant says where several threads could be resumed."""
    listed = f"{', '.join(labels[:-1])} and {labels[-1]}"
    latest = "" if number == len(labels) else "; the latest are"
    separator = ":" if not latest else f"{latest}:"
    return (
        f"You have {number} open sessions{separator} {listed}. "
        "Which one would you like to continue, or shall we start a new one?"
    )
