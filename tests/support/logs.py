"""Logs: they reach pytest's `caplog`, whichever test is first to have something logged.

langgraph_api sets structlog up unless somebody has, and `capture_logs` leaves a set-up behind that
prints: what a test sees would depend on the tests before it.
"""

import structlog


def pytest_configure() -> None:
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
