"""Settings: the sources of values, and invalid values."""

import json
import re
from pathlib import Path

import click
import pytest
from pydantic import ValidationError

from my_agent.models import ModelSettings
from server.cli import load_settings
from server.settings import Settings
from threadhold.settings import BadSettings, read_settings, variable


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the variables and the `.env` of the environment in which the tests run."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(Settings, name), raising=False)


def test_defaults_serve_a_project_in_the_working_directory() -> None:
    settings = Settings()
    assert settings.langgraph_json == Path("langgraph.json")
    assert settings.database_url == "sqlite:///./data/threadhold.db"
    assert settings.app_env == "local_dev"
    assert settings.max_body_bytes == 2**20
    assert settings.max_json_nodes == 20_000
    assert settings.max_json_depth == 200
    assert settings.cors_allow_origins == ()
    assert settings.allow_private_webhooks is False


def test_every_setting_is_described_and_used() -> None:
    root = Path(__file__).parents[3]
    files = [
        path
        for name in ("server", "hooks", "threadhold", "langgraph_runtime_sql")
        for path in root.glob(f"{name}/**/*.py")
    ]
    code = "".join(path.read_text() for path in files if path.name != "settings.py")
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert re.search(rf"(?:settings|asked|options)\.{name}\b", code), f"{name} is read nowhere"


def test_given_value_overrides_environment_and_dotenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("LOG_LEVEL=debug\nMAX_BODY_BYTES=7\nOPENAI_API_KEY=other\n")
    assert Settings().log_level == "DEBUG"
    monkeypatch.setenv("MAX_BODY_BYTES", "8")
    assert Settings().max_body_bytes == 8
    assert Settings(max_body_bytes=9).max_body_bytes == 9


def test_env_of_the_project_is_read_from_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    graph = Path(__file__).parents[2] / "graphs" / "echo.py"
    config = {"graphs": {"echo": f"{graph}:graph"}, "env": ".env"}
    (project / "langgraph.json").write_text(json.dumps(config))
    (project / ".env").write_text("LOG_LEVEL=debug\nMAX_BODY_BYTES=7\nN_JOBS_PER_WORKER=3\n")
    (tmp_path / ".env").write_text("LOG_LEVEL=error\nSHUTDOWN_GRACE_SECONDS=1\n")
    monkeypatch.setenv("MAX_BODY_BYTES", "8")
    settings = load_settings(langgraph_json=project / "langgraph.json", n_jobs=4)
    assert settings.log_level == "DEBUG"
    assert settings.max_body_bytes == 8
    assert settings.n_jobs == 4
    assert settings.grace_seconds == 1


def test_wrong_value_in_the_env_of_the_project_is_refused_by_name(tmp_path: Path) -> None:
    graph = Path(__file__).parents[2] / "graphs" / "echo.py"
    config = {"graphs": {"echo": f"{graph}:graph"}, "env": {"LOG_LEVEL": "loud"}}
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    with pytest.raises(click.ClickException, match="LOG_LEVEL"):
        load_settings()


def test_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("N_JOBS_PER_WORKER", "")
    assert Settings().n_jobs is None


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
        ("MAX_JSON_NODES", "0"),
        ("MAX_JSON_DEPTH", "0"),
        ("MAX_JSON_DEPTH", "201"),
        ("DURABILITY", "eternal"),
        ("N_JOBS_PER_WORKER", "-1"),
        ("SHUTDOWN_GRACE_SECONDS", "-1"),
    ],
)
def test_invalid_value_is_rejected_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        Settings()
    with pytest.raises(click.ClickException, match=name):
        load_settings()


def test_secrets_are_read_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, key = "x" * 40, tmp_path / "key"
    (tmp_path / "secret").write_text(f"{secret}\n")
    key.write_text("sk-file\n")
    for name in ("JWT_SECRET", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JWT_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(key))
    found = read_settings(Settings).jwt_secret
    assert found is not None
    assert found.get_secret_value() == secret
    api_key = ModelSettings.from_environment().api_key
    assert api_key is not None
    assert api_key.get_secret_value() == "sk-file"
    monkeypatch.setenv("JWT_SECRET", secret)
    with pytest.raises(BadSettings, match="JWT_SECRET_FILE; set one"):
        read_settings(Settings)
    monkeypatch.delenv("JWT_SECRET")
    monkeypatch.setenv("JWT_SECRET_FILE", str(tmp_path / "missing"))
    with pytest.raises(BadSettings, match="JWT_SECRET_FILE: cannot read"):
        read_settings(Settings)
