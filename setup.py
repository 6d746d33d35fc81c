"""The long description: README.md with links that work on a package index.

Everything else is in pyproject.toml. Links to files of the repository are relative in README.md,
so that they work in a checkout; an index has no files beside it.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent


def long_description() -> str:
    """README.md with every relative link made absolute."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"]

    def absolute(found: re.Match[str]) -> str:
        target = found[1]
        return (
            f"]({source}{target})" if target.startswith("#") else f"]({source}/blob/main/{target})"
        )

    readme = (HERE / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?!\w+:)([^)\s]+)\)", absolute, readme)


setup(long_description=long_description(), long_description_content_type="text/markdown")
