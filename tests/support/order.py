"""Distribute the files of tests so that all processes of pytest-xdist finish at the same time.

By default pytest-xdist starts files with many tests first. Files with few but long tests then start
last, and the other processes wait for them. Here the folders with long tests start first.
"""

import pytest

# Folders in `tests`, in the order of the duration of their files. Other files come last.
FOLDERS = ("chaos", "conformance", "integration")


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
    names = [name for name in FOLDERS if name in item.path.parts]
    return FOLDERS.index(names[0]) if names else len(FOLDERS)
