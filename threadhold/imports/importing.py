"""Importing: read a source from its beginning to its end, and write what is not there yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import islice
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from langgraph_runtime_sql.ops.assistants.rows import system_id
from langgraph_runtime_sql.progress import Progress
from langgraph_runtime_sql.progress import Report as Show
from langgraph_runtime_sql.statuses import ThreadStatus
from langgraph_runtime_sql.tenancy.scope import label
from threadhold.imports.errors import CannotImport
from threadhold.imports.exact import as_json
from threadhold.imports.report import Report
from threadhold.imports.sources import Item, Row, Source
from threadhold.imports.target import Target, thread_id_of

Place = tuple[str, str]
"""A checkpoint: its namespace and id."""

PAGE = 100
_RESTING = frozenset(ThreadStatus) - {ThreadStatus.BUSY}


@dataclass(frozen=True)
class Plan:
    """What is asked of an import.

    Attributes:
        graph_id: The graph of threads whose source does not name it.
        metadata: Entries that every imported object gets.
        tenant: The tenant that gets everything; None: whom each object's metadata name.
        tenant_key: The project's `sql.tenant_key`; None: there are no tenants.
        enable_crons: Whether crons that are enabled in the source fire here, too.
        is_dry_run: Whether nothing is written.
    """

    graph_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tenant: str | None = None
    tenant_key: str | None = None
    enable_crons: bool = False
    is_dry_run: bool = False

    @property
    def added(self) -> dict[str, Any]:
        """The metadata that every object gets."""
        tenant = {self.tenant_key: self.tenant} if self.tenant_key and self.tenant else {}
        return {**self.metadata, **tenant}

    def names_tenant(self, metadata: Mapping[str, Any] | None) -> bool:
        """Return whether an object with these metadata has a tenant, if there are tenants."""
        return self.tenant_key is None or bool(
            {**(metadata or {}), **self.added}.get(self.tenant_key)
        )


def run(source: Source, target: Target, plan: Plan, show: Show) -> Report:
    """Import a source. After an interruption, the same call goes on.

    Args:
        source: What is read.
        target: What is written; in a dry run only compared.
        plan: What is asked for.
        show: Receives the progress.

    Returns:
        What was found and imported.

    Raises:
        CannotImport: the source cannot be read, or the plan lacks what the source does not say.
    """
    if plan.tenant and plan.tenant_key is None:
        raise CannotImport(
            "The project has no `sql.tenant_key`, so nothing can be given to a tenant"
        )
    if not source.has_threads and plan.graph_id is None:
        raise CannotImport(
            "The source does not say which graph its threads are of: name it with --graph"
        )
    importer = _Importer(source, target, plan, show)
    importer.assistants()
    importer.threads()
    importer.items()
    importer.crons()
    importer.report.left_out.update(source.left_out)
    return importer.report


class _Importer:
    """One import. Each method imports a kind, and counts it."""

    def __init__(self, source: Source, target: Target, plan: Plan, show: Show) -> None:
        self._source = source
        self._target = target
        self._plan = plan
        self._show = show
        self.report = Report()

    def _progress(self, kind: str) -> None:
        self._show(Progress(f"Reading {kind}", self.report.found[kind], 0, kind))

    def _is_nobodys(self, kind: str, metadata: Mapping[str, Any] | None) -> bool:
        if self._plan.names_tenant(metadata):
            return False
        reason = f"{kind} whose metadata name no `{self._plan.tenant_key}`: give --tenant"
        self.report.left_out[reason] += 1
        return True

    def assistants(self) -> None:
        """Import assistants, except those that a server makes of its graphs."""
        for each, versions in self._source.assistants():
            metadata = each.get("metadata") or {}
            if metadata.get("created_by") == "system" or self._is_nobodys("assistants", metadata):
                continue
            if self._plan.is_dry_run:
                is_new = not self._target.has_assistant(each)
            else:
                is_new = self._target.add_assistant(each, versions, self._plan.added)
            self.report.add("assistants", imported=is_new)
            self._progress("assistants")

    def threads(self) -> None:
        """Import threads, one after the other."""
        for each in self._source.threads():
            if not self._is_nobodys("threads", each.get("metadata")):
                self._thread(each)
            self._progress("threads")

    def _thread(self, given: Row) -> None:
        order = _order(self._source, str(given["thread_id"]))
        thread_id = thread_id_of(given["thread_id"])
        there = self._target.places(thread_id)
        is_known = self._target.has_thread(thread_id)
        # The last one is stored last, so that a thread which has it is complete. It may have grown
        # since, and lost old checkpoints.
        if is_known and (not order or next(reversed(order)) in there):
            self.report.add("threads", imported=0)
            self.report.add("checkpoints", found=len(order), imported=0)
            return
        missing = [place for place in order if place not in there]
        if not self._plan.is_dry_run:
            self._write(given, order, missing)
        self.report.add("threads", imported=not is_known)
        self.report.add("checkpoints", found=len(order), imported=len(missing))

    def _write(self, given: Row, order: Mapping[Place, str | None], missing: list[Place]) -> None:
        name, thread_id = str(given["thread_id"]), thread_id_of(given["thread_id"])
        newest = max((place for place in order if not place[0]), default=None)
        found = newest and self._read(name, newest)
        self._target.add_thread(thread_id, self._metadata(given), _dated(given, found))
        paths = self._source.paths(name)
        for place in missing:
            at = {key[2]: path for key, path in paths.items() if key[:2] == place}
            stored = found if found and place == newest else self._read(name, place)
            self._target.add_checkpoint(thread_id, stored, order[place], at)
        if lost := order.keys() - self._target.places(thread_id):
            raise CannotImport(f"{len(lost):,} checkpoints of the thread {name} were not stored")
        interrupts = given.get("interrupts") or (_interrupts(found) if found else {})
        status = given.get("status") or _status(found)
        if status not in _RESTING:
            # Its run is not imported.
            status = ThreadStatus.INTERRUPTED if interrupts else ThreadStatus.IDLE
        self._target.finish_thread(thread_id, status, interrupts, given.get("error"))

    def _read(self, thread_id: str, place: Place) -> CheckpointTuple:
        found = self._source.states.get_tuple(_config(thread_id, place))
        if found is None:
            raise CannotImport(
                f"The checkpoint {place[1]} of the thread {thread_id} is gone: try again"
            )
        return found

    def _metadata(self, given: Row) -> dict[str, Any]:
        named = dict(given.get("metadata") or {})
        if self._plan.graph_id is not None and "graph_id" not in named:
            graph_id = self._plan.graph_id
            named |= {"graph_id": graph_id, "assistant_id": str(system_id(graph_id))}
        if str(given["thread_id"]) != str(thread_id_of(given["thread_id"])):
            named["imported_from"] = str(given["thread_id"])
        return {**named, **self._plan.added}

    def items(self) -> None:
        """Import items of the store, a page at a time."""
        items = self._source.items()
        while page := [self._placed(each) for each in islice(items, PAGE)]:
            missing = self._target.missing_items(page)
            if missing and not self._plan.is_dry_run:
                self._target.add_items(missing)
            self.report.add("store items", found=len(page), imported=len(missing))
            self._progress("store items")

    def _placed(self, item: Item) -> Item:
        """Return an item below its tenant's label, where the tenant's requests look."""
        if not self._plan.tenant:
            return item
        return item._replace(namespace=(label(self._plan.tenant), *item.namespace))

    def crons(self) -> None:
        """Import crons. They rest, unless asked otherwise: the source still fires them."""
        for each in self._source.crons():
            if self._is_nobodys("crons", each.get("metadata")):
                continue
            enabled = self._plan.enable_crons and bool(each.get("enabled", True))
            if self._plan.is_dry_run:
                is_new = not self._target.has_cron(each)
            else:
                is_new = self._target.add_cron(each, self._plan.added, enabled=enabled)
            self.report.add("crons", imported=is_new)


def _config(thread_id: str, place: Place | None = None) -> RunnableConfig:
    at = {} if place is None else {"checkpoint_ns": place[0], "checkpoint_id": place[1]}
    return {"configurable": {"thread_id": thread_id, **at}}


def _place(config: RunnableConfig) -> Place:
    configurable = config["configurable"]
    return configurable.get("checkpoint_ns") or "", str(configurable["checkpoint_id"])


def _order(source: Source, thread_id: str) -> dict[Place, str | None]:
    """Return the checkpoints of a thread, parents first, each with its parent if that is there."""
    parents: dict[Place, Place | None] = {}
    for each in source.states.list(_config(thread_id)):
        above = each.parent_config
        parents[_place(each.config)] = _place(above) if above else None
    graph = {
        place: [parent] if (parent := parents[place]) in parents else []
        for place in sorted(parents)
    }
    ordered = TopologicalSorter(graph).static_order()
    return {place: graph[place][0][1] if graph[place] else None for place in ordered}


def _dated(given: Row, newest: CheckpointTuple | None) -> Row:
    """Return what is known of a thread, with the date of its newest checkpoint if it has no other."""
    if newest is None or given.get("created_at"):
        return given
    date = newest.checkpoint["ts"]
    return {**given, "created_at": date, "updated_at": date}


def _interrupts(newest: CheckpointTuple) -> dict[str, Any]:
    """Return what a thread waits for, as its row shows it: by task."""
    found: dict[str, Any] = {}
    for task_id, channel, value in newest.pending_writes or ():
        if channel == INTERRUPT:
            found.setdefault(task_id, []).extend(as_json(value))
    return found


def _status(newest: CheckpointTuple | None) -> ThreadStatus:
    channels = {channel for _, channel, _ in (newest.pending_writes or ())} if newest else set()
    if INTERRUPT in channels:
        return ThreadStatus.INTERRUPTED
    return ThreadStatus.ERROR if ERROR in channels else ThreadStatus.IDLE
