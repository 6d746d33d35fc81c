"""Config file: read a `langgraph.json` and make its paths absolute.

Relative paths count from the file, so a project can be served from any working directory.
"""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from langgraph_runtime_sql import limit_settings, retention_rules
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.options import ProjectOptions, Retention, StateKeys
from threadhold import config_keys, host_objects

logger = logging.getLogger(__name__)

SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")


class ConfigError(RuntimeSqlError, ValueError):
    """The configuration cannot be served; the message names the file and the key."""


class ConfigFile(ProjectOptions):
    """Content of a `langgraph.json`, with absolute paths.

    Attributes:
        source: Its path, for messages.
        graphs: Graph id to `file.py:variable`, `module:variable` or an object
            with `path` and `description`. Given graphs have a `module:variable` too.
        sections: Sections that `langgraph_api` reads unchanged, by key
            (`auth`, `http`, `store`, `checkpointer`, `webhooks`, `ui`, `ui_config`).
        env: Environment variables of the project.
        import_paths: Folders that graphs import from.
        hooks: `sql.hooks`: `file.py:object` or `module:object`. The other keys of `sql` are options.
    """

    source: str
    graphs: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    env: dict[str, str]
    import_paths: tuple[Path, ...]
    hooks: str | None

    @property
    def mount_prefix(self) -> str:
        """The prefix of the API's paths; empty at the root."""
        return str(self.sections["http"].get("mount_prefix") or "")


Config = str | PathLike[str] | Mapping[str, Any] | ConfigFile
"""Path of a configuration, or its content."""


def read_config(config: Config) -> ConfigFile:
    """Read a `langgraph.json` or a mapping of the same shape; return a `ConfigFile` unchanged.

    Relative paths of a mapping count from the working directory.

    Raises:
        ConfigError: the file is missing or not JSON, a path in it does not
            exist, or a value has the wrong type.
    """
    if isinstance(config, ConfigFile):
        return config
    if not isinstance(config, (str, PathLike, Mapping)):
        raise ConfigError(
            f"the configuration is {kind_of(config)}; a graph needs an id: "
            '`LangGraphPlatform({"graphs": {"agent": graph}})`'
        )
    if isinstance(config, Mapping):
        return _Reader(dict(config), "the configuration given", Path.cwd()).read()
    path = Path(config).expanduser().resolve()
    return _Reader(_load(path), str(path), path.parent).read()


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: no such file. Name another with --config, or write a project with "
            "`threadhold init`"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must hold a JSON object, not {kind_of(content)}")
    return content


def kind_of(value: Any) -> str:
    """Return what a value is, for messages: "a list"."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), f"an object of {type(value).__name__}")


class _Reader:
    """Turn the raw content into a `ConfigFile`; each error names file and key."""

    def __init__(self, content: dict[str, Any], source: str, folder: Path) -> None:
        self._content = content
        self._source = source
        self._folder = folder

    def read(self) -> ConfigFile:
        if self._content.get("encryption"):
            raise self._error(
                "encryption", "custom encryption is not supported; nothing would be encrypted"
            )
        config_keys.check(self._content, self._source)
        hooks, tenant_key, limits, retention = self._sql()
        return ConfigFile(
            source=self._source,
            folder=self._folder,
            graphs=self._graphs(),
            sections=self._sections(),
            env=self._env(),
            import_paths=self._import_paths(),
            hooks=hooks,
            tenant_key=tenant_key,
            limits=limits,
            retention=retention,
            state_keys=self._state_keys(),
        )

    def _error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self._source}: {key}: {problem}")

    def _object(self, key: str) -> dict[str, Any]:
        value = self._content.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._error(key, f"must be an object, not {kind_of(value)}")
        return dict(value)

    def _graphs(self) -> dict[str, Any]:
        graphs = self._object("graphs")
        if not graphs:
            raise self._error("graphs", "names no graph, so there is nothing to serve")
        return {name: self._graph(f"graphs.{name}", graph) for name, graph in graphs.items()}

    def _graph(self, key: str, graph: Any) -> Any:
        if isinstance(graph, dict):
            return {**graph, "path": self._graph(f"{key}.path", graph.get("path"))}
        if not isinstance(graph, str) and host_objects.is_graph(graph):
            return host_objects.graph(graph)
        return self._object_path(key, graph)

    def _sections(self) -> dict[str, dict[str, Any]]:
        names = ("auth", "http", "store", "checkpointer", "webhooks", "ui", "ui_config")
        sections = {name: self._object(name) for name in names}
        for name in ("auth", "http", "store", "checkpointer"):
            section, key = sections[name], "app" if name == "http" else "path"
            if key in section:
                section[key] = self._object_path(f"{name}.{key}", section[key])
        prefix = sections["http"].get("mount_prefix") or "/x"
        if not isinstance(prefix, str) or not prefix.startswith("/") or prefix.endswith("/"):
            raise self._error("http.mount_prefix", f"{prefix!r} must look like '/api'")
        index = sections["store"].get("index")
        # `provider:model` names an embedding model; only a file needs resolving.
        if isinstance(index, dict) and ".py:" in str(index.get("embed")):
            embed = self._object_path("store.index.embed", index["embed"])
            sections["store"]["index"] = {**index, "embed": embed}
        return sections

    def _object_path(self, key: str, spec: Any) -> str:
        """Make the file of `./file.py:name` absolute, and return `module:name` unchanged."""
        if not isinstance(spec, str):
            raise self._error(
                key, f"must be a string such as './graph.py:graph', not {kind_of(spec)}"
            )
        target, _, name = spec.rpartition(":")
        if not target or not name.isidentifier():
            raise self._error(
                key, f"{spec!r} must be 'path/to/file.py:variable' or 'module:variable'"
            )
        if target.endswith(SCRIPTS):
            raise self._error(key, f"{spec!r} is JavaScript; only Python is served")
        if "/" not in target and not target.endswith(".py"):
            return spec
        path = (self._folder / target).resolve()
        if not path.is_file():
            raise self._error(key, f"no such file: {path}")
        return f"{path}:{name}"

    def _env(self) -> dict[str, str]:
        env = self._content.get("env")
        if env is None or env == "":
            return {}
        if isinstance(env, str):
            return self._env_file(self._folder / env)
        if not isinstance(env, dict):
            raise self._error("env", f"must be an object or the path of a file, not {kind_of(env)}")
        return {name: self._env_value(name, value) for name, value in env.items()}

    def _env_file(self, path: Path) -> dict[str, str]:
        # Projects are often shared without their .env, and may work without it.
        if not path.is_file():
            logger.info("%s: env: no such file: %s", self._source, path)
            return {}
        return {name: value for name, value in dotenv_values(path).items() if value is not None}

    def _env_value(self, name: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return str(value)
        raise self._error(f"env.{name}", f"must be a string, not {kind_of(value)}")

    def _import_paths(self) -> tuple[Path, ...]:
        dependencies = self._content.get("dependencies") or []
        if not isinstance(dependencies, list) or not set(map(type, dependencies)) <= {str}:
            raise self._error("dependencies", "must be a list of strings")
        # Other entries are requirements that are already installed.
        folders = [(self._folder / dependency).resolve() for dependency in dependencies]
        return tuple(dict.fromkeys([self._folder, *filter(Path.is_dir, folders)]))

    def _state_keys(self) -> StateKeys:
        value = self._object("sql").get("state_keys", "all")
        if value == "input":
            return "input"
        if value != "all":
            raise self._error("sql.state_keys", f"{value!r} must be 'all' or 'input'")
        return "all"

    def _sql(self) -> tuple[str | None, str | None, limit_settings.Limits, Retention]:
        """Return `hooks`, `tenant_key`, `limits` and `retention`."""
        section = self._object("sql")
        known = sorted({"hooks", *ProjectOptions.model_fields} - {"folder"})
        if unknown := sorted(section.keys() - set(known)):
            raise self._error(f"sql.{unknown[0]}", f"unknown key; there are {known}")
        hooks, key = section.get("hooks"), section.get("tenant_key")
        if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
            raise self._error(
                "sql.tenant_key",
                f"{key!r} must be a name of up to 100 letters, digits, '_' and '-', as in metadata",
            )
        try:
            limits = limit_settings.parse(section.get("limits"), has_tenants=key is not None)
        except limit_settings.BadLimit as error:
            raise self._error(f"sql.limits.{error.key}".rstrip("."), str(error)) from error
        path = None if hooks is None else self._object_path("sql.hooks", hooks)
        return path, key, limits, self._retention(section.get("retention", {}))

    def _retention(self, given: Any) -> Retention:
        if not isinstance(given, dict):
            raise self._error("sql.retention", f"must be an object, not {kind_of(given)}")
        known = [each.name for each in fields(Retention)]
        values = dict(given)
        try:
            values["checkpoints"] = retention_rules.parse(given.get("checkpoints", []))
        except retention_rules.BadRule as error:
            raise self._error(f"sql.retention.{error.key}", str(error)) from error
        for name, value in given.items():
            if name not in known:
                raise self._error(f"sql.retention.{name}", f"unknown key; there are {known}")
            if name != "checkpoints" and (type(value) is not int or not 0 < value < 2**53):
                raise self._error(f"sql.retention.{name}", f"{value!r} must be a positive integer")
        return Retention(**values)
