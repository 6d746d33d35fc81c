"""Reference: tables that ship beside the code that reads them, as CSV files."""

import csv
from importlib.resources import files


def table(package: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table, by the names of its columns.

    Args:
        package: the package whose folder `reference` has the file.
        name: name of the file, in UTF-8.
    """
    text = files(package).joinpath("reference", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
