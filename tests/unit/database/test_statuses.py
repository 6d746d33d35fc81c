"""The statuses and their diagrams agree with each other, with the API and with SQL."""

from collections.abc import Mapping
from typing import Any, get_args

import pytest

from langgraph_runtime_sql import statuses
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL
from langgraph_runtime_sql.statuses import RunStatus, ThreadStatus
from my_agent.threads import policy_status
from my_agent.threads.policy_status import PolicyStatus


@pytest.mark.parametrize(
    ("status", "transitions"),
    [
        (RunStatus, statuses.RUN_TRANSITIONS),
        (ThreadStatus, statuses.THREAD_TRANSITIONS),
        (PolicyStatus, policy_status.TRANSITIONS),
    ],
    ids=["run", "thread", "policy"],
)
def test_a_diagram_has_every_status_and_none_that_leads_to_itself(
    status: Any, transitions: Mapping[Any, Any]
) -> None:
    assert set(transitions) == set(status)
    assert [each for each in status if each in transitions[each]] == []


def test_ended_runs_and_archived_threads_stay_so() -> None:
    final = {each for each, following in statuses.RUN_TRANSITIONS.items() if not following}
    assert final == statuses.ENDED == set(RunStatus) - statuses.IN_FLIGHT
    assert {each for each, after in policy_status.TRANSITIONS.items() if not after} == {
        PolicyStatus.ARCHIVED
    }


def test_the_statuses_are_those_of_the_api() -> None:
    from langgraph_api import schema

    assert set(get_args(schema.RunStatus)) == set(RunStatus)
    assert set(get_args(schema.ThreadStatus)) == set(ThreadStatus)


def test_statements_name_a_status_by_its_value() -> None:
    assert (str(PENDING_LITERAL), str(RUNNING_LITERAL)) == ("'pending'", "'running'")
