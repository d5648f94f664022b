"""Files that know when they were altered: canonical JSON, arrays packed inside, a digest on top.

The digest finds accidents and careless edits. It is no signature: whoever can write the file
can write a digest too, so nothing that guards privacy is believed from a file. Costs are
computed anew from the integers that it holds.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import secrets
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInput

# Exactly these types are unpacked: nothing in a file can name code.
_TYPES = {"float64": "<f8", "int64": "<i8"}


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array of float64, int64 or Python integers as plain JSON values, exactly."""
    if array.dtype == object:
        return {
            "type": "integers",
            "shape": list(array.shape),
            "data": [str(v) for v in array.flat],
        }
    name = array.dtype.name
    raw = np.ascontiguousarray(array).astype(_TYPES[name]).tobytes()
    data = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
    return {"type": name, "shape": list(array.shape), "data": data}


def unpack(packed: Any) -> NDArray[Any]:
    """Return the array that ``pack`` packed; refuse anything else."""
    try:
        shape = tuple(int(n) for n in packed["shape"])
        if packed["type"] == "integers":
            flat = np.array([int(v) for v in packed["data"]], dtype=object)
        else:
            raw = zlib.decompress(base64.b64decode(packed["data"], validate=True))
            flat = np.frombuffer(raw, dtype=_TYPES[packed["type"]])
        return flat.astype(flat.dtype.newbyteorder("=")).reshape(shape)
    except (KeyError, TypeError, ValueError, OverflowError, binascii.Error, zlib.error):
        raise InvalidInput("a packed array is damaged; restore the file from a copy.") from None


def uncompressed(content: Any) -> Any:
    """Return what ``pack`` packed without its compression, which differs between machines."""
    if isinstance(content, list):
        return [uncompressed(part) for part in content]
    if not isinstance(content, dict):
        return content
    if content.keys() == {"type", "shape", "data"} and isinstance(content["data"], str):
        raw = zlib.decompress(base64.b64decode(content["data"]))
        return {**content, "data": hashlib.sha256(raw).hexdigest()}
    return {key: uncompressed(part) for key, part in content.items()}


def canonical(content: Any) -> str:
    """Return the one text of plain JSON values: sorted keys, no spaces, no NaN."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: Any) -> str:
    """Return the SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def raw(values: NDArray[np.int64]) -> memoryview:
    """Return integers as bytes, eight each, the lowest first: without a copy where that is."""
    return np.ascontiguousarray(values, dtype="<i8").data.cast("B")


def digest_of(values: NDArray[np.int64]) -> str:
    """Return the SHA-256 of an array of integers, in hexadecimal: of their bytes."""
    return hashlib.sha256(raw(values)).hexdigest()


def sealed(kind: str, version: int, content: dict[str, Any]) -> str:
    """Return the text of a file: its kind and format version, the content, and their digest."""
    body = {"noiseshape": kind, "format": version, "content": content}
    return json.dumps({**body, "sha256": digest(body)}, indent=1, sort_keys=True) + "\n"


def unsealed(kind: str, version: int, text: str, where: str) -> dict[str, Any]:
    """Return the content of a sealed text, or refuse what is altered, unknown or newer."""
    try:
        body = json.loads(text, parse_constant=_refuse)
        stated = body.pop("sha256")
        found, format_, content = body["noiseshape"], body["format"], body["content"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidInput(
            f"{where} is not a Noiseshape {kind} file, or is cut short: restore it from a copy."
        ) from None
    if found != kind:
        raise InvalidInput(f"{where} is a Noiseshape {found} file, and a {kind} file is needed.")
    if format_ != version:
        raise InvalidInput(
            f"{where} has format {format_}, and this version reads format {version}: "
            "use the version of Noiseshape that wrote it."
        )
    try:
        whole = digest(body) == stated and isinstance(content, dict)
    except ValueError:  # a number that no double holds, such as 1e999
        whole = False
    if not whole:
        raise InvalidInput(
            f"{where} was altered since it was written: restore it from a copy, or make it anew."
        )
    return content


def kind_of(text: str) -> str:
    """Return the kind that a sealed text says it is, and nothing where it says none."""
    try:
        return str(json.loads(text)["noiseshape"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def read_text(path: str | os.PathLike[str], kind: str) -> str:
    """Return the text of a file, or say in one sentence why it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"there is no {kind} file at {os.fspath(path)}.") from None
    except (OSError, ValueError):  # no text, or no name of a file
        raise InvalidInput(f"the {kind} file at {os.fspath(path)} cannot be read.") from None


def write_whole(
    path: str | os.PathLike[str], content: str | memoryview, *, mode: int = 0o644
) -> None:
    """Write text or bytes so that the file is whole under its name, or not there at all."""
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
