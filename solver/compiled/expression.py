"""Scalar expressions: what one row of a batch computes, as a graph that shares equal parts."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

F32, F64, I64, BOOL = "float", "double", "int64_t", "bool"
I8 = "int8_t"  # of columns whose numbers are small
FLOATS = (F32, F64)


@dataclass(eq=False, slots=True)
class Node:
    """One scalar: an operation on other scalars, a literal, or something to load.

    Attributes:
        op: name of the operation, "literal", or "load".
        args: operands; for a literal its value, for a load the expression that reads it.
        kind: C++ type.
        number: order of creation, operands before results.
    """

    op: str
    args: tuple
    kind: str
    number: int


@dataclass
class Graph:
    """All nodes of one trace; equal ones are made once."""

    nodes: list[Node] = field(default_factory=list)
    _known: dict = field(default_factory=dict)
    pool: list[float] | None = None  # where literals go that are handed over at run time
    reused: list[tuple[int, float]] | None = None  # those of earlier evaluations of a field
    place: int = 0  # how many of these have been met in this evaluation

    def node(self, op: str, args: tuple, kind: str) -> Node:
        """Return the node, made if it is new."""
        key = (op, kind, *(id(a) if isinstance(a, Node) else a for a in args))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Node(op, args, kind, len(self.nodes))
            self.nodes.append(found)
        return found

    def guard(self, mask: Node, new: Node, old: Node, region: str) -> Node:
        """Return `new` where the mask holds, else `old`; see `Trace.guarded`."""
        return new if new is old else self.node("guard", (mask, new, old, region), new.kind)

    def load(self, text: str, kind: str) -> Node:
        """Return what the C++ expression `text` reads."""
        return self.node("load", (text,), kind)

    def literal(self, value: float, kind: str) -> Node:
        """Return a number written into the code, or kept in the pool if there is one."""
        if kind == BOOL:
            return self.node("literal", (bool(value), "b"), kind)
        if kind == I64:
            return self.node("literal", (int(value), "i"), kind)
        value = float(value)
        if self.pool is not None and math.isfinite(value):
            text = f"K[{self._pooled(value)}]"
            return self.load(text if kind == F64 else f"(float){text}", kind)
        # -0.0 == 0.0 and NaN != NaN as keys, so their texts are the keys
        return self.node("literal", (value.hex(), "f"), kind)

    def _pooled(self, value: float) -> int:
        """Return the place of a number in the pool; the same for each evaluation of a field."""
        assert self.pool is not None
        if self.reused is not None:
            place, self.place = self.place, self.place + 1
            if place < len(self.reused) and self.reused[place][1] == value:
                return self.reused[place][0]
            if place >= len(self.reused):
                self.reused.append((len(self.pool), value))
        self.pool.append(value)
        return len(self.pool) - 1

    def cast(self, x: Node, kind: str) -> Node:
        """Return `x` in another type."""
        if x.kind == kind:
            return x
        if x.op == "literal" and kind in FLOATS:
            value = x.args[0]
            return self.node(
                "literal",
                (value if isinstance(value, str) else float(value).hex(), "f"),
                kind,
            )
        if kind == BOOL:
            return self.node("ne", (x, self.node("literal", _zero(x.kind), x.kind)), BOOL)
        return self.node("cast", (x,), kind)


def _zero(kind: str) -> tuple:
    return {F32: ((0.0).hex(), "f"), F64: ((0.0).hex(), "f"), I64: (0, "i")}[kind]


def reachable(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that `roots` need, operands before results."""
    needed: dict[int, Node] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node.number not in needed:
            needed[node.number] = node
            waiting.extend(arg for arg in node.args if isinstance(arg, Node))
    return [needed[number] for number in sorted(needed)]


# How operations read in C++ on vectors, one element a row. `{V}` is the vector type of the result,
# `{A}` that of the operands; masks are vectors of integers, all bits set for true.
TEMPLATES: dict[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "lt": "mask({0} < {1})",
    "le": "mask({0} <= {1})",
    "gt": "mask({0} > {1})",
    "ge": "mask({0} >= {1})",
    "eq": "mask({0} == {1})",
    "ne": "mask({0} != {1})",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "~{0}",
    "where": "pick({0}, {1}, {2})",
    # NaN wins, as in torch
    "min": "(({0} < {1}) | ({0} != {0})) ? {0} : {1}",
    "max": "(({0} > {1}) | ({0} != {0})) ? {0} : {1}",
    "isfinite": "mask(({0} - {0}) == 0)",
    "isnan": "mask({0} != {0})",
    "abs": "magnitude({0})",
    "iabs": "({0} < 0) ? -{0} : {0}",
    "sign": "signs({0})",
}
# Functions of one number that glibc's libmvec has for vectors (since 2.22, the last since 2.35).
ELEMENTARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos"),
    *("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"),
)
FUNCTIONS = (*ELEMENTARY, "sqrt", "floor", "ceil", "trunc", "rint", "lgamma", "atan2", "pow")
for _name in FUNCTIONS:
    _arguments = "{0}, {1}" if _name in ("atan2", "pow") else "{0}"
    TEMPLATES[_name] = f"v_{_name}({_arguments})"

VECTORS = {F32: "vf", F64: "vd", I64: "vi", BOOL: "vi"}


def text_of(node: Node, names: dict[int, str]) -> str:
    """Return the C++ expression of one node, a vector, given its operands' names."""
    vector = VECTORS[node.kind]
    if node.op == "load":
        text = node.args[0]
        if node.kind == BOOL and not text.endswith("[l] != 0)"):
            return f"all({text})"
        name = text.partition("[l]")[0].lstrip("(")
        if "[l]" not in text:
            return f"{vector}{{}} + ({node.kind}){text}"
        return f"truth({name}, u)" if node.kind == BOOL else f"lanes_{vector}({name}, u)"
    if node.op == "literal":
        text = _literal(node)
        return f"all({text})" if node.kind == BOOL else f"{vector}{{}} + {text}"
    if node.op == "element":
        product, j = node.args
        return f"{names[product.number]}[{j}]"
    operands = [names[arg.number] for arg in node.args]
    if node.op == "cast":
        if node.args[0].kind == BOOL:
            return f"pick({operands[0]}, {vector}{{}} + 1, {vector}{{}})"
        return f"__builtin_convertvector({operands[0]}, {vector})"
    if node.op == "mul" and node.kind == BOOL:
        return f"{operands[0]} & {operands[1]}"
    if node.op in ("gt", "lt", "ne", "eq") and node.args[0].kind == BOOL:
        a, b = operands
        return {"gt": f"{a} & ~{b}", "lt": f"~{a} & {b}", "ne": f"{a} ^ {b}"}.get(
            node.op, f"~({a} ^ {b})"
        )
    return TEMPLATES[node.op].format(*operands)


def _literal(node: Node) -> str:
    value, sort = node.args
    if sort == "b":
        return "true" if value else "false"
    if sort == "i":
        return f"(whole){value}"
    number = float.fromhex(value)
    if math.isnan(number):
        text = "NAN"
    elif math.isinf(number):
        text = "INFINITY" if number > 0 else "(-INFINITY)"
    else:
        text = value if number >= 0 and not value.startswith("-") else f"({value})"
    return f"({node.kind}){text}"
