"""Filters, limits and audit entries are applied in one place: the gate."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("langgraph_runtime_sql", "threadhold", "hooks", "server")
# The functions that ask the handlers and apply their filters.
ASKING, FILTERING = {"handle_event"}, {"filters.allows", "filters.permits", "filters.validate"}
READS = "langgraph_runtime_sql/gate/reads.py"
# The language of filters, and searches, whose filter comes from `Visible.threads`.
LANGUAGE = (
    "langgraph_runtime_sql/search/filters.py",
    "langgraph_runtime_sql/search/thread_query.py",
)


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield each call in the packages: the file, the name of the function, and the call."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(), str(path))):
                if isinstance(node, ast.Call):
                    name = ast.unparse(node.func)
                    yield str(path.relative_to(ROOT)), name, node


def test_only_reads_apply_the_filters_of_handlers() -> None:
    found = {file for file, name, _ in calls() if name in FILTERING}
    assert found - set(LANGUAGE) == {READS}


def test_only_reads_search_threads_within_a_filter() -> None:
    within = {
        file
        for file, name, call in calls()
        if name == "thread_query.plan"
        and not (isinstance(call.args[2], ast.Constant) and call.args[2].value is None)
    }
    assert within == {READS}


def test_only_the_gate_asks_the_handlers() -> None:
    found = {file for file, name, _ in calls() if name.rpartition(".")[2] in ASKING}
    assert found == {"langgraph_runtime_sql/gate/handlers.py"}


def test_only_the_gate_checks_the_limits_of_what_is_stored() -> None:
    checks = ("quotas.check", "stored.check", "stored.admit")
    found = {file for file, name, _ in calls() if name.startswith(checks)}
    assert found == {"langgraph_runtime_sql/gate/limits.py"}


def test_only_the_gate_says_which_entry_a_change_has() -> None:
    """Others enter refusals, decisions of policies, and what the audit log does to itself."""
    found = {file for file, name, _ in calls() if name == "Note"}
    assert {file for file in found if "/audit/" not in file} == {
        "langgraph_runtime_sql/gate/entries.py",
        "langgraph_runtime_sql/hooks.py",
        "langgraph_runtime_sql/ops/crons/firing.py",
        "threadhold/http/audit.py",
        "threadhold/tenant_data/erase.py",
    }


def test_only_the_gate_opens_itself() -> None:
    opened = {file for file, name, _ in calls() if name.rpartition(".")[2] == "admitting"}
    opened |= {file for file, name, _ in calls() if name.endswith("admitted.set")}
    assert opened == {
        "langgraph_runtime_sql/gate/writes.py",
        "langgraph_runtime_sql/request_context.py",
    }
