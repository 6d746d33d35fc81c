"""Pages: refuse a page of a thread's history whose values are too large to answer at once."""

from starlette.exceptions import HTTPException

from langgraph_runtime_sql.limits.refusals import count

# What is read holds the values, those that tasks have written onto them, and what describes both.
READ = 3


class PageLimit:
    """Adds up the sizes of the states of one page. A single state always fits.

    Args:
        most: The largest sum of the values' sizes as JSON, in bytes; None is no limit. Their sum as
            stored, with the writes onto them, may be `READ` times that: this is known first.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._size = self._states = 0
        self._read = self._read_states = 0

    def add_read(self, size: int) -> None:
        """Add a state of which `size` bytes were read.

        Raises:
            HTTPException: (422) the page is too large. How many states fit is not known yet.
        """
        self._read += size
        if self._most is not None and self._read > READ * self._most and self._read_states:
            raise self._refusal()
        self._read_states += 1

    def add(self, size: int) -> None:
        """Add a state whose values take `size` bytes as JSON.

        Raises:
            HTTPException: (422) the page is too large. The message says how many states fit.
        """
        self._size += size
        if self._most is not None and self._size > self._most and self._states:
            raise self._refusal(f" The first {self._states:,} fit.")
        self._states += 1

    def _refusal(self, advice: str = "") -> HTTPException:
        count("thread", "page_bytes")
        return HTTPException(
            422,
            f"The page is larger than {self._most:,} bytes (thread.page_bytes): ask for fewer states "
            f"with `limit`.{advice}",
        )
