"""What goes wrong on servers like this one, and the tests that show that it does not here.

A test that is renamed or removed leaves a hole here, and fails.
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
STORE = "tests/integration/store/test_store_api.py"
HISTORY = "tests/integration/checkpoint/test_checkpoint_history.py"

TRAPS: dict[str, list[str]] = {
    # What the API expects
    "the edition is taken for the hosted one": [
        f"{CONTRACT}::test_the_edition_is_not_taken_for_the_hosted_one",
    ],
    "rows are read after their connection is closed, or never": [
        f"{CONTRACT}::test_rows_may_be_read_late_or_never",
    ],
    "a new run must come first, with a UUID": [
        f"{CONTRACT}::test_a_new_run_comes_first_and_its_id_is_a_uuid",
    ],
    "many operations share a connection, and a batch waits for all": [
        f"{CONTRACT}::test_one_connection_serves_many_operations_at_once",
        f"{CONTRACT}::test_a_batch_in_which_one_run_is_refused_leaves_nobody_waiting",
        f"{CONTRACT}::test_a_batch_with_an_unknown_assistant_is_answered",
    ],
    "there may be no connection": [
        f"{CONTRACT}::test_operations_work_without_a_connection",
    ],
    "bytes in rows are shown in base64": [
        f"{CONTRACT}::test_rows_hold_no_bytes",
    ],
    "a user object that cannot be exported is stored as null": [
        f"{CONTRACT}::test_the_user_of_a_run_is_stored_whatever_kind_of_object_it_is",
        f"{AUTHORISATION}::test_nodes_know_whose_run_it_is",
    ],
    "callers change the rows they are given": [
        f"{CONTRACT}::test_what_callers_do_to_rows_does_not_change_what_is_stored",
        f"{CRONS}::test_what_is_handed_out_is_a_private_copy_with_all_that_is_read",
    ],
    "a subscription is closed twice, and made of ids nobody has checked": [
        f"{CONTRACT}::test_a_subscription_may_be_closed_twice",
        f"{CONTRACT}::test_ids_that_are_none_are_a_clients_error",
    ],
    "a repeated request meets what its first try has written": [
        f"{CONTRACT}::test_a_request_is_repeated_only_if_nothing_was_committed",
    ],
    "a graph's own database errors are taken for the runtime's": [
        "tests/unit/queue/test_retry.py::test_only_our_own_errors_are_retriable_or_overload",
    ],
    "an error while publishing fails the run": [
        f"{CONTRACT}::test_publishing_does_not_fail_whoever_has_left",
    ],
    # Authorization
    "handlers change metadata in place": [
        f"{AUTHORISATION}::test_what_a_handler_writes_into_metadata_is_stored_and_searched",
        f"{AUTHORISATION}::test_a_copy_belongs_to_whoever_copies",
        f"{ASSISTANTS}::test_metadata_that_a_handler_sets_is_stored_and_searched",
    ],
    "operators that are not known match everything": [
        f"{AUTHORISATION}::test_a_filter_that_is_not_understood_lets_nobody_in",
        f"{ASSISTANTS}::test_a_filter_that_is_not_understood_admits_nothing",
    ],
    "a handler changes the thread meanwhile": [
        f"{AUTHORISATION}::test_what_a_handler_does_to_the_thread_meanwhile_is_kept",
    ],
    "anybody can call an assistant the system's": [
        f"{AUTHORISATION}::test_calling_oneself_system_gives_an_assistant_no_privilege",
    ],
    "internal work is done in the name of whoever came last": [
        f"{CRONS}::test_a_cron_without_a_user_is_not_run_as_the_one_before",
        f"{CRONS}::test_the_scheduler_acts_for_nobody_between_crons",
        f"{AUTHORISATION}::test_a_stateless_run_takes_its_thread_whatever_its_users_handlers_say",
    ],
    "calls from within the server skip authentication": [
        f"{AUTHORISATION}::test_a_client_inside_a_graph_acts_for_the_runs_user",
    ],
    "waiting clients ask the handlers again and again": [
        f"{AUTHORISATION}::test_handlers_are_not_asked_again_while_a_client_waits",
    ],
    "a store search wraps the handler's filter": [
        f"{STORE}::test_filters_of_handler_and_caller_both_apply",
    ],
    # Runs and their queue
    "cancelling by status does not reach the runs": [
        f"{RUNS}::test_cancelling_by_status_stops_the_runs_themselves",
        f"{RUNS}::test_cancelling_many_takes_those_that_wait_and_those_that_run",
    ],
    "a cancelled run no longer counts while it still executes": [
        f"{RUNS}::test_running_run_stays_running_until_its_worker_ends_it",
        f"{RUNS}::test_a_new_run_supersedes_the_running_and_the_waiting",
    ],
    "rolling back or deleting a run that nobody follows leaves its thread busy": [
        f"{RUNS}::test_undoing_a_run_nobody_watches_frees_its_thread",
        f"{RUNS}::test_joiners_of_a_deleted_run_are_let_go",
        f"{RUNS}::test_a_waiting_run_that_is_gone_leaves_the_thread_as_it_was",
        f"{RUNS}::test_deleting_an_answer_asks_again",
    ],
    "after four minutes a run can no longer be cancelled": [
        f"{RUNS}::test_a_run_can_be_cancelled_however_long_it_has_been_quiet",
    ],
    "one blocked thread holds up all others": [
        f"{RUNS}::test_a_thread_with_a_thousand_waiting_runs_does_not_delay_another",
        f"{RUNS}::test_looking_for_work_behind_ten_thousand_waiting_runs_is_cheap",
    ],
    "each restart counts as a failed attempt": [
        f"{QUEUE}::test_a_run_goes_on_where_a_stop_cut_it_off_however_often",
    ],
    "a graph that raises CancelledError is run again": [
        f"{RUNS}::test_a_graph_that_raises_cancelled_error_only_fails_its_run",
    ],
    "a retry ends the streams of a run, or its end does not": [
        f"{QUEUE}::test_a_retriable_error_is_not_sent_to_followers",
    ],
    "a stream ends before the status is written": [
        f"{RUNS}::test_who_sees_the_end_of_a_run_finds_its_status",
    ],
    "a temporary thread goes before the end of its stream": [
        f"{RUNS}::test_the_stream_of_a_stateless_run_outlives_its_thread",
    ],
    "an interruption is an error too, and values need a checkpoint": [
        f"{RUNS}::test_an_interruption_is_told_as_an_error_and_values_need_a_checkpoint",
    ],
    "a rejected run has changed its thread": [
        f"{RUNS}::test_a_rejected_run_leaves_its_thread_untouched",
        f"{RUNS}::test_of_many_runs_at_once_one_is_accepted_and_the_rest_rejected",
    ],
    "two schedulers fire a cron twice": [
        f"{CRONS}::test_two_schedulers_at_once_fire_each_cron_once",
    ],
    "the end of one cron stops them all": [
        f"{RUNS}::test_a_cron_with_an_end_fires_and_does_not_hold_up_the_others",
        f"{CRONS}::test_a_payload_the_scheduler_chokes_on_leaves_the_others_to_the_next_poll",
    ],
    "the checkpoints of a rolled-back run are not found": [
        f"{RUNS}::test_a_rolled_back_run_leaves_no_checkpoint",
        f"{HISTORY}::test_rolling_back_the_last_run_restores_the_thread",
    ],
    # Streams
    "resuming repeats an event or loses one": [
        f"{STREAMS}::test_resuming_neither_loses_nor_repeats_however_many_resume",
        f"{STREAMS}::test_resuming_a_thread_replays_all_its_runs_in_order",
        f"{STREAMS}::test_an_event_that_is_not_kept_survives_the_resumption",
        f"{STREAMS}::test_a_state_update_is_kept_before_anyone_can_miss_it",
    ],
    "events of one millisecond share an id": [
        f"{STREAMS}::test_every_event_has_a_number_of_its_own_and_they_grow",
    ],
    "ids are compared as text": [
        f"{STREAMS}::test_the_beginning_of_a_stream_has_several_names",
        f"{STREAMS}::test_a_bare_millisecond_is_a_place_in_the_stream",
    ],
    "an empty list of modes": [
        f"{STREAMS}::test_an_empty_list_of_modes_means_every_mode",
    ],
    "followers of a thread miss later runs": [
        f"{STREAMS}::test_a_thread_is_followed_through_runs_that_are_made_later",
    ],
    "runs on event loops of their own": [
        f"{STREAMS}::test_runs_on_loops_of_their_own_deliver_at_once",
        f"{STREAMS}::test_runs_on_loops_of_their_own_do_everything_else",
    ],
    # The rest
    "snapshots of delta channels are not decoded": [
        "tests/integration/checkpoint/test_checkpoint.py::test_unpack_hook_keeps_delta_snapshots",
    ],
    "a history before an object": [
        f"{OTHER}::test_history_before_a_checkpoint_that_is_given_as_an_object",
    ],
    "threads come back without their checkpoints": [
        f"{OTHER}::test_a_restart_keeps_threads_with_their_checkpoints",
    ],
    "a missing id is judged by another row": [
        f"{AUTHORISATION}::test_a_missing_id_is_not_judged_by_another_row",
    ],
    "a filter on values meets a thread without any": [
        f"{OTHER}::test_threads_without_values_match_no_filter_on_values",
    ],
    "system assistants grow with each restart, and outlive their graphs": [
        f"{ASSISTANTS}::test_restarts_do_not_add_versions",
        f"{ASSISTANTS}::test_assistants_of_graphs_that_are_gone_are_retired",
        f"{ASSISTANTS}::test_assistants_of_other_servers_graphs_are_not_listed",
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
def test_a_trap_is_tested(trap: str) -> None:
    assert TRAPS[trap]
    for test in TRAPS[trap]:
        file, _, name = test.partition("::")
        assert name.startswith("test_")
        assert name in _tests(file), test
