"""Pages: refuse a page of a thread's history whose values are too large to answer at once."""

from starlette.exceptions import HTTPException

from langgraph_runtime_sql.limits.refusals import count


class PageLimit:
    """Adds up the sizes of the states of one page.

    Args:
        most: The largest sum, in bytes; None is no limit. A single state always fits.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._size = self._states = 0

    def add(self, size: int) -> None:
        """Add a state whose values take `size` bytes.

        Raises:
            HTTPException: (422) the page is too large. The message says how many states fit.
        """
        self._size += size
        if self._most is not None and self._size > self._most and self._states:
            count("thread", "page_bytes")
            raise HTTPException(
                422,
                f"The page is larger than {self._most:,} bytes (thread.page_bytes): ask for fewer "
                f"states with `limit`. The first {self._states:,} fit.",
            )
        self._states += 1
