"""Fixtures of the tests of the queue, in the test's process."""

from collections.abc import Iterator

import pytest

from langgraph_runtime_sql.tenancy import scope
from tests.support.runtime import set_options
from tests.support.turns import KEY


@pytest.fixture(scope="module")
def tenants(settings: None) -> Iterator[None]:
    """Give each tenant its turns, and stop without a grace period."""
    with pytest.MonkeyPatch.context() as patch:
        set_options(patch, grace_seconds=0, tenant_key=KEY)
        # The runs here have no user.
        patch.setattr(scope, "current", lambda tenant_key: scope.EVERYTHING)
        yield
