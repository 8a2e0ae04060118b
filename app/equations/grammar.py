"""Expressions read from tokens, by precedence: or, and, not, < <= > >=, + -, * /, sign, power."""

from app.equations.tokens import Token, nearest
from app.equations.tree import (
    CONSTANTS,
    FUNCTIONS,
    Expression,
    Name,
    Number,
    Place,
    apply,
)

MOST_DEPTH = 40  # brackets, signs and powers inside each other
MOST_NODES = 400  # in one line


class Reader:
    """Reads one line's tokens from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = self.nodes = 0

    @property
    def next(self) -> Token:
        """The token that is read next; the last one marks the end."""
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def take(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these words or signs."""
        token = self.next
        if token.kind in ("sign", "name") and token.text in texts:
            self.at += 1
            return token
        return None

    def need(self, text: str, why: str) -> Token:
        """Take a sign that must stand here.

        Raises:
            Refused: something else does.
        """
        token = self.take(text)
        if token is None:
            more = self.multiplied() if text == ")" else ""
            raise self.next.place.refuse(
                f"{self.next.seen} is not expected: {more}"
                if more
                else f"{self.next.seen} where {why}"
            )
        return token

    def multiplied(self) -> str:
        """Return what to write where two factors stand side by side; empty where they do not."""
        token = self.next
        before = self.tokens[self.at - 1] if self.at else token
        follows = token.kind in ("name", "number") or token.text == "("
        ends = before.kind in ("name", "number") or before.text == ")"
        if not (follows and ends):
            return ""
        left = "..." if before.text == ")" else before.text
        return f"to multiply write {left} * {token.text}"

    def expression(self) -> Expression:
        """Read an expression as far as it goes.

        Raises:
            Refused: it is none, or nested too deeply.
        """
        left = self.conjunction()
        while sign := self.take("or"):
            left = self.count(apply("or", (left, self.conjunction()), sign.place))
        return left

    def conjunction(self) -> Expression:
        """Read what `and` joins."""
        left = self.negation()
        while sign := self.take("and"):
            left = self.count(apply("and", (left, self.negation()), sign.place))
        return left

    def negation(self) -> Expression:
        """Read a comparison, perhaps after `not`."""
        if sign := self.take("not"):
            with_depth = self.deeper(sign.place)
            part = self.negation()
            self.depth -= with_depth
            return self.count(apply("not", (part,), sign.place))
        return self.comparison()

    def comparison(self) -> Expression:
        """Read a sum, or two compared."""
        left = self.sum()
        if sign := self.take("<", "<=", ">", ">="):
            left = self.count(apply(sign.text, (left, self.sum()), sign.place))
            if self.next.text in ("<", "<=", ">", ">=") and self.next.kind == "sign":
                raise self.next.place.refuse(
                    "a second comparison: join two by `and`, as in x > 0 and x < 1"
                )
        return left

    def sum(self) -> Expression:
        """Read products that are added."""
        left = self.product()
        while sign := self.take("+", "-"):
            left = self.count(apply(sign.text, (left, self.product()), sign.place))
        return left

    def product(self) -> Expression:
        """Read factors that are multiplied or divided."""
        left = self.signed()
        while sign := self.take("*", "/"):
            left = self.count(apply(sign.text, (left, self.signed()), sign.place))
        return left

    def signed(self) -> Expression:
        """Read a power, perhaps after a sign; -x**2 is -(x**2)."""
        if sign := self.take("-", "+"):
            more = self.deeper(sign.place)
            part = self.signed()
            self.depth -= more
            return part if sign.text == "+" else self.count(apply("neg", (part,), sign.place))
        return self.power()

    def power(self) -> Expression:
        """Read an atom, perhaps to a power; a**b**c is a**(b**c)."""
        base = self.atom()
        if sign := self.take("**"):
            more = self.deeper(sign.place)
            exponent = self.signed()
            self.depth -= more
            return self.count(apply("**", (base, exponent), sign.place))
        return base

    def atom(self) -> Expression:
        """Read a number, a name, a call or a bracket."""
        token = self.next
        if token.kind == "number":
            self.at += 1
            return self.count(Number(token.value, token.place))
        if token.kind == "name" and token.text not in ("and", "or", "not", "in"):
            self.at += 1
            if self.next.kind == "sign" and self.next.text == "(":
                return self.call(token)
            if token.text in FUNCTIONS:
                raise token.place.refuse(f"`{token.text}` is a function: write {token.text}(...)")
            if token.text in CONSTANTS:
                return self.count(Number(CONSTANTS[token.text], token.place, token.text))
            return self.count(Name(token.text, token.place))
        if self.take("("):
            more = self.deeper(token.place)
            inner = self.expression()
            self.depth -= more
            self.need(")", "a bracket `)` is missing")
            return inner
        raise token.place.refuse(
            f"{token.seen} where a number, a name or a bracket `(` is expected"
        )

    def call(self, name: Token) -> Expression:
        """Read what stands in the brackets of a function."""
        if name.text not in FUNCTIONS:
            found = nearest(name.text, FUNCTIONS) + f"; to multiply write {name.text} * (...)"
            raise name.place.refuse(f"there is no function `{name.text}`{found}")
        more = self.deeper(name.place)
        self.need("(", "a bracket `(` is missing")
        parts = [self.expression()]
        while self.take(","):
            parts.append(self.expression())
        self.need(")", f"the bracket `)` of {name.text}( is missing")
        self.depth -= more
        return self.count(apply(name.text, tuple(parts), name.place))

    def deeper(self, place: Place) -> int:
        """Count one level more; returns 1, to be taken back.

        Raises:
            Refused: it is one too many.
        """
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise place.refuse(f"nested more than {MOST_DEPTH} deep")
        return 1

    def count(self, tree: Expression) -> Expression:
        """Count a node.

        Raises:
            Refused: the line has too many.
        """
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise tree.place.refuse(f"an expression of more than {MOST_NODES} parts")
        return tree

    def end(self) -> None:
        """Make sure that nothing is left.

        Raises:
            Refused: something is.
        """
        token = self.next
        if token.kind == "end":
            return
        other = {"=": "a line has one `=`", ")": "no bracket is open"}.get(
            token.text, "an operator such as + - * / ** or the end of the line is expected"
        )
        hint = self.multiplied() or other
        raise token.place.refuse(f"{token.seen} is not expected: {hint}")
