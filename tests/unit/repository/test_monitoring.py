"""The dashboard and the alert rules in `deploy/monitoring` name metrics that exist."""

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from tests.support.processes import ROOT

MONITORING = ROOT / "deploy" / "monitoring"
_ROW = re.compile(r"\| `(\w+)` \| (\w+) \| (.*?) \| .* \|")
# Labels that histograms, Prometheus and `--workers` add.
ADDED = {"le", "instance", "job", "process", "cronjob"}


def metrics() -> dict[str, set[str]]:
    """Return each series that a scrape can have, with its labels, from the generated reference."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines():
        if row := _ROW.fullmatch(line):
            name, kind, labels = row.groups()
            suffixes = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
            known = set(re.findall(r"`(\w+)`", labels))
            found |= {f"{name}{suffix}": known for suffix in suffixes}
    return found


def dashboard() -> Iterator[str]:
    for panel in json.loads((MONITORING / "grafana.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def alerts() -> Iterator[str]:
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            assert {"summary", "action"} == rule["annotations"].keys()
            yield rule["expr"]


def problems(expression: str) -> list[str]:
    """Return the series and labels of an expression that do not exist."""
    known = metrics()
    series = re.findall(r"\b((?:threadhold|lg_api)_\w+)", expression)
    labels = {
        label.strip()
        for group in re.findall(r"by \(([^)]*)\)", expression)
        for label in group.split(",")
    } | set(re.findall(r"(\w+)=~?\"", expression))
    of_series = set().union(*(known.get(each, set()) for each in series)) | ADDED
    return [each for each in series if each not in known] + sorted(labels - of_series)


@pytest.mark.parametrize("expression", [*dashboard(), *alerts()])
def test_series_and_labels_exist(expression: str) -> None:
    assert re.search(r"\b(threadhold_|lg_api_|up\{|kube_cronjob_)", expression)
    assert problems(expression) == []


def test_a_wrong_name_is_found() -> None:
    assert problems("rate(threadhold_runs_ended[5m])") == ["threadhold_runs_ended"]
    assert problems("sum by (tenant) (threadhold_queue_depth)") == ["tenant"]
