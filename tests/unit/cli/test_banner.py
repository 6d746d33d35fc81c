"""What a server says when it has started: a banner on a terminal, a line of the log elsewhere."""

import logging
import sys
from pathlib import Path

import pytest

from threadhold.config_file import ConfigFile, read_config
from threadhold.serving import banner
from threadhold.settings import Settings

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project() -> ConfigFile:
    graphs = {"echo": str(ROOT / "tests/graphs/echo.py:graph")}
    return read_config({"graphs": graphs, "http": {"mount_prefix": "/api"}})


def settings(**given: str) -> Settings:
    return Settings(_env_file=None, **given)  # type: ignore[arg-type]


def test_a_terminal_gets_a_banner(
    project: ConfigFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    banner.show(settings(database_url="sqlite:////data/app.db"), project, "127.0.0.1", 8123, 3)
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows == {
        "API": "http://127.0.0.1:8123/api",
        "Docs": "http://127.0.0.1:8123/api/docs",
        "Prefix": "/api",
        "Graphs": "echo",
        "Database": "/data/app.db",
        "Processes": "3",
        "Stop": "Ctrl+C",
    }


def test_elsewhere_it_is_a_line_of_the_log_without_a_password(
    project: ConfigFile, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://user:secret@db/app"
    with caplog.at_level(logging.INFO):
        banner.show(settings(database_url=url), project, "0.0.0.0", 8123)
    [record] = [record for record in caplog.records if record.getMessage() == "Serving"]
    assert vars(record)["url"] == "http://127.0.0.1:8123/api"
    assert vars(record)["database"] == "postgresql://user:***@db/app"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("host", "shown"), [("::", "[::1]"), ("0.0.0.0", "127.0.0.1"), ("example.org", "example.org")]
)
def test_an_address_is_one_that_this_machine_reaches(
    project: ConfigFile, host: str, shown: str
) -> None:
    assert banner.base_url(project, host, 80) == f"http://{shown}:80/api"
