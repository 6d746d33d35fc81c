"""Descriptors: raise the limit of open files, and compute how many connections fit into it."""

import logging
import sys

logger = logging.getLogger(__name__)

# Above it, a process gains nothing, and some programs become slow that close all descriptors.
MAX_DESCRIPTORS = 65_536
# For files, the database, Redis, and the connections of graphs to models.
KEPT = 256


def raise_limit() -> int:
    """Raise the limit of open descriptors (RLIMIT_NOFILE) as far as possible, and return it."""
    if sys.platform == "win32":
        return MAX_DESCRIPTORS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    possible = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft >= possible:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    except (OSError, ValueError) as error:
        # macOS has a lower limit than the hard one.
        logger.warning("RLIMIT_NOFILE stays at %s: %s", soft, error)
        return soft
    return possible


def connections(wanted: int, descriptors: int, reserve: int) -> int:
    """Return the number of connections to allow.

    Args:
        wanted: The number that the settings allow.
        descriptors: The limit of open descriptors.
        reserve: Connections above the number that must also fit.
    """
    kept = min(KEPT + reserve, descriptors // 2)
    possible = max(1, descriptors - kept)
    if wanted > possible:
        logger.info(
            "Up to %s connections instead of %s, because RLIMIT_NOFILE is %s",
            possible,
            wanted,
            descriptors,
        )
    return min(wanted, possible)
