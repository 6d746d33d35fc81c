"""Configure logging so that logs reach pytest's `caplog` in every order of tests, beside threads.

langgraph_api configures structlog unless it is configured, and `capture_logs` leaves another one
that prints. Without this plugin, the logs that a test sees depend on earlier tests.
"""

import logging
from typing import Any

import structlog


class Loggers(dict[str, Any]):
    """The loggers by name, which a thread may add to while others read all of them.

    Around each phase of a test, pytest loops over `values()`. A server in a thread that creates a
    logger at that moment would fail the test.
    """

    def values(self) -> list[Any]:  # type: ignore[override]
        """Return the loggers of this moment."""
        return list(super().values())


def pytest_configure() -> None:
    manager = logging.root.manager
    manager.loggerDict = Loggers(manager.loggerDict)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
