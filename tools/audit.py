"""Audit the locked packages: a bill of materials, their licences, and published advisories.

    python -m tools.audit [--sbom build/sbom.cdx.json] [--advisories]

Licences come from the installed packages and are checked against `ALLOWED`. The bill of materials
(CycloneDX 1.6) has every package of `requirements.lock` with its hashes. This needs no network.

With `--advisories`, or `AUDIT_ADVISORIES=true`, `pip-audit` also asks the package index for published
advisories. If it gets no answer within a minute, the audit says so and does not fail.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
PIP_AUDIT = "pip-audit==2.10.1"
ADVISORY_SECONDS = 60.0
NOT_CHECKED = "advisories: NOT CHECKED"

ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla Public|Zlib|Unlicense|"
    r"HPND|CC0|LGPL|Lesser General Public|0BSD|Public Domain|Elastic",
    re.IGNORECASE,
)
"""Licences of which one must be in a package's expression. Elastic: langgraph-api, see the docs."""

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class AuditFailed(Exception):
    """A locked package breaks a rule. The message names the packages."""


@dataclass(frozen=True)
class Pin:
    """A package of the lock file."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def pins(lock: str) -> list[Pin]:
    """Return the packages of a lock file."""
    found: list[tuple[str, str, str, list[str]]] = []
    for line in lock.splitlines():
        if pin := _PIN.match(line):
            found.append((pin[1], pin[2], (pin[3] or "").strip(), []))
        elif (digest := _HASH.search(line)) and found:
            found[-1][3].append(digest[1])
    return [Pin(name, version, marker, tuple(h)) for name, version, marker, h in found]


def licence(name: str) -> str:
    """Return the licence of an installed package as its metadata says; empty if unknown.

    Raises:
        importlib.metadata.PackageNotFoundError: the package is not installed.
    """
    about: Any = metadata.metadata(name)
    classifiers = [
        value.rpartition(":: ")[2]
        for value in about.get_all("Classifier") or []
        if value.startswith("License ::")
    ]
    # The old field may hold the whole text, whose first line names the licence.
    old = (about.get("License") or "").strip().partition("\n")[0]
    return about.get("License-Expression") or ", ".join(classifiers) or old


def licences(packages: Iterable[Pin]) -> dict[str, str]:
    """Return the licence of each installed package.

    A package with a marker may be absent: it is for another system.

    Raises:
        AuditFailed: a package is missing, or its licence is not allowed.
    """
    found, wrong = dict[str, str](), list[str]()
    for pin in packages:
        try:
            found[pin.name] = licence(pin.name)
        except metadata.PackageNotFoundError:
            if not pin.marker:
                wrong.append(f"{pin.name}: not installed")
            continue
        if not ALLOWED.search(found[pin.name]):
            wrong.append(f"{pin.name}: licence {found[pin.name] or 'unknown'!r} is not allowed")
    if wrong:
        raise AuditFailed("\n".join(wrong))
    return found


def sbom(packages: Iterable[Pin], known: dict[str, str]) -> dict[str, Any]:
    """Make a CycloneDX document of the packages.

    Args:
        packages: The packages of the lock file.
        known: Licences by package.
    """
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "threadhold"}},
        "components": [
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{pin.name}@{pin.version}",
                "name": pin.name,
                "version": pin.version,
                "purl": f"pkg:pypi/{pin.name}@{pin.version}",
                "hashes": [{"alg": "SHA-256", "content": each} for each in pin.hashes],
                **(
                    {"licenses": [{"license": {"name": known[pin.name]}}]}
                    if known.get(pin.name)
                    else {}
                ),
            }
            for pin in packages
        ],
    }


def check_sbom(document: dict[str, Any], packages: Iterable[Pin]) -> None:
    """Check that a document has every package with its hashes. Raises AuditFailed."""
    found = {
        (each["name"], each["version"]): {one["content"] for one in each["hashes"]}
        for each in document["components"]
    }
    missing = [
        f"{pin.name} {pin.version}"
        for pin in packages
        if not pin.hashes or found.get((pin.name, pin.version)) != set(pin.hashes)
    ]
    if missing:
        raise AuditFailed(f"not in the bill of materials: {', '.join(missing)}")


def advisories(seconds: float = ADVISORY_SECONDS) -> str:
    """Ask the package index for advisories. Return what was found, in one line.

    Args:
        seconds: Maximum duration.

    Raises:
        AuditFailed: a package has an advisory.
    """
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "tool", "run", PIP_AUDIT, "--require-hashes", "--disable-pip", "-r"]
    try:
        with subprocess.Popen(
            [*command, str(LOCK), "--format", "json", "--progress-spinner", "off"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # A group of its own: uv starts pip-audit, which would outlive it.
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return f"{NOT_CHECKED}, because there was no answer within {seconds:g} s"
        answer = json.loads(said)
    except (OSError, ValueError):
        return f"{NOT_CHECKED}, because pip-audit or its network is not available"
    hit = [
        f"{each['name']} {each['version']}: {', '.join(one['id'] for one in each['vulns'])}"
        for each in answer["dependencies"]
        if each.get("vulns")
    ]
    if hit:
        raise AuditFailed("\n".join(hit))
    return f"advisories: none for {len(answer['dependencies'])} packages"


def main() -> None:
    """Run the audit. Exits with 1 if a package breaks a rule."""
    parser = argparse.ArgumentParser(description="Audit the locked packages.")
    parser.add_argument("--sbom", type=Path, default=ROOT / "build" / "sbom.cdx.json")
    parser.add_argument(
        "--advisories",
        action="store_true",
        default=os.environ.get("AUDIT_ADVISORIES", "").lower() in ("1", "true", "yes"),
        help="ask the package index for advisories (default: AUDIT_ADVISORIES)",
    )
    arguments = parser.parse_args()
    path = arguments.sbom
    packages = pins(LOCK.read_text())
    try:
        known = licences(packages)
        document = sbom(packages, known)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1))
        check_sbom(json.loads(path.read_text()), packages)
        print(f"licences: {len(known)} installed packages are allowed")
        print(f"bill of materials: {len(packages)} packages in {path}")
        print(advisories() if arguments.advisories else f"{NOT_CHECKED} (--advisories)")
    except AuditFailed as error:
        print(error, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
