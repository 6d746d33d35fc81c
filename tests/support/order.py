"""Distribute the files of tests so that all processes of pytest-xdist finish at the same time.

By default pytest-xdist starts files with many tests first. Files with few but long tests then start
last, and the other processes wait for them. Here the folders with long tests start first.
"""

import pytest

# Folders of the longest files, in the order of their durations. Other files come last.
FOLDERS = (
    *("chaos", "conformance", "e2e", "my_agent", "http", "queue", "cli", "events"),
    *("repository", "integration"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Keep the order of the processes' collections."""
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the folders in a process of pytest-xdist; a single process runs quick tests first."""
    if hasattr(config, "workerinput"):
        items.sort(key=rank)


def rank(item: pytest.Item) -> int:
    """Return the place of a test's folder in the order."""
    parts = item.path.parts
    # A folder of `unit` with the name of one of `integration` is quick.
    if "unit" in parts and "repository" not in parts:
        return len(FOLDERS)
    return min((FOLDERS.index(name) for name in parts if name in FOLDERS), default=len(FOLDERS))
