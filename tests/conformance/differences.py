"""Where our answer differs from stock on purpose, and why.

Each entry must occur: a difference that is gone fails the tests, so the list
cannot outlive its reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from .normalise import path_matches


@dataclass(frozen=True)
class Difference:
    """What the answer holds at ``path`` in ``scenario`` differs (``*`` matches anything)."""

    scenario: str
    path: str
    reason: str

    def concerns(self, scenario: str) -> bool:
        """Whether this entry is about the scenario."""
        return fnmatchcase(scenario, self.scenario)

    def covers(self, scenario: str, path: str) -> bool:
        """Whether this entry allows a difference at ``path`` of the scenario."""
        return self.concerns(scenario) and path_matches(path, self.path)


WORDS = "The same refusal in our words, which say what to do about it."
WHOLE_ROW = "A thread's row has all its keys from the start, not only after the first run."
LEAK = (
    "Stock hands out the dictionary its worker is working on, so what the worker adds for "
    "itself appears in the stored run. Ours stores what was asked."
)
ONE_REQUEST = (
    "Who asked, and by which request, is not copied into every checkpoint: it belongs to the "
    "request, and readers of the history need not be the one who asked."
)
NEVER_500 = "Stock answers 500."
JSON_ERRORS = "Every refusal has a JSON body; stock sends some as bare text, or with no body."
JSON_RPC = "What is no JSON is refused before it reaches a route, as a JSON-RPC parse error (400)."

DIFFERENCES: list[Difference] = [
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
    Difference("store.refused", "*.body", JSON_ERRORS),
    Difference("store.refused", "*.headers.content-type", JSON_ERRORS),
    Difference("a2a.refused", "$[9].*", JSON_ERRORS),
    Difference("mcp.malformed", "$[0].*", JSON_RPC),
    Difference("mcp.malformed", "$[6].*", JSON_ERRORS),
    Difference("mcp.malformed", "$[7].*", JSON_ERRORS),
    # Stock fails
    Difference("crons.create_incomplete", "*", NEVER_500),
    Difference("state.history_before_an_object", "$", f"{NEVER_500} The SDK sends objects."),
    Difference("threads.search_values_of_threads_without", "*", NEVER_500),
    Difference("threads.superstep_command_without_goto", "$", NEVER_500),
    Difference("store.search_without_a_prefix", "$", NEVER_500),
    # Rows and metadata
    Difference("threads.*", "*.error", WHOLE_ROW),
    Difference("threads.*", "*.interrupts", WHOLE_ROW),
    Difference("threads.copied_row", "*.values", "A copy has the values of its original."),
    Difference("*", "*kwargs.config.metadata.langgraph_*", LEAK),
    Difference("*", "*kwargs.config.metadata.run_attempt", LEAK),
    Difference("*", "*kwargs.config.configurable.__pregel_node_finished", LEAK),
    Difference("*", "*.langgraph_auth_user_id", ONE_REQUEST),
    Difference("*", "*.langgraph_request_id", ONE_REQUEST),
    # Assistants
    Difference(
        "assistants.set_latest_restores_graph_and_context",
        "*",
        "Going back restores the graph and the context too; stock keeps the newer ones, "
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
        "A thread cannot be made to live for less than no time.",
    ),
    Difference("threads.ttl_is_told", "$.body.ttl", "Stock has no time to live for threads."),
    Difference(
        "threads.search_odd_metadata",
        "$[1][2].*",
        "JSON's true is not the number 1; for stock, it is.",
    ),
    Difference(
        "threads.search_sorted",
        "$[7].*",
        "The direction is heeded also where the order is the usual one.",
    ),
    # Runs in flight
    Difference(
        "inflight.cancel_by_status_running",
        "$[2][*]",
        "Cancelling by status stops the runs; stock only calls them interrupted and lets them end.",
    ),
    Difference(
        "inflight.rollback_an_unwatched_run",
        "$[1]",
        "Stock leaves the thread busy for good when nobody streams the run that is rolled back.",
    ),
    Difference(
        "inflight.rolled_back_pending_leaves_the_thread_idle",
        "$",
        "Stock leaves the thread busy for good.",
    ),
    # Crons
    Difference(
        "crons.fire_beside_one_with_an_end",
        "$",
        "One cron with an end stops stock's scheduler for all.",
    ),
    # Store
    Difference(
        "store.put_get_delete", "$[3][0]", "An item that is written again keeps its created_at."
    ),
    # Health
    Difference("meta.ok", "*.services.database", "There is a database, and its health is told."),
    Difference(
        "owners.strangers", "*.services.database", "There is a database, and its health is told."
    ),
    # Owners
    Difference(
        "owners.a_way_around_for_studio",
        "$",
        "Stock, as a development server, lets Studio in without asking the project's handler.",
    ),
]
