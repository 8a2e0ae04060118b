"""Derivatives of scalar expressions, forward: what a field's Jacobian is in a kernel."""

import math
from collections.abc import Callable, Sequence

from solver.compiled.expression import BOOL, FLOATS, I64, Graph, Node, reachable
from solver.compiled.symbolic import Untraceable

FLAT = frozenset({"floor", "ceil", "trunc", "rint", "sign"})  # derivative 0 wherever there is one


class Scalars:
    """Arithmetic on nodes in which 0, given as None, costs nothing."""

    def __init__(self, graph: Graph, kind: str):
        """Compute in `kind`."""
        self.graph, self.kind = graph, kind
        self.one = self.number(1.0)

    def number(self, value: float) -> Node:
        """Return a number written into the code."""
        return self.graph.node("literal", (float(value).hex(), "f"), self.kind)

    def call(self, name: str, *args: Node) -> Node:
        """Apply an operation or a function."""
        return self.graph.node(name, args, self.kind)

    def add(self, a: Node | None, b: Node | None) -> Node | None:
        """Return `a + b`."""
        if a is None or b is None:
            return b if a is None else a
        return self.call("add", a, b)

    def sub(self, a: Node | None, b: Node | None) -> Node | None:
        """Return `a - b`."""
        if a is None or b is None:
            return self.neg(b) if a is None else a
        return self.call("sub", a, b)

    def neg(self, a: Node | None) -> Node | None:
        """Return `-a`."""
        return None if a is None else self.call("neg", a)

    def mul(self, a: Node | None, b: Node | None) -> Node | None:
        """Return `a b`."""
        if a is None or b is None:
            return None
        if a is self.one or b is self.one:
            return b if a is self.one else a
        return self.call("mul", a, b)

    def div(self, a: Node | None, b: Node) -> Node | None:
        """Return `a / b`."""
        return None if a is None else self.call("div", a, b)

    def pick(self, mask: Node, a: Node | None, b: Node | None) -> Node | None:
        """Return `a` where the mask holds, else `b`."""
        if a is b:
            return a
        zero = self.number(0.0)
        return self.call("where", mask, zero if a is None else a, zero if b is None else b)


def tangents(graph: Graph, results: Sequence[Node], by: Sequence[Node]) -> list[list[Node | None]]:
    """Return the derivatives of `results` by the nodes `by`, `[result][by]`; None where it is 0.

    Raises:
        Untraceable: something has no derivative that could be written down.
    """
    places = {node.number: place for place, node in enumerate(by)}
    known: dict[int, dict[int, Node]] = {}
    for node in reachable(results):
        if node.number in places:
            known[node.number] = {places[node.number]: Scalars(graph, node.kind).one}
            continue
        operands = [arg for arg in node.args if isinstance(arg, Node)]
        found = sorted(set().union(*(known[arg.number] for arg in operands)))
        known[node.number] = {}
        if node.kind in (BOOL, I64) or node.op in FLAT:
            continue
        for place in found:
            given = [known[arg.number].get(place) for arg in operands]
            tangent = _tangent(graph, node, given)
            if tangent is not None:
                known[node.number][place] = tangent
    return [[known[node.number].get(place) for place in range(len(by))] for node in results]


def _tangent(graph: Graph, node: Node, given: Sequence[Node | None]) -> Node | None:
    """Return the derivative of one node, given those of its operands."""
    s, args = Scalars(graph, node.kind), [arg for arg in node.args if isinstance(arg, Node)]
    if (rule := CHAINED.get(node.op)) is not None:
        return s.mul(rule(s, args[0], node), given[0])
    if (several := RULES.get(node.op)) is not None:
        return several(s, node, args, given)
    if node.op == "product":  # a matrix that all rows share
        zero = s.number(0.0)
        slot, inner, outer = node.args[:3]
        inputs = [zero if each is None else each for each in given]
        return graph.node("product", (slot, inner, outer, *inputs), node.kind)
    if node.op == "element":
        return None if given[0] is None else graph.node("element", (given[0], node.args[1]), s.kind)
    if node.op == "cast":
        if given[0] is None or given[0].kind not in FLOATS:
            return None
        return graph.cast(given[0], node.kind)
    raise Untraceable(f"its Jacobian needs the derivative of {node.op!r}")


Rule = Callable[[Scalars, Node, list[Node], Sequence[Node | None]], Node | None]


def _product_rule(s: Scalars, node: Node, x: list[Node], d: Sequence[Node | None]) -> Node | None:
    return s.add(s.mul(d[0], x[1]), s.mul(x[0], d[1]))


def _quotient_rule(s: Scalars, node: Node, x: list[Node], d: Sequence[Node | None]) -> Node | None:
    return s.div(s.sub(d[0], s.mul(node, d[1])), x[1])


def _picked(s: Scalars, node: Node, x: list[Node], d: Sequence[Node | None]) -> Node | None:
    return s.pick(x[0], d[1], d[2])


def _extreme(name: str) -> Rule:
    def rule(s: Scalars, node: Node, x: list[Node], d: Sequence[Node | None]) -> Node | None:
        first = s.graph.node(name, (x[0], x[1]), BOOL)
        # At a tie, which a step seldom meets, autograd takes half of each.
        tie = s.graph.node("eq", (x[0], x[1]), BOOL)
        half = s.mul(s.number(0.5), s.add(d[0], d[1]))
        return s.pick(tie, half, s.pick(first, d[0], d[1]))

    return rule


def _power(s: Scalars, node: Node, x: list[Node], d: Sequence[Node | None]) -> Node | None:
    base, exponent = x
    smaller = s.call("pow", base, s.call("sub", exponent, s.one))
    none = s.graph.node("eq", (exponent, s.number(0.0)), BOOL)
    by_base = s.pick(none, None, s.call("mul", exponent, smaller))
    total = s.mul(by_base, d[0])
    if d[1] is not None:
        zero = s.graph.node("eq", (base, s.number(0.0)), BOOL)
        by_exponent = s.pick(zero, None, s.call("mul", node, s.call("log", base)))
        total = s.add(total, s.mul(by_exponent, d[1]))
    return total


def _angle(s: Scalars, node: Node, x: list[Node], d: Sequence[Node | None]) -> Node | None:
    square = s.call("add", s.call("mul", x[0], x[0]), s.call("mul", x[1], x[1]))
    return s.div(s.sub(s.mul(x[1], d[0]), s.mul(x[0], d[1])), square)


RULES: dict[str, Rule] = {
    "add": lambda s, node, x, d: s.add(d[0], d[1]),
    "sub": lambda s, node, x, d: s.sub(d[0], d[1]),
    "neg": lambda s, node, x, d: s.neg(d[0]),
    "mul": _product_rule,
    "div": _quotient_rule,
    "where": _picked,
    "min": _extreme("lt"),
    "max": _extreme("gt"),
    "pow": _power,
    "atan2": _angle,
}


def _inverse(s: Scalars, x: Node) -> Node:
    return s.call("div", s.one, x)


def _below(s: Scalars, sign: str, x: Node, other: Node) -> Node:
    """Return `1 / sqrt(x sign other)`."""
    return _inverse(s, s.call("sqrt", s.call(sign, x, other)))


def _squared(s: Scalars, x: Node) -> Node:
    return s.call("mul", x, x)


def _bell(s: Scalars, x: Node, sign: float) -> Node:
    bell = s.call("exp", s.call("neg", _squared(s, x)))
    return s.call("mul", s.number(sign * 2 / math.sqrt(math.pi)), bell)


# Derivatives of functions of one number `x`, whose value is `f`.
CHAINED: dict[str, Callable[[Scalars, Node, Node], Node]] = {
    "abs": lambda s, x, f: s.call("sign", x),
    "exp": lambda s, x, f: f,
    "exp2": lambda s, x, f: s.call("mul", s.number(math.log(2)), f),
    "expm1": lambda s, x, f: s.call("add", f, s.one),
    "log": lambda s, x, f: _inverse(s, x),
    "log2": lambda s, x, f: _inverse(s, s.call("mul", s.number(math.log(2)), x)),
    "log10": lambda s, x, f: _inverse(s, s.call("mul", s.number(math.log(10)), x)),
    "log1p": lambda s, x, f: _inverse(s, s.call("add", x, s.one)),
    "sin": lambda s, x, f: s.call("cos", x),
    "cos": lambda s, x, f: s.call("neg", s.call("sin", x)),
    "tan": lambda s, x, f: s.call("add", s.one, _squared(s, f)),
    "asin": lambda s, x, f: _below(s, "sub", s.one, _squared(s, x)),
    "acos": lambda s, x, f: s.call("neg", _below(s, "sub", s.one, _squared(s, x))),
    "atan": lambda s, x, f: _inverse(s, s.call("add", s.one, _squared(s, x))),
    "sinh": lambda s, x, f: s.call("cosh", x),
    "cosh": lambda s, x, f: s.call("sinh", x),
    "tanh": lambda s, x, f: s.call("sub", s.one, _squared(s, f)),
    "asinh": lambda s, x, f: _below(s, "add", _squared(s, x), s.one),
    "acosh": lambda s, x, f: _below(s, "sub", _squared(s, x), s.one),
    "atanh": lambda s, x, f: _inverse(s, s.call("sub", s.one, _squared(s, x))),
    "erf": lambda s, x, f: _bell(s, x, 1.0),
    "erfc": lambda s, x, f: _bell(s, x, -1.0),
    "sqrt": lambda s, x, f: s.call("div", s.number(0.5), f),
}
