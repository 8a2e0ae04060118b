"""A line of equations cut into words, numbers and signs; anything else is refused in its place."""

import difflib
import keyword
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.equations.tree import Place

MOST_NAME = 24
MOST_DIGITS = 40
MOST_NUMBER = 1e100
Kind = Literal["number", "name", "sign", "end"]
WORDS = ("and", "or", "not", "in")
SIGNS = r"\.\.|\*\*|<=|>=|[-+*/^()=<>,']"
WORD = re.compile(
    r"(?P<space>[ \t]+)"
    r"|(?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    rf"|(?P<sign>{SIGNS})"
)
INSTEAD = {
    "\u2212": "-", "\u2013": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u00f7": "/",
    "\u00b2": "**2", "\u00b3": "**3", "\u2264": "<=", "\u2265": ">=", "\u2019": "'",
    "\u03c0": "pi", "\u00bd": "0.5", "\u221a": "sqrt(...)",
}  # fmt: skip
WHY = {
    ";": "one equation a line, without `;`",
    ":": "there is no `:` here",
    "\\": "a line ends where it ends, `\\` does not carry it on",
    ".": "names have no parts, and a number has one point",
    '"': "there is no text in an equation",
    "`": "there is no text in an equation",
    "[": "brackets are round here",
    "]": "brackets are round here",
    "{": "brackets are round here",
    "}": "brackets are round here",
    "%": "there is no remainder here",
    "!": "comparisons are < <= > >=",
    "@": "rows are solved one by one, there are no matrices",
    "|": "write abs(x), or `or` between comparisons",
    "&": "write `and` between comparisons",
}


@dataclass(frozen=True)
class Token:
    """One word, number or sign of a line."""

    kind: Kind
    text: str
    place: Place
    value: float = 0.0

    @property
    def seen(self) -> str:
        """What it is called in an error."""
        return "the end of the line" if self.kind == "end" else f"`{self.text}`"


def cut(line: str, number: int) -> list[Token]:
    """Return the tokens of a line without its comment, with one that marks the end.

    Args:
        line: text of one line.
        number: of it, counted from 1.

    Raises:
        Refused: something in it is no part of an equation.
    """
    text = line.partition("#")[0].rstrip(" \t")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = WORD.match(text, at)
        if found is None:
            raise Place(number, at + 1).refuse(strange(text[at]))
        word, place = found[0], Place(number, at + 1, len(found[0]))
        if found["number"]:
            tokens.append(Token("number", word, place, read_number(word, place)))
        elif found["name"]:
            check_name(word, place)
            tokens.append(Token("name", word, place))
        elif found["sign"]:
            tokens.append(Token("sign", "**" if word == "^" else word, place))
        at = found.end()
    tokens.append(Token("end", "", Place(number, len(text) + 1)))
    return tokens


def strange(sign: str) -> str:
    """Say what is wrong with a character that belongs to no equation."""
    if sign in WHY:
        return f"`{sign}` is not allowed: {WHY[sign]}"
    if sign in INSTEAD:
        return f"`{sign}` is not read: write `{INSTEAD[sign]}`"
    name = unicodedata.name(sign, "")
    if not name:
        return f"the character {sign!a} is not allowed"
    plain = unicodedata.normalize("NFKC", sign)
    if len(plain) == 1 and plain.isascii() and plain.isprintable() and plain != sign:
        return f"`{sign}` ({name.lower()}) is not the letter it looks like: write `{plain}`"
    greek = re.fullmatch(r"GREEK SMALL LETTER (\w+)", name)
    if greek:
        word = {"LAMDA": "lam", "FINAL": "sigma"}.get(greek[1], greek[1].lower())
        return f"`{sign}` is not read: write `{word}`"
    return f"{sign!a} ({name.lower()}) is not allowed: names are of letters a to z, digits and _"


def read_number(word: str, place: Place) -> float:
    """Return the value of a number; it never becomes a whole number of any length.

    Raises:
        Refused: it is too long or too large.
    """
    if len(word) > MOST_DIGITS:
        raise place.refuse(f"a number of {len(word)} characters: at most {MOST_DIGITS}")
    value = float(word)
    if value > MOST_NUMBER:
        raise place.refuse(f"{word} is too large: numbers go to {MOST_NUMBER:g}")
    return value


def check_name(word: str, place: Place) -> None:
    """Refuse names that are too long, that hide something, or that Python keeps to itself.

    Raises:
        Refused: the name is one of these.
    """
    if len(word) > MOST_NAME:
        raise place.refuse(f"a name of {len(word)} characters: at most {MOST_NAME}")
    if word.startswith("_") or "__" in word:
        raise place.refuse(f"`{word}` is no name: names begin with a letter and hold no `__`")
    if keyword.iskeyword(word) and word not in WORDS:
        raise place.refuse(f"`{word}` is a word of Python and no name" + instead(word))


def instead(word: str) -> str:
    """Return what may have been meant by a word of Python."""
    if word == "lambda":
        return ": write `lam`, it is shown as the Greek letter"
    return ": write where(x > 0, a, b)" if word in ("if", "else") else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` if there is a name close by, else nothing."""
    names = list(known)
    same = [name for name in names if name.lower() == word.lower()]
    found = same or difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"; did you mean `{found[0]}`?" if found else ""
