"""Set the long description, and build no wheel without the web app.

Links in README.md are relative, so that they work in a checkout. The long description has them
absolute. All other metadata is in pyproject.toml.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
PAGE = HERE / "threadhold" / "web" / "index.html"
WITHOUT = "THREADHOLD_WITHOUT_WEB"


class BuildWithPage(build_py):
    """Build the web app first, if the sources have none. Editable installations need none."""

    def run(self) -> None:
        """Build, or end with what to do."""
        if not self.editable_mode and not PAGE.exists() and not os.environ.get(WITHOUT):
            # A source distribution has the page, so this is a checkout.
            built = subprocess.run(
                [sys.executable, "-m", "tools.web", "--strict"], cwd=HERE, check=False
            )
            if built.returncode or not PAGE.exists():
                raise SystemExit(
                    "The wheel would have no web app. Install Node 20 or later, or run `make web` "
                    f"in the checkout, or set {WITHOUT}=1 to build it without the page."
                )
        super().run()


def long_description() -> str:
    """Return README.md with each relative link made absolute."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"]

    def absolute(found: re.Match[str]) -> str:
        target = found[1]
        return (
            f"]({source}{target})" if target.startswith("#") else f"]({source}/blob/main/{target})"
        )

    readme = (HERE / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?!\w+:)([^)\s]+)\)", absolute, readme)


setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": BuildWithPage},
)
