"""Environments: one for each kind of release, with all else at least as this checkout locks it."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "canary"
# What the canary is about. Of the API it takes the newest version, of the others the newest that go with it.
PACKAGES = (
    *("langgraph-api", "langgraph", "langgraph-sdk", "langgraph-cli"),
    *("langchain-core", "starlette"),
)
NPM = ("@langchain/langgraph-sdk", "@langchain/react", "@langchain/core")
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)(\[[a-z,]+\])?==([^ ;]+)(.*?)\s*\\?$", re.MULTILINE)


class Unresolved(Exception):
    """The versions cannot be installed together."""


def make(kind: str, versions: dict[str, Version]) -> Path:
    """Make the environment of a kind of release, or return the one that is there.

    Args:
        kind: The kind, also the name of its folder.
        versions: The versions of `PACKAGES`.

    Returns:
        Its interpreter.

    Raises:
        Unresolved: They cannot be installed together.
    """
    folder = CACHE / kind
    python = folder / "bin" / "python"
    wanted = _requirements(versions)
    mark, digest = folder / "requirements.sha256", hashlib.sha256(wanted.encode()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _uv("venv", "--quiet", "--python", sys.executable, str(folder))
    (folder / "requirements.txt").write_text(wanted)
    _uv("pip", "install", "--python", str(python), "--requirement", f"{folder}/requirements.txt")
    mark.write_text(digest)
    return python


def installed(python: Path) -> dict[str, str]:
    """Return the versions of `PACKAGES` in an environment."""
    found = json.loads(_uv("pip", "list", "--python", str(python), "--format", "json"))
    return {each["name"]: each["version"] for each in found if each["name"] in PACKAGES}


def javascript() -> tuple[Path, dict[str, str]]:
    """Install the newest packages of the npm registry. Return their folder and their versions.

    Raises:
        Unresolved: They cannot be installed.
    """
    folder, sources = CACHE / "javascript", ROOT / "tests" / "javascript"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(sources / "hook.mjs", folder)
    locked = json.loads((sources / "package.json").read_text())
    wanted = {**locked["dependencies"], **dict.fromkeys(NPM, "latest")}
    (folder / "package.json").write_text(json.dumps({**locked, "dependencies": wanted}))
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unresolved(done.stderr.strip())
    packages = (folder / "node_modules" / name / "package.json" for name in NPM)
    return folder, {
        name: json.loads(each.read_text())["version"]
        for name, each in zip(NPM, packages, strict=True)
    }


def _requirements(versions: dict[str, Version]) -> str:
    """Return the requirements of an environment. Newer releases may need newer ones of what is locked."""
    lock = (ROOT / "requirements-dev.lock").read_text()
    api = versions["langgraph-api"]
    lines = [f"langgraph-api=={api}"]
    # A resolver takes a prerelease only of what is named with one.
    lines += ["langgraph-runtime-inmem>=0.0.1.dev0"] if api.is_prerelease else []
    lines += [f"{name}>={each}" for name, each in versions.items() if each.is_prerelease]
    for name, extras, version, marker in _LOCKED.findall(lock):
        if name not in ("langgraph-api", "langgraph-runtime-inmem"):
            lines.append(f"{name}{extras}>={version}{marker}")
    return "\n".join(lines) + "\n"


def _uv(*arguments: str) -> str:
    command = [sys.executable, "-m", "uv", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unresolved(done.stderr.strip())
    return done.stdout
