"""What `threadhold doctor` prints of many findings."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from threadhold.admin import doctor
from threadhold.admin.findings import Finding
from threadhold.cli import main

MANY = 2_000


def test_findings_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Comparing each with all others took minutes for some ten thousand findings."""
    compared = 0

    class Counted(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    def found(*_: object) -> list[Finding]:
        return [Finding("thread", Counted(number), "why", "do it") for number in range(MANY)]

    def remaining(*_: object) -> list[Finding]:
        return found()[MANY // 2 :]

    monkeypatch.setattr(doctor, "repair", found)
    monkeypatch.setattr(doctor, "examine", remaining)
    url = f"sqlite:///{tmp_path}/x.db"
    done = CliRunner().invoke(main, ["doctor", "--fix", "--database-url", url])
    assert done.exit_code == 1
    assert done.stdout.count("repaired: do it") == done.stdout.count("remedy: do it") == MANY // 2
    assert compared < 10 * MANY
