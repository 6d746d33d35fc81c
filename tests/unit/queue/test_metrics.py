"""Metrics of the workers."""

import pytest

from langgraph_runtime_sql import metrics


def test_metrics_follow_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "workers", metrics.Workers())
    assert metrics.get_metrics() == {"workers": {"max": 0, "active": 0, "available": 0}}
    metrics.workers.max = 10
    metrics.workers.active = 3
    assert metrics.get_metrics() == {"workers": {"max": 10, "active": 3, "available": 7}}
