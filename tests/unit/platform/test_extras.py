"""Extras: what they install is declared, and one that is missing is named before it is imported."""

import tomllib
from pathlib import Path

import pytest

from threadhold import LangGraphPlatform, extras
from threadhold.cli import THREADHOLD, load_settings
from threadhold.errors import MissingExtra

ROOT = Path(__file__).parents[3]
GRAPHS = {"a": str(ROOT / "tests/graphs/echo.py:graph")}


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which no extra is installed."""
    monkeypatch.setattr(extras, "_is_installed", lambda name: False)


def test_every_extra_of_the_distribution_says_what_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"].keys() == extras.MODULES.keys()


@pytest.mark.parametrize("extra", extras.MODULES)
def test_what_an_extra_installs_is_here(extra: str) -> None:
    extras.require(extra, "This test")


def test_a_package_inside_one_that_is_missing_is_missing() -> None:
    assert extras._is_installed("not_there.at.all") is False


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(
    ("options", "extra"),
    [
        ({"database_url": "postgresql://127.0.0.1/x"}, "postgres"),
        ({"redis_url": "redis://127.0.0.1"}, "redis"),
    ],
)
def test_a_platform_that_lacks_one_names_it(options: dict[str, str], extra: str) -> None:
    with pytest.raises(MissingExtra, match=rf"pip install 'threadhold\[{extra}\]'"):
        LangGraphPlatform({"graphs": GRAPHS}, **options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("nothing")
def test_an_index_of_the_store_needs_vectors() -> None:
    config = {"graphs": GRAPHS, "store": {"index": {"dims": 3, "embed": "x:y"}}}
    with pytest.raises(MissingExtra, match=r"store.index needs numpy.*threadhold\[vectors\]"):
        LangGraphPlatform(config)


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(
    ("given", "extra"),
    [
        ({"database_url": "postgresql://127.0.0.1/x"}, "postgres"),
        ({"redis_url": "redis://127.0.0.1"}, "redis"),
    ],
)
def test_a_command_that_lacks_one_names_it(
    given: dict[str, str],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingExtra, match=extra):
        load_settings(THREADHOLD.settings, **given)
