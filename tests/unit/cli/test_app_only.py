"""`threadhold ingest` and the like, from the wheel: one sentence that says where they are."""

import pytest
from click.testing import CliRunner

from server.cli import main as app
from threadhold.cli import main
from threadhold.cli.app_only import NAMES


@pytest.mark.parametrize("arguments", [("docs",), ("--tenant", "acme", "docs"), ("--help",), ()])
@pytest.mark.parametrize("name", NAMES)
def test_command_of_the_application_says_how_to_run_it(name: str, arguments: tuple[str]) -> None:
    done = CliRunner().invoke(main, [name, *arguments])
    assert done.exit_code == 2
    assert f"`python -m server {name}` in a checkout" in " ".join(done.output.split())
    assert f"  {name} " not in CliRunner().invoke(main, ["--help"]).output


def test_the_application_has_them() -> None:
    assert set(NAMES) <= app.commands.keys()
    assert not any(app.commands[name].hidden for name in NAMES)
