"""Configure structlog so that logs reach pytest's `caplog` in every order of tests.

langgraph_api configures structlog unless it is configured, and `capture_logs` leaves another one
that prints. Without this plugin, the logs that a test sees depend on earlier tests.
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
