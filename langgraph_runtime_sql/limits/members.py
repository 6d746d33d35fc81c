"""Members: find the quota of a tenant, a user or an assistant, and the priority of a run."""

from functools import cache
from uuid import UUID, uuid5

from langgraph_runtime_sql.limit_settings import Limits, Quota

# Added to the priority of a run that a cron starts: no client waits for its answer.
CRON_PRIORITY = -1


def of_tenant(limits: Limits, tenant: str | None) -> Quota:
    """Return the quota of a tenant. None, or an empty text, is the platform's own rows."""
    return limits.of("tenant", tenant or None)


def of_user(limits: Limits, user: str | None) -> Quota:
    """Return the quota of a user."""
    return limits.of("user", user)


def of_assistant(limits: Limits, assistant: UUID) -> Quota:
    """Return the quota of an assistant. A graph's name means the graph's own assistant."""
    named = limits.named.get("assistant", {})
    name = str(assistant)
    return limits.of("assistant", name, *(each for each in named if _system_id(each) == name))


def of_thread(limits: Limits) -> Quota:
    """Return the quota of each thread."""
    return limits.of("thread")


def of_process(limits: Limits) -> Quota:
    """Return the quota of each process."""
    return limits.of("process")


def priority(
    limits: Limits, tenant: str | None, user: str | None, assistant: UUID, *, from_cron: bool
) -> int:
    """Return the priority of a run among its tenant's runs."""
    of_members = (of_user(limits, user).priority or 0) + (
        of_assistant(limits, assistant).priority or 0
    )
    if not from_cron:
        return of_members
    of_crons = of_tenant(limits, tenant).cron_priority
    return of_members + (CRON_PRIORITY if of_crons is None else of_crons)


@cache
def _system_id(graph_id: str) -> str:
    from langgraph_api.graph import NAMESPACE_GRAPH

    return str(uuid5(NAMESPACE_GRAPH, graph_id))
