"""Thread policy: one open thread for each context of a user, and earlier ones read-only.

The object `policy` is what `langgraph.json` names as hooks. It runs inside the
transaction of every write, so that whatever route is taken and however many
clients are at it, opening a thread and locking its predecessors is one step.
The rules are in `policy.py`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from contexts.keys import CONTEXT, OWNER, RESERVED, TENANT_ID, USER_ID
from contexts.policy_status import THREAD_RESOLVED, PolicyStatus
from hooks import policy as rules
from hooks.decisions import Action, decided
from hooks.policy import Changes, InvalidContext, Owner, Session
from hooks.thread_settings import ThreadSettings
from threadhold.hooks import Caller, Reject, ThreadStatus, Transaction

Row = dict[str, Any]

PAGE = 100
CLOSED: dict[str, Action] = {
    PolicyStatus.LOCKED: "thread_locked",
    PolicyStatus.PENDING_LOCK: "thread_pending_lock",
    PolicyStatus.ARCHIVED: "thread_archived",
}


class ThreadPolicy:
    """The hooks of the thread policy.

    A thread comes under it when it is created for one of its agents, or when
    such an agent first runs on it. Threads that go with their run stay outside.

    Where the host's middleware notes `resolve=True` about a request, a thread is
    only created if none could be resumed: else the request is refused with what
    to do instead, `{"error": "thread_resolved", "action": ...}`. `replaces=<thread id>`
    has the new thread take the place of that one, which closes; if that one is open and
    of the same context, the request is refused in the same way. With
    `include_archived=True`, searches find archived threads as well.

    Args:
        settings: Those of the environment by default.
    """

    def __init__(self, settings: ThreadSettings | None = None) -> None:
        self.thread_settings = settings or ThreadSettings()

    def before_thread_create(self, tx: Transaction, thread: Row) -> None:
        metadata = thread["metadata"]
        _stamp_owner(tx.caller, metadata)
        if "context_key" in metadata:
            # Of the thread that is copied: a copy is a new thread of the same context.
            for key in RESERVED:
                metadata.pop(key, None)
        # A run that makes its thread says who its agent is, and whether the thread stays.
        if thread["status"] != ThreadStatus.BUSY:
            agent = rules.agent_of(metadata)
            if agent in self.thread_settings.thread_policy_agents and agent is not None:
                metadata |= self._opened(tx, thread["thread_id"], metadata, agent)

    def before_thread_update(self, tx: Transaction, thread: Row, metadata: Row) -> None:
        old = thread["metadata"]
        merged = {**old, **metadata}
        agent = rules.agent_of(merged)
        if not rules.is_governed(old):
            if agent in self.thread_settings.thread_policy_agents and agent is not None:
                metadata |= self._opened(tx, thread["thread_id"], merged, agent)
            return
        for key in ("agent", *RESERVED):
            if merged.get(key) != old.get(key):
                raise Reject(422, _reserved(key))
        if all(merged.get(key) == old.get(key) for key in CONTEXT):
            return
        self._gate(thread, "update")
        session = self._session(merged, old["agent"])
        if session.key != old["context_key"]:
            self._make_room(tx, session, thread["thread_id"])
            metadata["context_key"] = session.key

    def before_run_create(self, tx: Transaction, thread: Row, run: Row) -> None:
        metadata = thread["metadata"]
        if rules.is_governed(metadata):
            self._gate(thread, "run")
            return
        agent = run["kwargs"]["config"]["configurable"]["graph_id"]
        governs = agent in self.thread_settings.thread_policy_agents
        if governs and not run["kwargs"].get("temporary"):
            tx.patch_thread(
                thread["thread_id"], self._opened(tx, thread["thread_id"], metadata, agent)
            )

    def before_state_update(self, tx: Transaction, thread: Row) -> None:
        if rules.is_governed(thread["metadata"]):
            self._gate(thread, "state")

    def after_run_end(self, tx: Transaction, thread: Row | None, run: Row, status: str) -> None:
        if thread is None or not rules.is_governed(thread["metadata"]):
            return
        waits = thread["metadata"]["status"] == PolicyStatus.PENDING_LOCK
        if waits and not tx.in_flight(thread["thread_id"]):
            self._change(tx, thread, rules.locking(_now()))

    def before_thread_search(self, tx: Transaction, search: Row) -> None:
        asked = "status" in search["metadata"] or tx.caller.note.get("include_archived")
        if not asked and self.thread_settings.thread_policy_agents:
            search["without"]["status"] = PolicyStatus.ARCHIVED

    def _opened(self, tx: Transaction, thread_id: UUID, metadata: Row, agent: str) -> Changes:
        """Make room for a thread; the metadata it opens with."""
        owner = Owner.of(metadata)
        if owner == Owner():
            owner = _owner(tx.caller)
        session = self._session(metadata, agent, owner)
        tx.lock(session.name)
        if (replaced := tx.caller.note.get("replaces")) is not None:
            self._succeed(tx, session, thread_id, replaced)
        if tx.caller.note.get("resolve"):
            self._resolve(tx, session, any_context=not rules.names_context(metadata))
        self._make_room(tx, session, thread_id)
        tx.after_commit(
            partial(decided, "thread_created", agent, thread_id, context_key=session.key)
        )
        return rules.opening(session)

    def _session(self, metadata: Row, agent: str, owner: Owner | None = None) -> Session:
        try:
            key = rules.key_of(metadata, self.thread_settings)
        except InvalidContext as error:
            body = {"error": "invalid_context", "key": error.key, "detail": str(error)}
            raise Reject(422, body) from error
        return Session(owner or Owner.of(metadata), agent, key)

    def _resolve(self, tx: Transaction, session: Session, *, any_context: bool) -> None:
        """Refuse to create what could be resumed, and say what could."""
        wanted = {**session.labels, "status": PolicyStatus.OPEN}
        if any_context:
            del wanted["context_key"]
        moment = _now()
        eligible = [
            row
            for row in tx.find_threads(wanted, limit=PAGE)
            if Owner.of(row["metadata"]) == session.owner
            and rules.is_recent(row["updated_at"], moment, self.thread_settings)
        ]
        found = rules.resolve(eligible, self.thread_settings)
        if found is None:
            return
        action: Action = "thread_resumed" if found["action"] == "resume" else "thread_choice"
        decided(action, session.agent, found.get("thread_id"), candidates=len(eligible))
        raise Reject(409, {"error": THREAD_RESOLVED, **found})

    def _succeed(self, tx: Transaction, session: Session, thread_id: UUID, replaced: UUID) -> None:
        """Close the thread whose place a new one takes, unless its user can go on with it."""
        row = tx.get_thread(replaced)
        before = None if row is None else _session_of(row["metadata"])
        if row is None or before is None or not session.may_follow(before):
            raise Reject(404, {"detail": f"Thread with ID {replaced} not found"})
        what = rules.succession(row["metadata"]["status"], same_context=before.key == session.key)
        if what == "resume":
            decided("thread_resumed", session.agent, replaced)
            raise Reject(
                409, {"error": THREAD_RESOLVED, "action": what, "thread_id": str(replaced)}
            )
        if what == "replace":
            if before.owner != session.owner:
                raise Reject(403, {"detail": "Only its own user can leave a thread for another"})
            self._close(tx, row, thread_id, rules.CONTEXT_CHANGED)

    def _make_room(self, tx: Transaction, session: Session, thread_id: UUID) -> None:
        """Close the session's open threads but for the last ones that may stay beside one more."""
        tx.lock(session.name)
        moment = _now()
        rivals = [
            row for row in _of(tx, session, PolicyStatus.OPEN) if row["thread_id"] != thread_id
        ]
        for row in rules.surplus(rivals, self.thread_settings):
            self._close(tx, row, thread_id, rules.SUPERSEDED)
        if not self.thread_settings.auto_archive_stale_locked:
            return
        for row in tx.find_threads(
            {**session.labels, "status": PolicyStatus.LOCKED}, limit=PAGE, oldest_first=True
        ):
            stale = rules.is_stale(row["updated_at"], moment, self.thread_settings)
            if stale and Owner.of(row["metadata"]) == session.owner:
                self._change(tx, row, rules.archiving(moment))

    def _close(self, tx: Transaction, row: Row, successor: UUID, reason: str) -> None:
        busy = tx.in_flight(row["thread_id"])
        changes = rules.closing(
            row["updated_at"], _now(), self.thread_settings, in_flight=busy, reason=reason
        )
        self._change(tx, row, changes, by=str(successor), reason=reason)

    def _change(self, tx: Transaction, row: Row, changes: Changes, **particulars: Any) -> None:
        tx.patch_thread(row["thread_id"], changes)
        action = CLOSED[changes["status"]]
        agent = row["metadata"]["agent"]
        tx.after_commit(partial(decided, action, agent, row["thread_id"], **particulars))

    def _gate(self, thread: Row, what: str) -> None:
        """Refuse to write to a thread that is not open."""
        metadata = thread["metadata"]
        if metadata["status"] != PolicyStatus.OPEN:
            thread_id, status = thread["thread_id"], metadata["status"]
            decided("run_gated", str(metadata.get("agent")), thread_id, status=status, what=what)
            raise Reject(409, rules.refusal(thread_id, status))


def _session_of(metadata: Row) -> Session | None:
    """The session of a thread that is under the policy."""
    if not rules.is_governed(metadata):
        return None
    return Session(Owner.of(metadata), metadata["agent"], metadata["context_key"])


def _of(tx: Transaction, session: Session, status: str) -> Iterator[Row]:
    """The session's threads of a status, last used first."""
    found = tx.find_threads({**session.labels, "status": status}, limit=10 * PAGE)
    return (row for row in found if Owner.of(row["metadata"]) == session.owner)


def _owner(caller: Caller) -> Owner:
    """Who asks, if authentication knows."""
    if not caller.identity:
        return Owner()
    return Owner(_field(caller.user, TENANT_ID), _field(caller.user, USER_ID) or caller.identity)


def _stamp_owner(caller: Caller, metadata: Row) -> None:
    """A thread is its creator's, whatever the client or the thread it is copied from says."""
    owner = _owner(caller)
    if owner != Owner() and metadata.keys() & set(OWNER):
        metadata.pop(TENANT_ID, None)
        metadata |= owner.labels


def _field(user: Any, name: str) -> Any:
    return user.get(name) if isinstance(user, dict) else getattr(user, name, None)


def _reserved(key: str) -> Changes:
    return {"error": "reserved_key", "key": key, "detail": f"Only the server writes `{key}`"}


def _now() -> datetime:
    return datetime.now(UTC)


policy = ThreadPolicy()
