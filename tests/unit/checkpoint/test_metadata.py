"""Checkpoint metadata is always plain JSON."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, CheckpointMetadata

from langgraph_runtime_sql.checkpoint.metadata import checkpoint_metadata, matches

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.uuids(),
    st.dates(),
    st.builds(object),
)
VALUES = st.recursive(
    ODD,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
CONFIG = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)


def config(configurable: dict[str, Any], metadata: dict[str, Any]) -> RunnableConfig:
    return {"configurable": configurable, "metadata": metadata}


@settings(max_examples=100, deadline=None)
@given(CONFIG, CONFIG)
def test_metadata_is_always_json(configurable: dict[str, Any], metadata: dict[str, Any]) -> None:
    about = checkpoint_metadata(config(configurable, metadata), {"source": "loop", "step": 1})
    assert json.loads(json.dumps(about, allow_nan=False)) == about
    assert about["source"] == "loop"


def test_checkpoint_metadata_overrides_the_config() -> None:
    about = checkpoint_metadata(
        config({"a": 1, "b": 1, "c": 1}, {"b": 2, "c": 2}),
        CheckpointMetadata(source="loop", c=3),  # type: ignore[typeddict-unknown-key]
    )
    assert about == {"a": 1, "b": 2, "c": 3, "source": "loop"}


def test_claimed_run_id_overrides_all_other_run_ids() -> None:
    given_by_client = config({"run_id": "x"}, {"run_id": "y"})
    assert checkpoint_metadata(given_by_client, {"run_id": "z"}, "mine") == {"run_id": "mine"}
    assert checkpoint_metadata(given_by_client, {}) == {"run_id": "y"}


@pytest.mark.parametrize("section", ["configurable", "metadata"])
def test_places_and_the_caller_are_left_out(section: str) -> None:
    places = dict.fromkeys(EXCLUDED_METADATA_KEYS, "t")
    given: Any = {
        **places,
        "__pregel_read": print,
        "langgraph_auth_user": object(),
        "langgraph_auth_user_id": "u",
        "langgraph_auth_permissions": ["p"],
        "langgraph_request_id": "r",
    }
    assert checkpoint_metadata({section: given}, {}) == {}  # type: ignore[misc]


def test_uuids_and_dates_become_text() -> None:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    about = checkpoint_metadata(config({"id": UUID(int=1), "when": when}, {}), {})
    assert about == {"id": str(UUID(int=1)), "when": "2026-01-02 00:00:00+00:00"}


def test_filter_on_an_absent_key_matches_only_none() -> None:
    assert matches({"a": 1}, {"a": 1, "b": None})
    assert not matches({"a": 1}, {"b": 1})
