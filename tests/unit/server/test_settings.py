"""Settings: where their values come from, and which are refused."""

import re
from pathlib import Path

import click
import pytest
from pydantic import ValidationError

from server.cli import load_settings
from server.settings import Settings


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables and the `.env` of the environment that runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_defaults_serve_a_project_in_the_working_directory() -> None:
    settings = Settings()
    assert settings.langgraph_json == Path("langgraph.json")
    assert settings.database_url == "sqlite:///./data/threadhold.db"
    assert settings.app_env == "local_dev"
    assert settings.max_body_bytes == 10 * 2**20
    assert settings.cors_allow_origins == ()
    assert settings.allow_private_webhooks is False


def test_every_setting_has_a_description_and_is_used() -> None:
    root = Path(__file__).parents[3]
    files = [*root.glob("server/*.py"), *root.glob("hooks/*.py")]
    code = "".join(path.read_text() for path in files if path.name != "settings.py")
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert re.search(rf"(?:settings|asked)\.{name}\b", code), f"{name} is read nowhere"


def test_arguments_override_the_environment_which_overrides_dotenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("LOG_LEVEL=debug\nMAX_BODY_BYTES=7\nOPENAI_API_KEY=other\n")
    assert Settings().log_level == "DEBUG"
    monkeypatch.setenv("MAX_BODY_BYTES", "8")
    assert Settings().max_body_bytes == 8
    assert Settings(max_body_bytes=9).max_body_bytes == 9


def test_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("N_JOBS_PER_WORKER", "")
    assert Settings().n_jobs_per_worker is None


def test_origins_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORS_ALLOW_ORIGINS", "https://a.example, https://b.example,")
    assert Settings().cors_allow_origins == ("https://a.example", "https://b.example")


def test_algorithms_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_ALGORITHMS", "RS256, EdDSA,")
    assert Settings().jwt_algorithms == ("RS256", "EdDSA")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("APP_ENV", "prod"),
        ("LOG_LEVEL", "loud"),
        ("MAX_BODY_BYTES", "0"),
        ("MAX_BODY_BYTES", "ten"),
        ("DURABILITY", "eternal"),
        ("N_JOBS_PER_WORKER", "-1"),
        ("SHUTDOWN_GRACE_SECONDS", "-1"),
    ],
)
def test_invalid_setting_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        Settings()
    with pytest.raises(click.ClickException, match=name):
        load_settings()
