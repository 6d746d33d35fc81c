"""Set the long description: README.md with absolute links, for a package index.

Links in README.md are relative, so that they work in a checkout. All other metadata is in
pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent


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


setup(long_description=long_description(), long_description_content_type="text/markdown")
