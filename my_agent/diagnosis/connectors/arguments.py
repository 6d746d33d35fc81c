"""Arguments: check what a call passes to a tool against the tool's JSON Schema."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

MOST = 20_000
"""Characters of the arguments of one call, as JSON."""
_PROBLEM = 300


def problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments; empty if nothing is.

    Args:
        schema: JSON Schema of the arguments. It may not refer to another document.
        arguments: by name.
    """
    try:
        # Neither NaN nor infinity is JSON.
        size = len(json.dumps(dict(arguments), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return "The arguments are not JSON"
    if size > MOST:
        return f"The arguments have more than {MOST:,} characters"
    try:
        validator = jsonschema_rs.validator_for(
            dict(schema),
            retriever=_refuse,
            # Patterns of a server take linear time.
            pattern_options=jsonschema_rs.RegexOptions(),
        )
        found = next(validator.iter_errors(dict(arguments)), None)
    except ValueError:
        return "The tool's JSON Schema is not valid"
    if found is None:
        return ""
    place = ".".join(map(str, found.instance_path))
    return f"{place}: {found.message}"[:_PROBLEM] if place else found.message[:_PROBLEM]


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri[:80]} is another document")
