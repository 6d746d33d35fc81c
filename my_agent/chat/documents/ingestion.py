"""Ingestion: add a folder's documents to the index, and delete those that left the folder.

Each document is written in one short transaction, after its passages are embedded. The server can
therefore write in between, and an interrupted ingestion continues where it stopped.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from my_agent import embedding, parsing
from my_agent.chat.documents import index, reading
from my_agent.chat.documents.chunking import Passage, passages
from my_agent.chat.settings import ChatSettings
from my_agent.embedding import Vectors
from my_agent.parsing import Unreadable
from my_agent.tables import tables

# Part of every digest. Increase it when documents are read or cut differently: the next ingestion
# then reads all files again. Vectors of equal passages stay: another model needs a migration too.
READER = "3"

# Passages between two writes of an incomplete document.
STAGED = 64

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes in total."""


@dataclass
class Report:
    """Number of files by outcome.

    Attributes:
        added: new files.
        changed: files with new content.
        unchanged: files that were stored already.
        removed: files that were deleted from the index.
        passages: passages of the new and changed documents.
        skipped: path and reason of each skipped file.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ("added", "changed", "unchanged", "removed")
        parts = [f"{getattr(self, name)} {name}" for name in counts]
        return f"{', '.join(parts)}, {len(self.skipped)} skipped; {self.passages} passages embedded"


def _silent(done: int, of: int) -> None:
    """Ignore progress reports."""


class EmptiedFolderError(Exception):
    """Raised when a folder has no readable document any more, and the index has some of it."""

    def __init__(self, root: Path, count: int) -> None:
        super().__init__(
            f"{root} contains no document that can be read. The index has {count} of this folder, "
            "and has kept them."
        )


def ingest(
    root: Path, tenant: str, progress: Progress = _silent, *, emptied: bool = False
) -> Report:
    """Bring the index up to date with a folder or with one document. Blocks.

    Args:
        root: the folder or the document.
        tenant: the owner of the documents; empty: shared by all tenants.
        progress: called after each step.
        emptied: whether a folder without any document deletes its documents from the index.

    Raises:
        EmptiedFolderError: the folder has no document any more, and `emptied` is false.
        TablesError: the database cannot be used.
    """
    run = _Ingestion(root.resolve(), tenant)
    found = list(run.found())
    of, done = sum(size for _, size in found), 0
    for path, size in found:
        for part in run.take(path):
            progress(done + int(size * part), of)
        done += size
        progress(done, of)
    if run.would_empty and not emptied:
        raise EmptiedFolderError(root, run.known)
    run.remove()
    return run.report


def embed_and_add(
    tenant: str, path: str, digest: str, passages: Sequence[Passage]
) -> Iterator[float]:
    """Embed the passages of a document and store it. Yield the fraction done, from 0 to 1.

    If it is interrupted, the next call continues behind the last `STAGED` passages that it kept.
    Passages that the file's stored document has too are not embedded again.
    """

    def stored(connection: Connection) -> tuple[list[Vectors], dict[str, Vectors]]:
        staged = index.staged_vectors(connection, tenant, digest)[: len(passages)]
        return staged, index.vectors_by_text(connection, tenant, path)

    vectors, known = tables.read(stored, tenant)
    kept = len(vectors)
    for batch in _embedded([each.in_context for each in passages[kept:]], known):
        vectors += batch
        if len(vectors) - kept >= STAGED and len(vectors) < len(passages):
            stage = partial(
                index.stage, tenant=tenant, digest=digest, first=kept + 1, vectors=vectors[kept:]
            )
            tables.write(stage, tenant)
            kept = len(vectors)
        yield len(vectors) / len(passages)
    embedded = dict(zip(passages, vectors, strict=True))
    tables.write(lambda connection: index.add(connection, tenant, path, digest, embedded), tenant)


def _embedded(texts: Sequence[str], known: dict[str, Vectors]) -> Iterator[list[Vectors]]:
    """Yield the vectors of texts, a batch at a time. Equal texts are embedded once.

    Args:
        texts: the passages in their context.
        known: vectors by text; new ones are added.
    """
    for start in range(0, len(texts), embedding.BATCH):
        part = texts[start : start + embedding.BATCH]
        new = list(dict.fromkeys(text for text in part if text not in known))
        for batch in embedding.of_passages(new):
            known.update(zip(new, batch, strict=True))
        yield [known[text] for text in part]


def digest_of(content: bytes) -> str:
    """Return the digest that identifies the document with this content."""
    return hashlib.sha256(f"{READER}\n".encode() + content).hexdigest()


class _Ingestion:
    """One pass over a folder."""

    def __init__(self, root: Path, tenant: str) -> None:
        self.report = Report()
        self._root, self._tenant = root, tenant
        self._settings = ChatSettings.from_environment()
        self._known = tables.read(
            lambda connection: index.known_files(connection, tenant, _key(root)), tenant
        )
        self._gone = set(self._known)

    @property
    def known(self) -> int:
        """Return the number of files of this folder that the index had before."""
        return len(self._known)

    @property
    def would_empty(self) -> bool:
        """Return whether `remove` would delete all files of a folder."""
        return bool(self._known) and self._gone == set(self._known) and not self.report.added

    def found(self) -> Iterator[tuple[Path, int]]:
        """Yield the files that may be documents, with their sizes in bytes."""
        for path in [self._root] if self._root.is_file() else _walk(self._root, self._skip):
            if path.suffix.lower() not in reading.suffixes():
                self._skip(path, "documents are " + ", ".join(sorted(reading.suffixes())))
            elif not _real(path).is_relative_to(self._root):
                self._skip(path, "it is a link out of the folder")
            else:
                try:
                    yield path, path.stat().st_size
                except OSError as error:
                    self._keep(path, error)

    def take(self, path: Path) -> Iterator[float]:
        """Bring one file up to date. Yield the fraction done, from 0 to 1."""
        try:
            content = reading.load(_real(path), self._settings.document_max_bytes)
            digest = digest_of(content)
            if self._known.get(_key(path)) == digest:
                self.report.unchanged += 1
            else:
                yield from self._store(path, content, digest)
        except Unreadable as error:
            self._skip(path, str(error))
        except OSError as error:
            self._keep(path, error)
        else:
            self._gone.discard(_key(path))

    def remove(self) -> None:
        """Delete the files that are gone or contain no readable text any more."""
        if not self._gone:
            return
        gone = sorted(self._gone)
        tables.write(lambda connection: index.forget(connection, self._tenant, gone), self._tenant)
        self.report.removed = len(self._gone)

    def _store(self, path: Path, content: bytes, digest: str) -> Iterator[float]:
        known = tables.write(
            lambda connection: index.point(connection, self._tenant, _key(path), digest),
            self._tenant,
        )
        if not known:
            found = parsing.call(
                passages,
                path.name,
                content,
                tenant=self._tenant,
                seconds=self._settings.document_seconds,
                memory=self._settings.document_memory_bytes,
            )
            yield from embed_and_add(self._tenant, _key(path), digest, found)
            self.report.passages += len(found)
        if _key(path) in self._known:
            self.report.changed += 1
        else:
            self.report.added += 1

    def _skip(self, path: Path, reason: str) -> None:
        self.report.skipped.append((_key(path.relative_to(self._root.parent)), reason))

    def _keep(self, path: Path, error: OSError) -> None:
        """Skip an existing file that cannot be read now. Its stored content stays."""
        if not isinstance(error, FileNotFoundError):
            self._gone.discard(_key(path))
        self._skip(path, error.strerror or type(error).__name__)


def _walk(folder: Path, skip: Callable[[Path, str], None]) -> Iterator[Path]:
    """Yield the files below a folder in sorted order, without hidden files and linked folders."""

    def failed(error: OSError) -> None:
        skip(Path(error.filename), error.strerror or type(error).__name__)

    for where, folders, names in os.walk(folder, onerror=failed):
        for name in folders:
            if (Path(where) / name).is_symlink():
                skip(Path(where) / name, "it is a link to a folder")
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(where) / name for name in sorted(names) if not name.startswith("."))


def _key(path: Path) -> str:
    """Return a path as the index stores it. Bytes that are not valid UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _real(path: Path) -> Path:
    """Resolve symbolic links. Unlike `Path.resolve`, a loop of links raises nothing."""
    return Path(os.path.realpath(path))
