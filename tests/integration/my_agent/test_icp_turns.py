"""What strangers wrote to the ICP finder is understood, and nothing happens unasked."""

import pytest

from bench.turns import turns
from bench.turns.figures import report
from bench.turns.playing import play


@pytest.mark.parametrize("mode", ["alone", "model"])
def test_nothing_happens_that_a_message_does_not_ask_for(mode: str) -> None:
    lines = report(mode, play(turns(), mode), show=True)

    assert [line.measure for line in lines if not line.holds] == []


def test_a_model_that_lies_does_nothing_unasked() -> None:
    # Each turn is played in eleven ways, so some of them stand for all; `make bench` plays all.
    lines = report("hostile", play(turns()[::10], "hostile"), show=True)

    assert [line.measure for line in lines if not line.holds] == []
