"""Keys of the audit log: HMAC-SHA256 keys that are outside of the database.

The database's own role can change every row and every trigger. It cannot compute the hash of an entry
without the key. The setting `AUDIT_KEY` names the keys, the newest first: it signs, and the older ones
still verify. A SQLite database without the setting has a file of keys beside it, which the first entry
creates.
"""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from langgraph_runtime_sql import key_texts
from langgraph_runtime_sql.database.sqlite.ownership import PRIVATE_FILE
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.errors import RuntimeSqlError

SUFFIX = ".audit-key"
"""Appended to the name of a SQLite file: the file of its keys."""
_MOST_BYTES = 65_536
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class BadAuditKey(RuntimeSqlError):
    """The key file of the audit log cannot be used."""


@dataclass(frozen=True)
class Key:
    """A key of one log.

    Attributes:
        id: A short name that does not reveal the key. Each entry names the key of its hash.
        secret: The key itself.
    """

    id: str
    secret: bytes = field(repr=False)

    def digest(self, data: bytes) -> str:
        """Return the HMAC-SHA256 of `data`."""
        return hmac.digest(self.secret, data, hashlib.sha256).hex()


@dataclass(frozen=True)
class Keyring:
    """The keys of one log.

    Attributes:
        keys: The newest first; empty if the log has no key.
    """

    keys: tuple[Key, ...] = ()

    @classmethod
    def of_log(cls, texts: Iterable[str], log_id: str) -> "Keyring":
        """Derive the keys of one log from the configured ones.

        Entries of another database with the same configured keys do not verify in this one.

        Args:
            texts: The configured keys, the newest first.
            log_id: The random name of the log.
        """
        return cls(
            tuple(
                Key(_id(text), hmac.digest(text.encode(), _LOG + log_id.encode(), hashlib.sha256))
                for text in dict.fromkeys(texts)
            )
        )

    @property
    def newest(self) -> Key | None:
        """The key that signs, or None."""
        return self.keys[0] if self.keys else None

    def find(self, key_id: str | None) -> Key | None:
        """Return the key with this id, or None."""
        return None if key_id is None else self._by_id.get(key_id)

    @cached_property
    def _by_id(self) -> dict[str, Key]:
        return {key.id: key for key in self.keys}


_LOG = b"threadhold audit log\0"
_ID = b"threadhold audit key\0"


def _id(text: str) -> str:
    return hmac.digest(text.encode(), _ID, hashlib.sha256).hex()[:8]


def configured(url: str, given: Sequence[str], *, create: bool = False) -> tuple[str, ...]:
    """Return the keys of the database at `url`, the newest first.

    The keys in the file beside a SQLite database follow those of the setting: they were the newest
    before it was set.

    Args:
        url: The database.
        given: The keys of the setting.
        create: Create the file if there is no key.

    Raises:
        BadAuditKey: the file cannot be read or created, or others may read it.
    """
    if is_postgres(url):
        return tuple(given)
    path = beside(url)
    try:
        found = (*given, *_read_file(path))
        if not found and create:
            _create_file(path)
            found = _read_file(path)
    except OSError as error:
        raise BadAuditKey(f"The audit log's key file {path} cannot be used: {error}") from error
    return found


def beside(url: str) -> Path:
    """Return the path of the key file of the SQLite database at `url`."""
    path = database_path(url)
    return path.with_name(path.name + SUFFIX)


def _read_file(path: Path) -> tuple[str, ...]:
    try:
        # Not through a link, which may lead to a file that others write.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    with os.fdopen(file, "rb") as opened:
        about = os.fstat(opened.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise BadAuditKey(f"The audit log's key file {path} is no file: remove it")
        if about.st_mode & _OTHERS or about.st_uid not in (0, os.geteuid()):
            raise BadAuditKey(
                f"Others may read the audit log's key file {path}, so they can forge entries. If "
                f"nobody has read it: chmod 600 {path}, owned by this user. Otherwise put a new key "
                "above the old one first."
            )
        content = opened.read(_MOST_BYTES)
    try:
        found = key_texts.audit_keys(content.decode())
    except ValueError as error:
        raise BadAuditKey(f"The audit log's key file {path} holds no keys: {error}") from error
    if not found:
        raise BadAuditKey(f"The audit log's key file {path} is empty: restore it")
    return found


def _create_file(path: Path) -> None:
    """Create the file with a random key, unless another process has created it meanwhile."""
    # Complete under its name at once, because another process may read it.
    partial = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with os.fdopen(file, "w") as out:
            out.write(secrets.token_hex(32) + "\n")
            out.flush()
            os.fsync(out.fileno())
        # Unlike a rename, this fails if the file exists.
        with suppress(FileExistsError):
            path.hardlink_to(partial)
    finally:
        partial.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
