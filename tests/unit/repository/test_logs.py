"""The plugin for logs, on which every test stands."""

import logging


def test_a_logger_of_another_thread_does_not_fail_the_test_that_reads_all() -> None:
    read = iter(logging.root.manager.loggerDict.values())
    next(read)
    logging.getLogger("tests.created-meanwhile")
    assert all(each is not None for each in read)
