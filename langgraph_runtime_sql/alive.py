"""Alive: prove that a process of this machine has ended.

Each process holds a lock on a file of its own. The kernel releases the lock when the process has
ended, whatever ended it, and not while it is stopped. So a free lock proves the end, and the runs
of that process need not wait for their leases. Processes on other machines, before a reboot, in other
containers or with another folder for temporary files leave no such proof.
"""

import fcntl
import logging
import os
import re
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

logger = logging.getLogger(__name__)

# A process that died earlier than this has no run any more: its leases have ended.
OLD_SECONDS = 86_400.0
_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")
# The locks of this process, by name. They end with the process.
_held: dict[str, int] = {}


def folder() -> Path:
    """Return the folder of the files of this user."""
    return Path(tempfile.gettempdir()) / f"threadhold-{os.getuid()}"


@cache
def boot() -> str:
    """Return the id of this machine since it was started; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def hold(name: str) -> None:
    """Show until the end of this process that the process of this name lives. Repeatable.

    Without a writable folder, others wait for the leases.
    """
    if name in _held:
        return
    try:
        where = folder()
        where.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(where):
            logger.warning("Other users can write to %s, so it is not used", where)
            return
        _forget_old(where)
        file = os.open(where / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.pwrite(file, boot().encode(), 0)
    except OSError as error:
        logger.info("Other processes cannot see that this one ends: %s", error)
        return
    with suppress(BlockingIOError):
        # In a forked process, its parent has the lock.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _held[name] = file


def has_ended(name: str) -> bool:
    """Return whether the process of this name has certainly ended."""
    if not _NAME.fullmatch(name) or name in _held:
        return False
    try:
        # Machines may share a folder without seeing each other's locks.
        return _is_private(folder()) and _left_by(folder() / name) == boot().encode()
    except OSError:
        # It has left no file here.
        return False


def _is_private(where: Path) -> bool:
    found = where.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _left_by(path: Path) -> bytes | None:
    """Return what a process has written into its file, or None while it has the lock."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        # Shared, so that two processes may look at the same time.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.pread(file, 100, 0)
    except BlockingIOError:
        return None
    finally:
        os.close(file)


def _forget_old(where: Path) -> None:
    """Delete the files of processes that ended long ago."""
    for path in where.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - OLD_SECONDS and _left_by(path) is not None:
                path.unlink()
