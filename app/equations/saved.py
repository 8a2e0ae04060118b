"""Equations kept as problems: one text file each, in a folder beside the runs."""

import os
import re
import secrets
from pathlib import Path

from app.equations.system import MOST_TEXT, read
from app.equations.tree import Refused

FOLDER = ".problems"  # no id of a run begins with a point
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
MOST = 200  # kept at once


def name_of(title: str) -> str:
    """Return the name a title gives: small letters, digits and `-`; empty if nothing is left."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")


def saved(root: Path) -> dict[str, str]:
    """Return the texts kept in a runs folder by name; files that cannot be read are left out."""
    found: dict[str, str] = {}
    try:
        entries = sorted(os.scandir(root / FOLDER), key=lambda entry: entry.name)
    except OSError:
        return found
    for entry in entries[:MOST]:
        name, ending = os.path.splitext(entry.name)
        if ending != ".txt" or not NAME.fullmatch(name):
            continue
        try:
            if not entry.is_file(follow_symlinks=False) or entry.stat().st_size > 4 * MOST_TEXT:
                continue
            text = Path(entry.path).read_text("utf-8")
            read(text)
        except (OSError, ValueError):  # gone, no text, or no equations
            continue
        found[name] = text
    return found


def save(root: Path, title: str, text: str) -> str:
    """Keep equations under a title, in the place of those of the same name; returns the name.

    Raises:
        Refused: the text is no system of equations.
        ValueError: the title has no letter or digit, or there are too many already.
        OSError: the folder cannot be written.
    """
    name = name_of(title)
    if not name:
        raise ValueError(f"title {title!r}: must have a letter or digit")
    read(text)
    text = titled(text, title)
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if len(os.listdir(folder)) >= MOST and not (folder / f"{name}.txt").exists():
        raise ValueError(f"{MOST} problems are kept already: delete some first")
    part = folder / f".{secrets.token_hex(4)}.part"
    part.write_text(text, "utf-8")
    part.replace(folder / f"{name}.txt")
    return name


def titled(text: str, title: str) -> str:
    """Return a text whose title, its first comment, is this one."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in title).split()).strip("# ")
    try:
        if read(text).title == clean:
            return text
    except Refused:
        pass
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].strip().startswith("#"):
        del lines[: first + 1]
    return "\n".join([f"# {clean[:80]}", *lines])


def delete(root: Path, name: str) -> bool:
    """Delete what is kept under a name; whether there was anything."""
    if not NAME.fullmatch(name):
        return False
    try:
        (root / FOLDER / f"{name}.txt").unlink()
    except OSError:
        return False
    return True
