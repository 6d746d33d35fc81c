"""The intended differences between our answers and stock's, with their reasons.

Each entry must occur: a difference that no longer exists fails the tests, so the list
stays current.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import metadata

from packaging.specifiers import SpecifierSet

from .normalise import path_matches


@dataclass(frozen=True)
class Difference:
    """The answers differ at ``path`` in ``scenario``; ``*`` matches anything.

    ``releases`` are those of langgraph-api that differ, as a version specifier; empty means all.
    """

    scenario: str
    path: str
    reason: str
    releases: str = ""

    def concerns(self, scenario: str) -> bool:
        """Return whether this entry is about the scenario."""
        return fnmatchcase(scenario, self.scenario)

    def covers(self, scenario: str, path: str) -> bool:
        """Return whether this entry allows a difference at ``path`` of the scenario."""
        return self.concerns(scenario) and path_matches(path, self.path)


WORDS = "The refusal is the same, but our message says what to do about it."
WHOLE_ROW = "Our thread row has all its keys from the start, not only after the first run."
LEAK = (
    "Stock returns the dictionary that its worker changes, so values that the worker adds for "
    "itself appear in the stored run. Ours stores the requested values."
)
ONE_REQUEST = (
    "Our checkpoints do not contain the user and the request id: they belong to the request, "
    "and another user may read the history."
)
A_PLACE = (
    "The metadata of our checkpoints has no place of a task or of a run's beginning, as with "
    "langgraph's own savers: a fork would bear the id of the checkpoint that it began from."
)
NEVER_500 = "Stock answers 500."
JSON_ERRORS = "Our refusals all have a JSON body; stock sends some as plain text or without a body."
JSON_RPC = "Ours refuses invalid JSON before it reaches a route, as a JSON-RPC parse error (400)."
OWN_TOOLS = (
    "Each assistant has a tool name of its own, so a second assistant with the same name does not "
    "block the tool of the first."
)

CHECKPOINTS = (
    "Stock sends no `checkpoints` event for a graph in Python. Ours sends the ids, in front of "
    "the values, where React's hook expects them."
)

CUSTOM = "Stock has the channel, but never a `custom` event of a graph in Python in it."

ARRAYS = (
    "An array matches if it has all the wanted entries, as in Postgres and in stock since 0.17. Before, "
    "stock compared arrays by equality."
)
BEFORE_17 = "<0.17.0rc0"
BEFORE_18, SINCE_18 = "<0.18.0.dev0", ">=0.18.0.dev0"

ALL: list[Difference] = [
    Difference("events.checkpoints", "$[1]*", CHECKPOINTS),
    Difference("events.custom", "$[1]*", CUSTOM),
    Difference(
        "events.fork_from_an_input",
        "$*",
        "Stock gives the thread the status and values of the checkpoint where the fork began.",
        BEFORE_17,
    ),
    Difference(
        "webhooks.of_a_stateless_run",
        "$[1]",
        "Stock sends no values, and the thread where they could be read is gone.",
    ),
    # Refusals
    Difference("assistants.create_with_config_and_context", "$.body.detail", WORDS),
    Difference("assistants.patch_refused", "*.body.detail", WORDS),
    Difference("crons.create_refused", "*.body.detail", WORDS),
    Difference("crons.update_refused", "*.body.detail", WORDS),
    Difference("inflight.cancel_*", "*.body.detail", WORDS),
    Difference("owners.*_of_others", "*.body.detail", WORDS),
    Difference("state.refused", "*.body.detail", WORDS),
    Difference("store.search_with_unknown_operator", "$.body.detail", WORDS),
    Difference("state.update_refused", "*.body.detail", WORDS),
    Difference("threads.copy_refused", "*.body.detail", WORDS),
    Difference("threads.delete", "*.body.detail", WORDS),
    Difference("threads.search_by_ids", "*.body.detail", WORDS),
    Difference("threads.supersteps_refused", "*.body.detail", WORDS),
    Difference("state.history_refused", "$[0].body.detail", WORDS),
    Difference("state.thread_stream_refused", "$[1].body.detail", WORDS),
    Difference("meta.unusual_requests", "$[3].body.detail", WORDS),
    Difference("store.refused", "*.body", JSON_ERRORS),
    Difference("store.refused", "*.headers.content-type", JSON_ERRORS),
    Difference("a2a.refused", "$[9].*", JSON_ERRORS),
    Difference("mcp.malformed", "$[0].*", JSON_RPC),
    Difference("mcp.malformed", "$[6].*", JSON_ERRORS),
    Difference("mcp.malformed", "$[7].*", JSON_ERRORS),
    Difference("mcp.tools_call_twice_the_same_name", "$.*", OWN_TOOLS),
    # Stock fails
    Difference("crons.create_incomplete", "*", NEVER_500),
    Difference("state.history_before_an_object", "$", f"{NEVER_500} The SDK sends objects."),
    Difference("threads.search_values_of_threads_without_values", "*", NEVER_500, BEFORE_17),
    Difference("threads.superstep_command_without_goto", "$", NEVER_500),
    Difference("store.search_without_a_prefix", "$", NEVER_500),
    Difference(
        "owners.event_streams_of_others",
        "$[1].body",
        "Stock ends a stream that fails without a word. Since 0.17 it refuses this one before it begins.",
        BEFORE_17,
    ),
    # Rows and metadata
    Difference("threads.*", "*.error", WHOLE_ROW),
    Difference("threads.*", "*.interrupts", WHOLE_ROW),
    Difference(
        "threads.copied_row", "*.values", "A copy has the values of its original.", BEFORE_17
    ),
    Difference("*", "*kwargs.config.metadata.langgraph_*", LEAK),
    Difference("*", "*kwargs.config.metadata.run_attempt", LEAK),
    Difference("*", "*kwargs.config.configurable.__pregel_node_finished", LEAK),
    Difference("*", "*.langgraph_auth_user_id", ONE_REQUEST),
    Difference("*", "*.langgraph_request_id", ONE_REQUEST),
    *(
        Difference("*", f"*metadata.{key}", A_PLACE)
        for key in (
            *("checkpoint_id", "checkpoint_map", "checkpoint_ns", "langgraph_checkpoint_ns"),
            *("langgraph_node", "langgraph_path", "langgraph_step", "langgraph_triggers"),
        )
    ),
    # Assistants
    Difference(
        "assistants.set_latest_restores_graph_and_context",
        "*",
        "Ours also restores the graph and the context; stock keeps the newer ones, "
        "which contradict the older config.",
    ),
    # Threads
    Difference(
        "threads.prune_keeps_latest",
        "*",
        "Stock cannot prune all but the latest checkpoint.",
    ),
    Difference(
        "threads.create_refused",
        "$[6].*",
        "Ours refuses a negative time to live for a thread.",
    ),
    Difference("threads.ttl_is_returned", "$.body.ttl", "Stock has no time to live for threads."),
    Difference(
        "threads.search_odd_metadata",
        "$[1][2].*",
        "In JSON, true is not the number 1; stock treats them as equal.",
        BEFORE_17,
    ),
    Difference(
        "threads.search_sorted",
        "$[7].*",
        "Ours applies the sort direction to the default order, too.",
    ),
    *(
        Difference(scenario, path, ARRAYS, BEFORE_17)
        for scenario, path in (
            ("assistants.search_nested_metadata", "$[2].*"),
            ("threads.search_by_values", "$[2].*"),
            ("threads.search_odd_metadata", "$[1][4].*"),
        )
    ),
    # Runs in flight
    Difference(
        "inflight.cancel_by_status_running",
        "$[2][*]",
        "Ours stops the runs; stock only marks them as interrupted and lets them finish.",
        BEFORE_17,
    ),
    Difference(
        "inflight.rollback_an_unwatched_run",
        "$[1]",
        "Stock leaves the thread busy for ever when no client streams the rolled-back run.",
        BEFORE_17,
    ),
    Difference(
        "inflight.rolled_back_pending_leaves_the_thread_idle",
        "$",
        "Stock leaves the thread busy for ever.",
        BEFORE_17,
    ),
    # Crons
    Difference(
        "crons.fire_beside_a_cron_with_an_end",
        "$",
        "In stock, one cron with an end stops the scheduler for all crons.",
        BEFORE_17,
    ),
    # Store
    Difference(
        "store.put_get_delete", "$[3][0]", "Ours keeps the created_at of an overwritten item."
    ),
    # Health
    Difference("meta.ok", "*.services.database", "Ours reports the health of its database."),
    Difference(
        "owners.requests_without_user",
        "*.services.database",
        "Ours reports the health of its database.",
    ),
    # Owners
    Difference(
        "owners.studio_headers_give_no_access",
        "$",
        "Stock, as a development server, admits Studio without asking the project's handler.",
    ),
]

_INSTALLED = metadata.version("langgraph-api")
DIFFERENCES = [
    each for each in ALL if SpecifierSet(each.releases, prereleases=True).contains(_INSTALLED)
]
"""Those of the installed version."""
