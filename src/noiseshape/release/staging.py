"""The private folder where a measurement waits until it is whole.

One folder for each ledger entry, beside the ledger, mode 0700, made right after the debit. What
was measured for an entry is measured once: whoever continues an interrupted run finds it here,
and draws nothing anew. Where the folder is gone nobody can tell whether its measurement was
shown to somebody, so that the entry pays for nothing any more.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..archive import (
    digest_of,
    pack,
    raw,
    read_text,
    sealed,
    sync,
    unpack,
    unsealed,
    write_whole,
)
from ..errors import InvalidInput, ReleaseFailed
from ..strategies.exact import Integers
from .chunks import Chunks

FORMAT = 1

# More integers than this, if they fit in 64 bits, lie in a file of their own, 8 bytes each: in
# JSON a hundred million of them would be two gigabytes of text.
LISTED = 1 << 16


def usable(root: Path) -> None:
    """Refuse, while nothing is spent, a folder of runs that cannot be made or written in."""
    there = os.path.lexists(root)
    folder = root if there else root.parent
    try:
        if there and root.is_dir():
            root.chmod(0o700)  # as it will be, and only its owner may
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError
    except OSError:
        raise InvalidInput(
            f"the private folder {root} cannot be made or written in: see to what is there, which "
            "must be a folder of your own. Nothing was spent."
        ) from None


def plan_of(folder: Path) -> Path:
    """Return the file of the plan in the folder of a ledger entry."""
    return folder / "plan.json"


def stopped(folder: Path) -> bool:
    """Return whether a run was stopped before its measurement was kept; one under way was not."""
    if (folder / "measurement.json").exists() or (folder / "kept").exists():
        return False
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except OSError:  # no folder, or one that was made this moment
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


class Staging:
    """The folder of one ledger entry, held by one process at a time.

    Parameters
    ----------
    root
        Folder of all runs of a ledger; made private if it is not there.
    number, hash
        The entry that paid for the measurement.
    resume
        Continue in a folder that is there, instead of making it.
    """

    def __init__(self, root: Path, number: int, hash: str, *, resume: bool) -> None:
        self.number, self.path, self.resume = number, root / hash, resume
        self._lock = -1

    def __enter__(self) -> Self:
        if not self.resume:
            self._make()
        try:
            self._hold()
        except OSError as error:
            raise self._unusable(error) from None
        return self

    def _make(self) -> None:
        try:
            for folder in (self.path.parent, self.path):
                folder.mkdir(mode=0o700, exist_ok=folder != self.path)
                folder.chmod(0o700)
                sync(folder.parent)
        except OSError as error:
            raise ReleaseFailed(
                f"the staging folder {self.path} cannot be made ({error.strerror}); ledger entry "
                f"{self.number} stands, and nothing was measured for it."
            ) from None

    def _hold(self) -> None:
        if not self.path.is_dir():
            raise InvalidInput(
                f"the staging folder of ledger entry {self.number} is not there, so that nobody "
                "can tell whether it was measured: restore that folder, or pay for a new release."
            )
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Released by the system when the process ends, however it ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Measured by a process that was killed before it could keep it: nobody was shown it.
            for partial in self.path.glob(".*.partial"):
                partial.unlink()
            if not self.file.exists() and not self.mark.exists():
                self.array.unlink(missing_ok=True)
        except BlockingIOError:
            os.close(lock)
            raise InvalidInput(
                f"another process is working on ledger entry {self.number}: wait until it ends."
            ) from None
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock

    def _unusable(self, error: OSError) -> ReleaseFailed:
        return ReleaseFailed(
            f"the staging folder {self.path} cannot be used ({error.strerror}); ledger entry "
            f"{self.number} stands: see to that folder, and resume={self.number} continues it, "
            "without a new debit."
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._lock)

    def describe(self, plan: str) -> None:
        """Keep the plan that was paid for: designed anew elsewhere, its last digits may differ."""
        if not self.plan.exists():
            write_whole(self.plan, plan, mode=0o600)

    @property
    def plan(self) -> Path:
        """The file of the plan that was paid for."""
        return plan_of(self.path)

    @property
    def file(self) -> Path:
        """The file that holds the measurement, once it is whole."""
        return self.path / "measurement.json"

    @property
    def array(self) -> Path:
        """The file of many integers, which ``file`` then names with its digest."""
        return self.path / "measurement.int64"

    @property
    def mark(self) -> Path:
        """An empty file that says that a measurement was kept, should it be gone."""
        return self.path / "kept"

    def chunks(self) -> Path:
        """Return the folder of a measurement that is kept in chunks, made if it is not there."""
        folder = self.path / "chunks"
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)
            sync(self.path)
        for partial in folder.glob(".*.partial"):  # as in _hold: nobody was shown it
            partial.unlink(missing_ok=True)
        return folder

    def same(self, known: list[Any]) -> None:
        """Refuse to continue on other files than the run began with: chunks are told by order."""
        file = self.path / "files.json"
        if file.exists():
            text = read_text(file, "staging")
            if unsealed("files", FORMAT, text, str(file)).get("files") != known:
                raise InvalidInput(
                    f"the files are not those, or not as they were, that ledger entry "
                    f"{self.number} was begun with, and some rows would be measured twice: put "
                    "them back, or pay for a new release."
                )
        else:
            try:
                write_whole(file, sealed("files", FORMAT, {"files": known}), mode=0o600)
            except OSError as error:
                raise self._unusable(error) from None

    def measured(self) -> Any:
        """Return what was measured for this entry, integers or chunks; None where nothing was."""
        if not self.file.exists():
            if self.mark.exists():
                raise InvalidInput(
                    f"what was measured for ledger entry {self.number} is gone from its staging "
                    "folder: restore it, or pay for a new release."
                )
            return None
        text = read_text(self.file, "measurement")
        content = unsealed("measurement", FORMAT, text, str(self.file))
        if content.get("entry") != self.path.name:
            raise InvalidInput(f"{self.file} belongs to another ledger entry: restore its own.")
        if "chunks" in content:
            values: Any = Chunks(self.chunks(), self.path.name, *content["chunks"])
            self._whole(values, content["values"]["data"])
        else:
            values = self._array(content) if "array" in content else unpack(content.get("values"))
        if not self.mark.exists():  # killed between the two; from now on it will be shown
            try:
                write_whole(self.mark, "", mode=0o600)
            except OSError as error:
                raise self._unusable(error) from None
        return values

    def _whole(self, chunks: Chunks, digests: list[str]) -> None:
        """Refuse chunks of which one was exchanged, or is gone."""
        if list(chunks.digests) != digests:
            raise InvalidInput(
                f"the chunks in {chunks.path} are not those that were kept: restore them from a "
                "copy, or pay for a new release."
            )

    def _array(self, content: dict[str, Any]) -> Integers:
        """Return the integers beside the sealed file, which tells their digest."""
        try:
            values = np.fromfile(self.array, dtype="<i8").astype(np.int64, copy=False)
        except OSError:
            values = np.zeros(0, dtype=np.int64)
        if digest_of(values) != content["array"]:
            raise InvalidInput(
                f"{self.array} was altered since it was written, or is gone: restore it from a "
                "copy, or pay for a new release."
            )
        return values

    def keep(self, values: Integers | Chunks) -> None:
        """Keep a measurement: whole and durable, or not at all."""
        content: dict[str, Any] = {"entry": self.path.name}
        if isinstance(values, Chunks):  # each of them is kept already
            content["chunks"] = [values.length, values.size]
            content["values"] = {"data": list(values.digests)}
        elif values.size > LISTED and values.dtype == np.int64:
            write_whole(self.array, raw(values), mode=0o600)
            content["array"] = digest_of(values)
        else:
            content["values"] = pack(values)
        write_whole(self.file, sealed("measurement", FORMAT, content), mode=0o600)
        write_whole(self.mark, "", mode=0o600)
