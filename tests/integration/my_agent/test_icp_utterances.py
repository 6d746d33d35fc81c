"""The ICP finder's reading of messages: the lines of `bench/icp/utterances.txt`, without a model."""

from bench.icp.utterances import OWED, UNSEEN, judged, play, utterances


def test_lines_are_understood_and_none_destroys() -> None:
    understood, destroyed = judged("offline", play(utterances()))
    assert understood.ours >= OWED
    assert destroyed.ours == 0


def test_unseen_lines_do_not_destroy() -> None:
    _, destroyed = judged("unseen", play(utterances(UNSEEN)), owed=None)
    assert destroyed.ours == 0
