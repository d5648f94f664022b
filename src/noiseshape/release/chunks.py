"""A measurement that is too large for memory: integers in chunks, each kept once.

A chunk is written beside its place and linked into it: whoever comes second, a task that was
started again or one that runs twice, finds the first one's draw there, and its own is gone
without anybody having seen it.

    chunk-000000.y    one line that says whose it is and its digest, then eight bytes an integer
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..archive import canonical, digest, pack, raw, sync, unpack
from ..errors import InvalidInput
from ..strategies.exact import Integers


@dataclass(frozen=True, eq=False)
class Chunks:
    """The integers of one measurement, in files.

    Attributes
    ----------
    path
        A private folder.
    entry
        Hash of the ledger entry that paid; "" where none did.
    length, size
        Integers in each chunk but the last, and in all.
    """

    path: Path
    entry: str
    length: int
    size: int

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return -(-self.size // self.length)

    def file(self, number: int) -> Path:
        """Return where a chunk is kept."""
        return self.path / f"chunk-{number:06d}.y"

    def missing(self) -> list[int]:
        """Return the numbers of the chunks that were not kept yet."""
        return [number for number in range(self.count) if not self.file(number).exists()]

    def keep(self, number: int, values: Integers) -> None:
        """Keep a chunk, whole and (where it was paid for) durable; one that is kept already stays.

        Formal Guarantees:
          Of all the draws that any processes make for a chunk, one is ever kept, and read.
        """
        wide = values.dtype == object
        data = canonical(pack(values)).encode() if wide else bytes(raw(values))
        head = self._head(number) | {"type": "integers" if wide else "int64"}
        line = canonical(head | {"sha256": hashlib.sha256(data).hexdigest()}).encode() + b"\n"
        partial = self.path / f".{self.file(number).name}.{secrets.token_hex(8)}.partial"
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(line)
                file.write(data)
                file.flush()
                if self.entry:
                    os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(partial, self.file(number))  # never over what is there
        finally:
            partial.unlink(missing_ok=True)
        if self.entry:
            sync(self.path)

    def read(self, number: int) -> Integers:
        """Return what was measured, or refuse a chunk that was altered."""
        head, data = self._parts(number)
        if hashlib.sha256(data).hexdigest() != head.get("sha256"):
            raise self._altered(number)
        if head.get("type") == "integers":
            return unpack(json.loads(data))
        return np.frombuffer(data, dtype="<i8").astype(np.int64, copy=False)

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digest of each chunk, as its file tells it."""
        return tuple(self._parts(number, data=False)[0]["sha256"] for number in range(self.count))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what was measured."""
        return digest(list(self.digests))

    def _head(self, number: int) -> dict[str, Any]:
        return {"entry": self.entry, "chunk": number}

    def _parts(self, number: int, *, data: bool = True) -> tuple[dict[str, Any], bytes]:
        try:
            with self.file(number).open("rb") as file:
                head = json.loads(file.readline(1 << 10))
                rest = file.read() if data else b""
        except (OSError, ValueError):
            raise self._altered(number) from None
        if not isinstance(head, dict) or head | self._head(number) != head or "sha256" not in head:
            raise self._altered(number)
        return head, rest

    def _altered(self, number: int) -> InvalidInput:
        return InvalidInput(
            f"{self.file(number)} was altered since it was written, or is gone: restore it from a "
            "copy, or pay for a new release."
        )


def temporary(length: int, size: int) -> Chunks:
    """Return chunks in a private folder that goes with them: for a release without a ledger."""
    folder = tempfile.mkdtemp(prefix="noiseshape-")  # mode 0700
    made = Chunks(Path(folder), "", length, size)
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made
