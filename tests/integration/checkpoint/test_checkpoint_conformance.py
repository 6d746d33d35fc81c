"""The public conformance suite of langgraph's checkpoint savers, with every capability."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import (
    ALL_CAPABILITIES,
    Capability,
    DetectedCapabilities,
)

from langgraph_runtime_sql.checkpoint import Checkpointer
from tests.support.checkpoints import runtime_database

pytestmark = pytest.mark.usefixtures("each_database", "settings")


def test_every_capability_is_declared() -> None:
    assert DetectedCapabilities.from_instance(Checkpointer()).missing == frozenset()


@pytest.mark.parametrize("capability", sorted(ALL_CAPABILITIES), ids=lambda c: c.value)
async def test_saver_passes_the_public_suite(capability: Capability, tmp_path: Path) -> None:
    @checkpointer_test(name=f"Checkpointer {capability.value}")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        async with runtime_database(tmp_path / "conformance.db"):
            yield Checkpointer()

    result = (await validate(saver, capabilities={capability.value})).results[capability.value]
    assert result.failures == []
    assert result.tests_passed > 0
