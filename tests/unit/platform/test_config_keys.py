"""Keys of a langgraph.json without effect are named once, with the one that was meant."""

import json
from pathlib import Path
from typing import Any

import pytest

from threadhold.config_file import ConfigError, read_config


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"stor": {}}, "stor: unknown key, without effect; did you mean `store`?"),
        ({"zebra": 1}, "zebra: unknown key, without effect"),
        ({"http": {"mount_prefx": "/a"}}, "http.mount_prefx: unknown key, without effect; did you"),
        ({"http": {"logging_headers": {}}}, "http.logging_headers: without effect here: access"),
        ({"priority": {"path": "x:y"}}, "priority: without effect here: runs have"),
        (
            {"python_version": "3.12", "dockerfile_lines": []},
            "dockerfile_lines, python_version: only for building an image, without effect here",
        ),
        ({"store": {"index": {}}, "http": {"disable_mcp": True}, "ui": {}, "sql": {}}, None),
    ],
)
def test_keys_without_effect_are_named_once(
    content: dict[str, Any], said: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "graph.py").write_text("graph = None\n")
    path = tmp_path / "langgraph.json"
    path.write_text(json.dumps({"graphs": {"a": "./graph.py:graph"}, **content}))
    caplog.set_level("INFO")
    for _ in range(2):
        read_config(path)
    lines = [each.getMessage() for each in caplog.records]
    if said is None:
        assert lines == []
    else:
        assert [each.startswith(f"{path}: {said}") for each in lines] == [True]


def test_a_graph_without_an_id_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match="a graph needs an id"):
        read_config(object())  # type: ignore[arg-type]  # what a user may pass
