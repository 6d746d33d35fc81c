"""The audit of the locked packages: bill of materials and licences."""

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
