"""The audit of the locked packages: bill of materials and licences."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import audit

LOCK = """\
httpx==0.28.1 \\
    --hash=sha256:{0} \\
    --hash=sha256:{1}
    # via x
pywin32==311 ; sys_platform == 'win32' \\
    --hash=sha256:{0}
""".format("a" * 64, "b" * 64)


def test_every_locked_package_is_in_the_bill_of_materials() -> None:
    packages = audit.pins(audit.LOCK.read_text())
    lines = [line for line in audit.LOCK.read_text().splitlines() if line[:1].isalnum()]
    assert len(packages) == len(lines) > 80
    document = audit.sbom(packages, {})
    audit.check_sbom(document, packages)
    removed = document["components"].pop(3)
    with pytest.raises(audit.AuditFailed, match=removed["name"]):
        audit.check_sbom(document, packages)


def test_pins_have_versions_markers_and_hashes() -> None:
    assert audit.pins(LOCK) == [
        audit.Pin("httpx", "0.28.1", "", ("a" * 64, "b" * 64)),
        audit.Pin("pywin32", "311", "sys_platform == 'win32'", ("a" * 64,)),
    ]


def test_licences_of_all_locked_packages_are_allowed() -> None:
    assert audit.licences(audit.pins(audit.LOCK.read_text()))


def test_other_licences_and_missing_packages_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(audit.AuditFailed, match="no-such-package: not installed"):
        audit.licences([audit.Pin("no-such-package", "1", "", ())])
    for name in ("AGPL-3.0-only", "Proprietary", ""):
        monkeypatch.setattr(audit, "licence", lambda _, name=name: name)
        with pytest.raises(audit.AuditFailed, match="is not allowed"):
            audit.licences(audit.pins(LOCK)[:1])


def test_audit_asks_the_index_only_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise OSError("asked")

    monkeypatch.setattr(subprocess, "Popen", ask)
    command = ["audit", "--sbom", str(tmp_path / "sbom.json")]
    for more, value, why in (
        ([], "", "(--advisories)"),
        (["--advisories"], "", "not available"),
        ([], "true", "not available"),
    ):
        monkeypatch.setenv("AUDIT_ADVISORIES", value)
        monkeypatch.setattr(sys, "argv", [*command, *more])
        audit.main()
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.startswith("advisories: NOT CHECKED")
        assert last.endswith(why)


def test_an_index_without_answer_ends_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child of the command holds the pipe, as pip-audit does under uv."""
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\nsleep 100 & sleep 100\n")
    uv.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    started = time.monotonic()
    assert "no answer within 0.2 s" in audit.advisories(0.2)
    assert time.monotonic() - started < 20
