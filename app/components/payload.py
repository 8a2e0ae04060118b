"""How a canvas component gets its data: one JSON head and typed arrays behind it, as raw bytes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"uint8": "u1", "uint16": "u2", "float32": "f4"}


def pack(head: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """Pack a head and arrays of uint8, uint16 or float32 into one block of bytes.

    Layout: length of the head (uint32, little endian), the head as JSON with `arrays` added (type,
    offset in the body, length), then the body with every array aligned to 4 bytes.
    """
    described, parts, at = [], [], 0
    for array in arrays:
        flat = np.ascontiguousarray(array).ravel()
        block = flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
        described.append({"type": KINDS[flat.dtype.name], "at": at, "n": len(flat)})
        block += b"\0" * (-len(block) % 4)
        parts.append(block)
        at += len(block)
    text = json.dumps(head | {"arrays": described}, allow_nan=False, separators=(",", ":")).encode()
    return len(text).to_bytes(4, "little") + text + b"".join(parts)


def script(name: str) -> str:
    """Return the JavaScript of a component, with the functions all of them share in front."""
    folder = Path(__file__).parent
    return "\n".join((folder / file).read_text("utf-8") for file in ("shared.js", f"{name}.js"))
