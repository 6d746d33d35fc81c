"""Failures: reasons why a call of the model gave no answer. Each fails the run."""

from collections.abc import Callable, Mapping

from my_agent.answering import Ending
from my_agent.failures import ModelCallError


class _Failure(ModelCallError):
    def __init__(self) -> None:
        super().__init__(self.__doc__)


class RefusedAnswerError(_Failure):
    """The model refused to answer this question, or its content filter did. Ask differently."""


class EmptyAnswerError(_Failure):
    """The model answered with nothing. Ask again, or set another model."""


class LateAnswerError(_Failure):
    """The model did not finish its answer in time (CHAT_ANSWER_SECONDS). Ask again."""


ERRORS: Mapping[Ending, Callable[[], ModelCallError]] = {
    "late": LateAnswerError,
    "refused": RefusedAnswerError,
    "filtered": RefusedAnswerError,
    "empty": EmptyAnswerError,
}
"""The errors of answers that are none."""
