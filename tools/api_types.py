"""Write the types of the web app's requests: `python -m tools.api_types openapi.json`.

The argument is the description that a server of this project gives at `/openapi.json`. Only the
schemas that the page uses are written, without their words, into `web/src/api-types.d.ts`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.web import WEB, BuildError, check_node

TARGET = WEB / "src" / "api-types.d.ts"
USED = (
    "Assistant",
    "AssistantSearchRequest",
    "Interrupt",
    "ProtocolCommand",
    "Run",
    "RunCreateStateful",
    "Thread",
    "ThreadCreate",
    "ThreadPatch",
    "ThreadSearchRequest",
    "ThreadState",
    "ThreadStateSearch",
)
# Words of the description, which types do not need.
_WORDS = frozenset({"title", "description", "default", "example", "examples", "deprecated"})
_SECONDS = 60


def main(arguments: list[str]) -> int:
    """Write the types, and return the exit code."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    TARGET.write_text(generate(json.loads(Path(arguments[0]).read_text())))
    return 0


def generate(description: dict[str, Any]) -> str:
    """Return the TypeScript of the used schemas of an OpenAPI description.

    Raises:
        BuildError: Node is missing, or the generator failed.
    """
    check_node()
    schemas = description["components"]["schemas"]
    wanted: dict[str, Any] = {}
    _collect(USED, schemas, wanted)
    pruned = {
        "openapi": "3.1.0",
        "info": {"title": "API", "version": "1"},
        "paths": {},
        "components": {"schemas": {name: wanted[name] for name in sorted(wanted)}},
    }
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "openapi.json"
        source.write_text(json.dumps(pruned))
        done = subprocess.run(
            ["npx", "openapi-typescript", str(source), "--empty-objects-unknown"],
            cwd=WEB,
            timeout=_SECONDS,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise BuildError(f"openapi-typescript failed:\n{done.stderr[-2000:]}")
    return done.stdout


def _collect(names: Any, schemas: dict[str, Any], found: dict[str, Any]) -> None:
    """Add schemas and those that they refer to, without words."""
    for name in names:
        if name not in found:
            found[name] = _plain(schemas[name])
            _collect(_references(found[name]), schemas, found)


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"].rpartition("/")[2]} if "$ref" in value else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def _plain(value: Any, *, is_names: bool = False) -> Any:
    """Return a schema without words. The keys of `properties` are names, not words."""
    if isinstance(value, dict):
        if is_names and "graph_id" in value:
            # Its values are the graphs of the server that was asked.
            value = {**value, "graph_id": {"type": "string"}}
        return {
            key: _plain(each, is_names=key == "properties")
            for key, each in value.items()
            if is_names or key not in _WORDS
        }
    return [_plain(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
