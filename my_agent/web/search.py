"""Search: ask public engines of the web. They have no contract and may refuse at any time."""

from typing import Any


def ask(query: str, *, seconds: int, most: int) -> list[dict[str, Any]]:
    """Return the results of a query, each with `href`, `title` and `body`, best first. Blocks.

    Args:
        query: the words.
        seconds: time of each engine.
        most: maximum number of results.

    Raises:
        ConnectionError: no engine answered.
    """
    # Imported late: the import is slow and would delay every start.
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    try:
        return DDGS(timeout=seconds).text(query, max_results=most)
    except DDGSException as error:
        if "no results" in str(error).lower():
            return []
        raise ConnectionError(str(error)[:200]) from error
