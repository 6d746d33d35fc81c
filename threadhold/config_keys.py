"""Config keys: warn of keys in a `langgraph.json` that have no effect, once each."""

import difflib
import functools
import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)

KNOWN = frozenset(
    {"graphs", "dependencies", "env", "auth", "http", "store", "checkpointer", "webhooks"}
    | {"ui", "ui_config", "sql", "encryption", "$schema"}
)
# `langgraph build` and `langgraph up` read these.
IMAGE = frozenset(
    {"python_version", "node_version", "api_version", "base_image", "image_distro"}
    | {"pip_config_file", "pip_installer", "keep_pkg_tools", "dockerfile_lines", "source"}
)
WITHOUT_EFFECT = {
    "priority": "runs have the priorities of `sql.limits`",
    "http.logging_headers": "access lines have no headers",
}
_SECTIONS = {
    "auth": {"path", "openapi", "cache", "disable_studio_auth", "allow_langsmith_api_keys"},
    "http": {"app", "cors", "mount_prefix", "configurable_headers", "logging_headers"}
    | {"enable_custom_route_auth", "middleware_order"}
    | {
        f"disable_{each}"
        for each in ("assistants", "threads", "runs", "store", "meta", "webhooks", "ui", "mcp")
    }
    | {"disable_a2a"},
    "store": {"index", "ttl", "path"},
    "checkpointer": {"backend", "path", "ttl", "serde"},
    "webhooks": {"env_prefix", "url", "headers", "allowed_fields"},
}


def check(content: Mapping[str, Any], source: str) -> None:
    """Warn of each key without effect, and suggest the one that was probably meant.

    Args:
        content: The content of the file.
        source: Its path, for messages.
    """
    if image := sorted(content.keys() & IMAGE):
        names = ", ".join(image)
        _log(logging.INFO, f"{source}: {names}: only for building an image, without effect here")
    for key in content.keys() - KNOWN - IMAGE:
        _warn(source, key, KNOWN | IMAGE)
    for section, known in _SECTIONS.items():
        found = content.get(section)
        for key in found.keys() if isinstance(found, Mapping) else ():
            if key not in known or f"{section}.{key}" in WITHOUT_EFFECT:
                _warn(source, f"{section}.{key}", {f"{section}.{each}" for each in known})


def _warn(source: str, key: str, known: set[str] | frozenset[str]) -> None:
    if (reason := WITHOUT_EFFECT.get(key)) is not None:
        _log(logging.WARNING, f"{source}: {key}: without effect here: {reason}")
        return
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.7)
    meant = f"; did you mean `{close[0]}`?" if close else ""
    _log(logging.WARNING, f"{source}: {key}: unknown key, without effect{meant}")


@functools.cache
def _log(level: int, text: str) -> None:
    logger.log(level, "%s", text)
