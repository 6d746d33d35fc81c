"""The interface of the checkpoint saver."""

from inspect import Parameter, isfunction, signature

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph_runtime_sql.checkpoint import Checkpointer

METHODS = sorted(
    name
    for name, each in vars(BaseCheckpointSaver).items()
    if isfunction(each) and not name.startswith("_")
)


def accepted(saver: type, method: str) -> list[tuple[str, object, object]]:
    """Return name, kind and default of each parameter."""
    named: list[Parameter] = list(signature(getattr(saver, method)).parameters.values())
    return [(each.name, each.kind, each.default) for each in named]


@pytest.mark.parametrize("method", METHODS)
def test_public_method_has_the_parameters_of_the_base(method: str) -> None:
    """langgraph reads the signature: it sends a task's path only to a saver that names it."""
    assert accepted(Checkpointer, method) == accepted(BaseCheckpointSaver, method)
