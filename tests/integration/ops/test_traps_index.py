"""Known faults of similar servers, and the tests that prove their absence here.

Renaming or removing one of these tests fails this module.
"""

import ast
from functools import cache

import pytest

from tests.support.processes import ROOT

CONTRACT = "tests/integration/ops/test_traps_contract.py"
AUTHORISATION = "tests/integration/ops/test_traps_authorisation.py"
RUNS = "tests/integration/ops/test_traps_runs.py"
STREAMS = "tests/integration/events/test_traps_streams.py"
OTHER = "tests/integration/ops/test_traps_other.py"
QUEUE = "tests/integration/queue/test_queue.py"
CRONS = "tests/integration/ops/test_crons.py"
ASSISTANTS = "tests/integration/ops/test_assistants.py"
SECURITY = "tests/integration/http/test_security_baseline.py"
BAD_INPUT = "tests/integration/http/test_bad_input.py"
STORE = "tests/integration/store/test_store_api.py"
HISTORY = "tests/integration/checkpoint/test_checkpoint_history.py"

TRAPS: dict[str, list[str]] = {
    # What the API expects
    "the edition is taken for the hosted one": [
        f"{CONTRACT}::test_runtime_edition_is_not_mistaken_for_the_hosted_one",
    ],
    "rows are read after their connection is closed, or never": [
        f"{CONTRACT}::test_operation_takes_effect_without_its_rows_being_read",
    ],
    "a new run must come first, with a UUID": [
        f"{CONTRACT}::test_new_run_is_the_first_row_and_its_id_is_a_uuid",
    ],
    "many operations share a connection, and a batch waits for all": [
        f"{CONTRACT}::test_concurrent_operations_share_a_connection",
        f"{CONTRACT}::test_refused_run_of_a_batch_leaves_no_task_waiting",
        f"{BAD_INPUT}::test_batch_with_one_invalid_run_creates_no_run",
        f"{BAD_INPUT}::test_batch_creates_its_runs_in_order",
    ],
    "operations are called without a connection": [
        f"{CONTRACT}::test_operations_work_without_a_connection",
    ],
    "bytes in rows are shown in base64": [
        f"{CONTRACT}::test_rows_hold_no_bytes",
    ],
    "a user object that cannot be exported is stored as null": [
        f"{CONTRACT}::test_user_of_a_run_is_stored_for_every_kind_of_user_object",
        f"{AUTHORISATION}::test_nodes_see_the_user_of_their_run",
    ],
    "callers change the rows they are given": [
        f"{CONTRACT}::test_changing_a_row_or_an_argument_does_not_change_the_stored_run",
        f"{CRONS}::test_claimed_cron_is_a_private_copy_with_every_field",
    ],
    "a subscription is closed twice, and made of unchecked ids": [
        f"{CONTRACT}::test_closing_a_subscription_twice_closes_no_other",
        f"{BAD_INPUT}::test_malformed_id_is_4xx",
    ],
    "a retried request meets what its first attempt has written": [
        f"{CONTRACT}::test_request_is_retried_only_if_nothing_was_committed",
    ],
    "a graph's own database errors are taken for the runtime's": [
        "tests/unit/queue/test_retry.py::test_only_our_own_errors_are_retriable_or_overload",
    ],
    "an error while publishing fails the run": [
        f"{CONTRACT}::test_publishing_succeeds_after_a_subscriber_has_left",
    ],
    # Authorization
    "handlers change metadata in place": [
        f"{AUTHORISATION}::test_metadata_written_by_a_thread_handler_is_stored_and_searched",
        f"{AUTHORISATION}::test_copied_thread_belongs_to_the_user_who_copied_it",
        f"{ASSISTANTS}::test_metadata_set_by_a_handler_is_stored_and_searched",
    ],
    "unknown filter operators match everything": [
        f"{AUTHORISATION}::test_unknown_filter_operator_is_500_for_threads",
        f"{ASSISTANTS}::test_unknown_filter_operator_is_500_for_assistants",
    ],
    "a handler changes the thread of the run it authorizes": [
        f"{AUTHORISATION}::test_thread_change_made_inside_a_handler_is_kept",
    ],
    "any client can mark an assistant as the system's": [
        f"{AUTHORISATION}::test_created_by_system_in_metadata_gives_an_assistant_no_privilege",
    ],
    "internal work is done as the last user": [
        f"{CRONS}::test_cron_without_user_does_not_inherit_the_previous_user",
        f"{CRONS}::test_scheduler_has_no_user_between_crons",
        f"{AUTHORISATION}::test_stateless_run_deletes_its_thread_without_asking_handlers",
    ],
    "calls from within the server skip authentication": [
        f"{AUTHORISATION}::test_sdk_client_inside_a_graph_acts_for_the_user_of_the_run",
    ],
    "waiting clients call the handlers repeatedly": [
        f"{AUTHORISATION}::test_handlers_are_not_called_again_while_a_client_waits",
    ],
    "a store search wraps the handler's filter": [
        f"{STORE}::test_filters_of_handler_and_caller_both_apply",
    ],
    # Runs and their queue
    "cancelling by status does not reach the runs": [
        f"{RUNS}::test_cancelling_by_status_stops_running_runs",
        f"{RUNS}::test_cancelling_several_runs_stops_pending_and_running_ones",
    ],
    "a cancelled run no longer counts while it still executes": [
        f"{RUNS}::test_running_run_stays_running_until_its_worker_ends_it",
        f"{RUNS}::test_interrupting_run_supersedes_running_and_pending_runs",
    ],
    "rolling back or deleting a run without followers leaves its thread busy": [
        f"{RUNS}::test_rolling_back_or_deleting_an_unwatched_run_frees_its_thread",
        f"{RUNS}::test_joining_and_streaming_end_when_the_run_is_deleted",
        f"{RUNS}::test_removing_a_pending_run_restores_the_interrupted_thread",
        f"{RUNS}::test_deleting_a_resume_run_restores_its_interrupt",
    ],
    "after four minutes a run can no longer be cancelled": [
        f"{RUNS}::test_silent_run_can_be_cancelled_at_any_time",
    ],
    "one blocked thread holds up all others": [
        f"{RUNS}::test_thousand_pending_runs_of_a_thread_do_not_delay_another_thread",
        f"{RUNS}::test_claim_that_finds_only_blocked_runs_is_cheap",
    ],
    "each restart counts as a failed attempt": [
        f"{QUEUE}::test_run_continues_after_any_number_of_stops",
    ],
    "a graph that raises CancelledError is run again": [
        f"{RUNS}::test_graph_that_raises_cancelled_error_fails_its_run_only",
    ],
    "a retry ends the streams of a run, or its end does not": [
        f"{QUEUE}::test_retriable_error_is_not_sent_to_followers",
    ],
    "a stream ends before the status is written": [
        f"{RUNS}::test_status_of_a_run_is_stored_before_its_stream_ends",
    ],
    "a temporary thread goes before the end of its stream": [
        f"{RUNS}::test_stream_of_a_stateless_run_is_complete_although_its_thread_is_deleted",
    ],
    "an interruption is an error too, and values need a checkpoint": [
        f"{RUNS}::test_run_cancelled_before_its_first_step_keeps_the_values_of_the_thread",
    ],
    "a rejected run has changed its thread": [
        f"{RUNS}::test_rejected_run_does_not_change_its_thread",
        f"{RUNS}::test_one_of_many_concurrent_reject_runs_is_accepted",
    ],
    "two schedulers fire a cron twice": [
        f"{CRONS}::test_concurrent_schedulers_fire_each_cron_once",
    ],
    "the end of one cron stops them all": [
        f"{RUNS}::test_cron_with_an_end_time_fires_and_delays_no_other",
        f"{CRONS}::test_invalid_cron_payload_delays_other_crons_by_one_poll_at_most",
    ],
    "the checkpoints of a rolled-back run are not found": [
        f"{RUNS}::test_rolled_back_run_leaves_no_checkpoint",
        f"{HISTORY}::test_rolling_back_the_last_run_restores_the_thread",
    ],
    # Streams
    "resuming repeats an event or loses one": [
        f"{STREAMS}::test_resuming_clients_neither_lose_nor_repeat_events",
        f"{STREAMS}::test_resumed_thread_stream_replays_all_runs_in_order",
    ],
    "events of one millisecond share an id": [
        f"{STREAMS}::test_event_ids_are_unique_and_increasing",
    ],
    "ids are compared as text": [
        f"{STREAMS}::test_every_name_of_the_beginning_replays_the_whole_stream",
        f"{STREAMS}::test_event_id_without_sequence_number_resumes_at_its_millisecond",
    ],
    "an empty list of modes": [
        f"{STREAMS}::test_empty_list_of_stream_modes_means_every_mode",
    ],
    "followers of a thread miss later runs": [
        f"{STREAMS}::test_thread_stream_includes_runs_created_later",
    ],
    "runs on event loops of their own": [
        f"{STREAMS}::test_isolated_loops_deliver_events_at_once",
        f"{STREAMS}::test_isolated_loops_support_store_checkpoints_and_cancellation",
    ],
    # Other faults
    "snapshots of delta channels are not decoded": [
        "tests/integration/checkpoint/test_checkpoint.py::test_unpack_hook_keeps_delta_snapshots",
    ],
    "a history before an object": [
        f"{OTHER}::test_history_takes_before_as_an_object_or_an_id",
    ],
    "threads come back without their checkpoints": [
        f"{OTHER}::test_restart_keeps_threads_and_checkpoints_without_file_persistence",
    ],
    "the filter for a missing id is applied to another row": [
        f"{AUTHORISATION}::test_missing_thread_is_404_whatever_other_threads_match",
    ],
    "a filter on values meets a thread without any": [
        f"{OTHER}::test_value_filter_does_not_match_threads_without_values",
    ],
    "system assistants grow with each restart, and outlive their graphs": [
        f"{ASSISTANTS}::test_restarts_do_not_add_versions",
        f"{ASSISTANTS}::test_unused_system_assistants_of_removed_graphs_are_retired",
        f"{ASSISTANTS}::test_assistants_of_graphs_this_server_lacks_are_not_listed",
    ],
    "prefixes, headers and leftovers open the server": [
        f"{SECURITY}::test_every_operation_needs_authentication",
        f"{SECURITY}::test_unauthenticated_routes_of_development_servers_do_not_exist",
        f"{SECURITY}::test_mounts_where_the_stock_api_skips_authentication_are_refused",
    ],
}


@cache
def _tests(file: str) -> set[str]:
    """The names of the test functions in a file."""
    module = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in module.body if isinstance(node, functions)}


@pytest.mark.parametrize("trap", TRAPS)
def test_each_known_fault_has_a_test(trap: str) -> None:
    assert TRAPS[trap]
    for test in TRAPS[trap]:
        file, _, name = test.partition("::")
        assert name.startswith("test_")
        assert name in _tests(file), test
