"""Reading a langgraph.json, and the environment made from it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from langgraph_runtime_sql.options import Retention
from threadhold.config_file import ConfigError, ConfigFile, read_config
from threadhold.environment import STUDIO_ORIGINS, Environment, environment
from threadhold.options import PlatformOptions, made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project folder with a graph, an auth object and a package."""
    for name in ("graph.py", "auth.py", "hooks.py", "embed.py", "lib/helper.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("graph = auth = policy = embed = None\n")
    return tmp_path


def write(project: Path, **content: Any) -> Path:
    path = project / "langgraph.json"
    path.write_text(json.dumps({"graphs": {"a": "./graph.py:graph"}, **content}))
    return path


def variables(config: ConfigFile, **changes: Any) -> Environment:
    arguments = {"database_url": "sqlite:////tmp/x.db", "max_body_bytes": 10, **changes}
    return environment(config, made(PlatformOptions, arguments))


def section(name: str, config: ConfigFile, **changes: Any) -> dict[str, Any]:
    """Parse one JSON variable of the environment."""
    value = variables(config, **changes)[name]
    assert value is not None
    parsed: dict[str, Any] = json.loads(value)
    return parsed


def test_dev_allows_pages_of_this_machine(project: Path) -> None:
    for given in (None, {"allow_origin_regex": "https://.*[.]example"}):
        path = write(project, http={"cors": given} if given else {})
        cors = section("LANGGRAPH_HTTP", read_config(path), studio=True)["cors"]
        allowed = re.compile(cors["allow_origin_regex"]).fullmatch
        for origin in ("http://localhost:5173", "https://127.0.0.1", "http://[::1]:3000"):
            assert allowed(origin)
        assert not allowed("http://localhost.evil.example")
        assert bool(allowed("https://a.example")) is (given is not None)
        assert (
            "allow_origin_regex" not in section("LANGGRAPH_HTTP", read_config(path))["cors"]
            or given
        )


def test_paths_are_relative_to_the_config_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(
        project,
        graphs={"a": "./graph.py:graph", "b": {"path": "graph.py:graph", "description": "B"}},
        auth={"path": "./auth.py:auth"},
        store={"index": {"dims": 2, "embed": "./embed.py:embed"}},
        sql={
            "hooks": "./hooks.py:policy",
            "tenant_key": "org-id",
            "retention": {"events_seconds": 60},
        },
        dependencies=[".", "./lib", "langchain-openai"],
    )
    monkeypatch.chdir("/")
    config = read_config(path)
    assert config.graphs == {
        "a": f"{project}/graph.py:graph",
        "b": {"path": f"{project}/graph.py:graph", "description": "B"},
    }
    assert config.sections["auth"]["path"] == f"{project}/auth.py:auth"
    assert config.sections["store"]["index"] == {"dims": 2, "embed": f"{project}/embed.py:embed"}
    assert config.hooks == f"{project}/hooks.py:policy"
    assert config.tenant_key == "org-id"
    assert config.retention == Retention(events_seconds=60)
    assert config.import_paths == (project, project / "lib")


def test_module_and_embedding_model_names_stay_unchanged(project: Path) -> None:
    path = write(
        project,
        graphs={"a": "my.package:graph"},
        store={"index": {"dims": 2, "embed": "openai:text-embedding-3-small"}},
    )
    config = read_config(path)
    assert config.graphs == {"a": "my.package:graph"}
    assert config.sections["store"]["index"]["embed"] == "openai:text-embedding-3-small"


def test_paths_of_a_mapping_are_relative_to_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    config = read_config({"graphs": {"a": "./graph.py:graph"}})
    assert config.graphs == {"a": f"{project}/graph.py:graph"}


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"graphs": {}}, "graphs"),
        ({"graphs": ["./graph.py:graph"]}, "graphs"),
        ({"graphs": {"a": "./missing.py:graph"}}, "graphs.a"),
        ({"graphs": {"a": "./graph.py"}}, "graphs.a"),
        ({"graphs": {"a": "./graph.py:not a name"}}, "graphs.a"),
        ({"graphs": {"a": 3}}, "graphs.a"),
        ({"graphs": {"a": {"description": "no path"}}}, "graphs.a.path"),
        ({"graphs": {"a": "./graph.ts:graph"}}, "graphs.a"),
        ({"auth": {"path": "./missing.py:auth"}}, "auth.path"),
        ({"auth": "auth.py:auth"}, "auth"),
        ({"http": {"app": "./missing.py:app"}}, "http.app"),
        ({"http": {"mount_prefix": "api"}}, "http.mount_prefix"),
        ({"http": {"mount_prefix": "/api/"}}, "http.mount_prefix"),
        ({"http": {"mount_prefix": 3}}, "http.mount_prefix"),
        ({"store": {"index": {"embed": "./missing.py:embed"}}}, "store.index.embed"),
        ({"checkpointer": {"path": "./missing.py:saver"}}, "checkpointer.path"),
        ({"dependencies": "."}, "dependencies"),
        ({"env": 3}, "env"),
        ({"env": {"A": ["b"]}}, "env.A"),
        ({"sql": {"hook": "./hooks.py:policy"}}, "sql.hook"),
        ({"sql": {"hooks": "./missing.py:policy"}}, "sql.hooks"),
        ({"sql": {"tenant_key": ""}}, "sql.tenant_key"),
        ({"sql": {"tenant_key": 'a"b'}}, "sql.tenant_key"),
        ({"sql": {"tenant_key": ["org"]}}, "sql.tenant_key"),
        ({"sql": []}, "sql"),
        ({"sql": {"state_keys": "some"}}, "sql.state_keys"),
        ({"sql": {"retention": 3}}, "sql.retention"),
        ({"sql": {"retention": {"events_days": 3}}}, "sql.retention.events_days"),
        ({"sql": {"retention": {"events_seconds": "3"}}}, "sql.retention.events_seconds"),
        ({"sql": {"retention": {"events_bytes": 0}}}, "sql.retention.events_bytes"),
        ({"encryption": {"path": "./auth.py:auth"}}, "encryption"),
    ],
)
def test_invalid_config_is_refused_with_file_and_key(
    project: Path, content: dict[str, Any], key: str
) -> None:
    path = write(project, **content)
    with pytest.raises(ConfigError) as refusal:
        read_config(path)
    assert str(refusal.value).startswith(f"{path}: {key}: ")


@pytest.mark.parametrize("text", ["{", "[]", "null", '"x"', "\xff", "[" * 100_000])
def test_file_without_a_json_object_is_refused_by_name(project: Path, text: str) -> None:
    path = project / "langgraph.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=str(path)):
        read_config(path)


def test_missing_config_file_is_refused_by_name(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json: no such file"):
        read_config(project / "nowhere.json")


def test_env_may_be_a_mapping_or_a_possibly_missing_file(project: Path) -> None:
    assert read_config(write(project, env={"A": "x", "B": 2, "C": True})).env == {
        "A": "x",
        "B": "2",
        "C": "true",
    }
    assert read_config(write(project, env=".env")).env == {}
    (project / ".env").write_text("A='x y'\n# comment\nB=2\nC\n")
    assert read_config(write(project, env=".env")).env == {"A": "x y", "B": "2"}


def test_project_cannot_override_security_variables(
    project: Path,
) -> None:
    path = write(project, auth={"path": "./auth.py:auth", "disable_studio_auth": False})
    owned = variables(read_config(path))
    assert owned["LANGGRAPH_RUNTIME_EDITION"] == "sql"
    assert "__inmem" not in (owned["MIGRATIONS_PATH"] or "")
    assert owned["LANGSMITH_LANGGRAPH_API_VARIANT"] is None
    assert owned["LANGGRAPH_STRICT_MSGPACK"] == "true"
    assert owned["HTTP_MAX_REQUEST_BODY_BYTES"] == "10"
    config = read_config(path)
    assert section("LANGGRAPH_AUTH", config)["disable_studio_auth"] is True
    assert section("LANGGRAPH_CHECKPOINTER", config) == {"serde": {"pickle_fallback": False}}
    assert section("LANGGRAPH_HTTP", config)["disable_ui"] is True
    assert section("LANGGRAPH_HTTP", config)["cors"]["allow_origins"] == []


def test_studio_origins_are_allowed_only_on_request(project: Path) -> None:
    config = read_config(write(project, http={"cors": {"allow_origins": ["https://a.example"]}}))
    closed = section("LANGGRAPH_HTTP", config)["cors"]
    assert closed["allow_origins"] == ["https://a.example"]
    assert closed["allow_methods"] == ["*"]
    open_ = section("LANGGRAPH_HTTP", config, studio=True)["cors"]
    assert open_["allow_origins"] == ["https://a.example", *STUDIO_ORIGINS]


def test_cors_argument_overrides_the_project(project: Path) -> None:
    config = read_config(write(project, http={"cors": {"allow_origins": ["https://a.example"]}}))
    cors = section("LANGGRAPH_HTTP", config, cors={"allow_origins": ["https://b.example"]})["cors"]
    assert cors["allow_origins"] == ["https://b.example"]


def test_public_url_is_checked(project: Path) -> None:
    config = read_config(write(project))
    assert "LANGGRAPH_API_URL" not in variables(config)
    given = variables(config, public_url="https://api.example.com/agents/")
    assert given["LANGGRAPH_API_URL"] == "https://api.example.com/agents"
    for wrong in (
        "api.example.com",
        "ftp://a.example",
        "https://",
        "https://a.example/?x",
        "http://[x",
    ):
        with pytest.raises(ConfigError, match="public_url"):
            variables(config, public_url=wrong)


def test_webhooks_need_public_https_by_default(project: Path) -> None:
    config = read_config(write(project))
    closed = {"require_https": True, "disable_private_ips": True, "disable_loopback": True}
    assert section("LANGGRAPH_WEBHOOKS", config)["url"] == closed
    private = section("LANGGRAPH_WEBHOOKS", config, allow_private_webhooks=True)["url"]
    assert private == {
        "require_https": False,
        "disable_private_ips": False,
        "disable_loopback": True,
    }
    config_with_url = read_config(write(project, webhooks={"url": {"require_https": False}}))
    assert section("LANGGRAPH_WEBHOOKS", config_with_url)["url"] == {
        **closed,
        "require_https": False,
    }


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"checkpointer": {"serde": {"pickle_fallback": True}}}, "pickle_fallback"),
        ({"checkpointer": {"backend": "mongo"}}, "checkpointer.backend"),
        ({"http": {"cors": {"allow_origins": ["*"], "allow_credentials": True}}}, "http.cors"),
        ({"http": {"cors": ["*"]}}, "http.cors"),
        ({"webhooks": {"url": "https://a.example"}}, "webhooks.url"),
        ({"checkpointer": {"serde": True}}, "checkpointer.serde"),
    ],
)
def test_unsafe_sections_are_refused(project: Path, content: dict[str, Any], key: str) -> None:
    config = read_config(write(project, **content))
    with pytest.raises(ConfigError, match=key):
        variables(config)
