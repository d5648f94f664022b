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
from typing import Self

from ..errors import InvalidInput, ReleaseFailed
from ..strategies.exact import Integers
from .archive import pack, read_text, sealed, sync_directory, unpack, unsealed, write_whole

FORMAT = 1


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
        elif not self.path.is_dir():
            raise InvalidInput(
                f"the staging folder of ledger entry {self.number} is not there, so that nobody "
                "can tell whether it was measured: restore that folder, or pay for a new release."
            )
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Released by the system when the process ends, however it ends.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise InvalidInput(
                f"another process is working on ledger entry {self.number}: wait until it ends."
            ) from None
        return self

    def _make(self) -> None:
        try:
            for folder in (self.path.parent, self.path):
                folder.mkdir(mode=0o700, exist_ok=folder != self.path)
                sync_directory(folder.parent)
        except OSError as error:
            raise ReleaseFailed(
                f"the staging folder {self.path} cannot be made ({error.strerror}); ledger entry "
                f"{self.number} stands, and nothing was measured for it."
            ) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._lock)

    @property
    def file(self) -> Path:
        """The file that holds the measurement, once it is whole."""
        return self.path / "measurement.json"

    def measured(self) -> Integers | None:
        """Return what was measured for this entry, or None where nothing was kept."""
        if not self.file.exists():
            return None
        text = read_text(self.file, "measurement")
        return unpack(unsealed("measurement", FORMAT, text, str(self.file))["values"])

    def keep(self, values: Integers) -> None:
        """Keep a measurement: whole and durable, or not at all."""
        text = sealed("measurement", FORMAT, {"values": pack(values)})
        write_whole(self.file, text, mode=0o600)
