"""Thread policy: each context of a user has one open thread, and its earlier threads are read-only.

`langgraph.json` names the object `policy` as its hooks. The hooks run inside the transaction of
every write. Therefore opening a thread and locking its predecessors is atomic on every route and
with concurrent clients. The rules are in `policy.py`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from hooks import policy as rules
from hooks.decisions import Action, record_decision
from hooks.policy import Changes, InvalidContext, Owner, Session
from hooks.thread_settings import ThreadSettings
from my_agent.keys import CONTEXT, OWNER, RESERVED, TENANT_ID, USER_ID, WAITING_QUESTIONS
from my_agent.threads.policy_status import THREAD_RESOLVED, PolicyStatus
from threadhold.hooks import Caller, Reject, ThreadStatus, Transaction

Row = dict[str, Any]

# Maximum number of threads that a query returns.
PAGE = 100
CLOSED: dict[str, Action] = {
    PolicyStatus.LOCKED: "thread_locked",
    PolicyStatus.PENDING_LOCK: "thread_pending_lock",
    PolicyStatus.ARCHIVED: "thread_archived",
}


class ThreadPolicy:
    """The hooks of the thread policy.

    A thread comes under the policy when it is created for one of the policy's agents, or when
    such an agent first runs on it. Temporary threads, which are deleted with their run, never do.

    The middleware of the host adds these notes to a request:

    - `resolve=True`: create a thread only if no thread can be resumed. Otherwise refuse the
      request with `{"error": "thread_resolved", "action": ...}`, which names the alternative.
    - `replaces=<thread id>`: close that thread and open a new one in its place. If that thread is
      open and has the same context, refuse the request in the same way.
    - `include_archived=True`: searches also find archived threads.

    Args:
        settings: The settings. The default reads them from the environment.
    """

    def __init__(self, settings: ThreadSettings | None = None) -> None:
        self.thread_settings = settings or ThreadSettings()

    def before_thread_create(self, tx: Transaction, thread: Row) -> None:
        metadata = thread["metadata"]
        _write_owner(tx.caller, metadata)
        if "context_key" in metadata:
            # The key comes from a copied thread. The copy is a new thread of the same context.
            for key in RESERVED:
                metadata.pop(key, None)
        # A busy new thread is created for a run. `before_run_create` then knows the run's agent
        # and whether the thread is temporary.
        if thread["status"] != ThreadStatus.BUSY:
            agent = rules.agent_of(metadata)
            if agent in self.thread_settings.thread_policy_agents and agent is not None:
                metadata |= self._open(tx, thread["thread_id"], metadata, agent)

    def before_thread_update(self, tx: Transaction, thread: Row, metadata: Row) -> None:
        old = thread["metadata"]
        merged = {**old, **metadata}
        agent = rules.agent_of(merged)
        if not rules.is_governed(old):
            if agent in self.thread_settings.thread_policy_agents and agent is not None:
                metadata |= self._open(tx, thread["thread_id"], merged, agent)
            return
        for key in ("agent", *RESERVED):
            if merged.get(key) != old.get(key):
                raise Reject(422, _reserved(key))
        # A closed session stays one of its graph, too.
        if all(merged.get(key) == old.get(key) for key in ("graph_id", *CONTEXT)):
            return
        self._gate(thread, "update")
        session = self._session(merged, old["agent"])
        if session.key != old["context_key"]:
            self._close_surplus(tx, session, thread["thread_id"])
            metadata["context_key"] = session.key

    def before_run_create(self, tx: Transaction, thread: Row, run: Row) -> None:
        metadata = thread["metadata"]
        if rules.is_governed(metadata):
            self._gate(thread, "run")
            _bind_answer(thread, run)
            return
        agent = run["kwargs"]["config"]["configurable"]["graph_id"]
        governs = agent in self.thread_settings.thread_policy_agents
        if governs and not run["kwargs"].get("temporary"):
            _bind_answer(thread, run)
            tx.patch_thread(
                thread["thread_id"], self._open(tx, thread["thread_id"], metadata, agent)
            )

    def before_state_update(self, tx: Transaction, thread: Row) -> None:
        if rules.is_governed(thread["metadata"]):
            self._gate(thread, "state")

    def before_thread_prune(self, tx: Transaction, thread: Row) -> None:
        # The history of a closed thread is kept whole.
        if rules.is_governed(thread["metadata"]):
            self._gate(thread, "prune")

    def before_sweep(self, tx: Transaction) -> None:
        """Archive stale locked threads, also of contexts that nobody opens again."""
        if not self.thread_settings.auto_archive_stale_locked:
            return
        now = _now()
        for agent in self.thread_settings.thread_policy_agents:
            locked = {"agent": agent, "status": PolicyStatus.LOCKED}
            for row in tx.find_threads(locked, limit=PAGE, oldest_first=True):
                if not rules.is_stale(row["updated_at"], now, self.thread_settings):
                    # The others are younger.
                    break
                if rules.is_governed(row["metadata"]):
                    self._change(tx, row, rules.archiving(now))

    def after_run_end(self, tx: Transaction, thread: Row | None, run: Row, status: str) -> None:
        if thread is None or not rules.is_governed(thread["metadata"]):
            return
        is_pending = thread["metadata"]["status"] == PolicyStatus.PENDING_LOCK
        if is_pending and not tx.in_flight(thread["thread_id"]):
            self._change(tx, thread, rules.locking(_now()))

    def before_thread_search(self, tx: Transaction, search: Row) -> None:
        is_explicit = "status" in search["metadata"] or tx.caller.note.get("include_archived")
        if not is_explicit and self.thread_settings.thread_policy_agents:
            search["without"]["status"] = PolicyStatus.ARCHIVED

    def _open(self, tx: Transaction, thread_id: UUID, metadata: Row, agent: str) -> Changes:
        """Close the threads that a new thread replaces, and return the new thread's metadata.

        Raises:
            Reject: the context is invalid, or a thread must be resumed instead.
        """
        owner = Owner.of(metadata)
        if owner == Owner():
            owner = _owner(tx.caller)
        session = self._session(metadata, agent, owner)
        tx.lock(session.name)
        if (replaced := tx.caller.note.get("replaces")) is not None:
            self._replace(tx, session, thread_id, replaced)
        if tx.caller.note.get("resolve"):
            self._resolve(tx, session, any_context=not rules.names_context(metadata))
        self._close_surplus(tx, session, thread_id)
        tx.audit("thread_created", thread_id, agent=agent, context_key=session.key)
        # The key names a website or rule of the user, which no log line does.
        tx.after_commit(partial(record_decision, "thread_created", agent, thread_id))
        return rules.opening(session)

    def _session(self, metadata: Row, agent: str, owner: Owner | None = None) -> Session:
        try:
            key = rules.key_of(metadata, self.thread_settings)
        except InvalidContext as error:
            body = {"error": "invalid_context", "key": error.key, "detail": str(error)}
            raise Reject(422, body) from error
        return Session(owner or Owner.of(metadata), agent, key)

    def _resolve(self, tx: Transaction, session: Session, *, any_context: bool) -> None:
        """Refuse to create a thread if existing threads can be resumed.

        Raises:
            Reject: (409) the body names the thread to resume, or the threads to choose from.
        """
        wanted = {**session.labels, "status": PolicyStatus.OPEN}
        if any_context:
            del wanted["context_key"]
        now = _now()
        eligible = [
            row
            for row in tx.find_threads(wanted, limit=PAGE)
            if Owner.of(row["metadata"]) == session.owner
            and rules.is_recent(row["updated_at"], now, self.thread_settings)
        ]
        found = rules.resolve(eligible, self.thread_settings)
        if found is None:
            return
        action: Action = "thread_resumed" if found["action"] == "resume" else "thread_choice"
        record_decision(action, session.agent, found.get("thread_id"), candidates=len(eligible))
        raise Reject(409, {"error": THREAD_RESOLVED, **found})

    def _replace(self, tx: Transaction, session: Session, thread_id: UUID, replaced: UUID) -> None:
        """Close the thread that a new thread replaces.

        Raises:
            Reject: (404) the thread is not under the policy or belongs to another tenant or
                agent. (409) the thread is open and has the same context, so it can be resumed.
                (403) the open thread belongs to another user.
        """
        row = tx.get_thread(replaced)
        previous = None if row is None else _session_of(row["metadata"])
        if row is None or previous is None or not session.may_follow(previous):
            raise Reject(404, {"detail": f"Thread with ID {replaced} not found"})
        action = rules.succession(
            row["metadata"]["status"], same_context=previous.key == session.key
        )
        resumed = replaced if action == "resume" else None
        if action == "follow":
            resumed = self._successor(tx, session, replaced)
        if resumed is not None:
            record_decision("thread_resumed", session.agent, resumed)
            found = {"action": "resume", "thread_id": str(resumed)}
            raise Reject(409, {"error": THREAD_RESOLVED, **found})
        if action == "replace":
            if previous.owner != session.owner:
                raise Reject(403, {"detail": "Only the owner of an open thread can replace it"})
            self._close(tx, row, thread_id, rules.CONTEXT_CHANGED)

    def _successor(self, tx: Transaction, session: Session, replaced: UUID) -> UUID | None:
        """Return the open thread of the session that was opened in place of a closed thread.

        The second of two clicks gets the thread that the first one has opened.
        """
        for row in _threads_with_status(tx, session, PolicyStatus.OPEN):
            if row["metadata"].get("resumed_from") == str(replaced):
                found: UUID = row["thread_id"]
                return found
        return None

    def _close_surplus(self, tx: Transaction, session: Session, thread_id: UUID) -> None:
        """Close the open threads that exceed the limit with the new one, and archive stale ones."""
        tx.lock(session.name)
        now = _now()
        others = [
            row
            for row in _threads_with_status(tx, session, PolicyStatus.OPEN)
            if row["thread_id"] != thread_id
        ]
        for row in rules.surplus(others, self.thread_settings):
            self._close(tx, row, thread_id, rules.SUPERSEDED)
        if not self.thread_settings.auto_archive_stale_locked:
            return
        for row in tx.find_threads(
            {**session.labels, "status": PolicyStatus.LOCKED}, limit=PAGE, oldest_first=True
        ):
            stale = rules.is_stale(row["updated_at"], now, self.thread_settings)
            if stale and Owner.of(row["metadata"]) == session.owner:
                self._change(tx, row, rules.archiving(now))

    def _close(self, tx: Transaction, row: Row, successor: UUID, reason: str) -> None:
        busy = tx.in_flight(row["thread_id"])
        changes = rules.closing(
            row["updated_at"], _now(), self.thread_settings, in_flight=busy, reason=reason
        )
        self._change(tx, row, changes, by=str(successor), reason=reason)

    def _change(self, tx: Transaction, row: Row, changes: Changes, **fields: Any) -> None:
        tx.patch_thread(row["thread_id"], changes)
        action = CLOSED[changes["status"]]
        agent = row["metadata"]["agent"]
        # A cron of a closed thread could never run again.
        if disabled := tx.disable_crons(row["thread_id"]):
            fields = {**fields, "crons_disabled": disabled}
        tx.audit(action, row["thread_id"], agent=agent, **fields)
        tx.after_commit(partial(record_decision, action, agent, row["thread_id"], **fields))

    def _gate(self, thread: Row, what: str) -> None:
        """Refuse to write to a thread that is not open.

        Args:
            thread: A thread under the policy.
            what: The kind of write, for the log.

        Raises:
            Reject: (409) the thread is not open.
        """
        metadata = thread["metadata"]
        if metadata["status"] != PolicyStatus.OPEN:
            thread_id, status = thread["thread_id"], metadata["status"]
            record_decision(
                "run_gated", str(metadata.get("agent")), thread_id, status=status, what=what
            )
            raise Reject(409, rules.refusal(thread_id, status), is_final=True)


def _bind_answer(thread: Row, run: Row) -> None:
    """Bind the answer of a run to the question that waits now, and note which questions wait."""
    kwargs, interrupts = run["kwargs"], thread.get("interrupts") or {}
    command = rules.pinned(kwargs.get("command"), interrupts)
    if command is not None:
        kwargs["command"] = command
    configurable = kwargs["config"].setdefault("configurable", {})
    configurable[WAITING_QUESTIONS] = rules.question_ids(interrupts)


def _session_of(metadata: Row) -> Session | None:
    """Return the session of a thread, or None if the thread is not under the policy."""
    if not rules.is_governed(metadata):
        return None
    return Session(Owner.of(metadata), metadata["agent"], metadata["context_key"])


def _threads_with_status(tx: Transaction, session: Session, status: str) -> Iterator[Row]:
    """Return the session's threads with a status, last used first."""
    found = tx.find_threads({**session.labels, "status": status}, limit=10 * PAGE)
    return (row for row in found if Owner.of(row["metadata"]) == session.owner)


def _owner(caller: Caller) -> Owner:
    """Return the caller as an owner. Without authentication, the owner is empty."""
    if not caller.identity:
        return Owner()
    return Owner(_field(caller.user, TENANT_ID), _field(caller.user, USER_ID) or caller.identity)


def _write_owner(caller: Caller, metadata: Row) -> None:
    """Make the caller the owner in `metadata`, which may come from a client or a copied thread."""
    owner = _owner(caller)
    if owner != Owner() and metadata.keys() & set(OWNER):
        metadata.pop(TENANT_ID, None)
        metadata |= owner.labels


def _field(user: Any, name: str) -> Any:
    return user.get(name) if isinstance(user, dict) else getattr(user, name, None)


def _reserved(key: str) -> Changes:
    return {
        "error": "reserved_key",
        "key": key,
        "detail": f"`{key}` is reserved: only the server writes it. Remove it",
    }


def _now() -> datetime:
    return datetime.now(UTC)


policy = ThreadPolicy()
