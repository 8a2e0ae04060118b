"""Statements that compute expressions, those that few rows need behind a branch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from solver.compiled.expression import VECTORS, Node, reachable, text_of
from solver.compiled.symbolic import Untraceable


@dataclass(eq=False)
class _Region:
    """What is computed only where a mask holds in some row; the guards that lead out of it."""

    mask: Node
    guards: list[Node] = field(default_factory=list)
    parent: "_Region | None" = None  # the region it lies in, None for the outermost level
    settled: bool = False  # whether `parent` means something yet
    inside: list[Node] = field(default_factory=list)  # also in regions in this one

    def path(self) -> list["_Region"]:
        """Return the regions from the outermost one to this."""
        return [*([] if self.parent is None else self.parent.path()), self]


def statements(roots: Sequence[Node], indent: str) -> tuple[str, dict[int, str]]:
    """Return the statements that compute `roots`, and the names of all they compute.

    Args:
        roots: what is wanted.
        indent: before each line.

    Raises:
        Untraceable: a region needs its own result.
    """
    writer = _Writer(roots)
    writer.write(None, indent)
    return "\n".join(writer.lines), writer.names


class _Writer:
    """Writes nodes and regions, each where the least of what needs it can see it."""

    def __init__(self, roots: Sequence[Node]):
        """Find out which nodes are needed only inside regions."""
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self._nodes = reachable(roots)
        self._regions: dict[tuple[int, str], _Region] = {}
        for node in self._nodes:
            if node.op == "guard":
                mask, region = node.args[0], node.args[3]
                found = self._regions.setdefault((mask.number, region), _Region(mask))
                found.guards.append(node)
        self._owners: dict[int, _Region | None] = {}
        self._place(roots)
        self._own: dict[_Region | None, list[Node]] = {}
        for node in self._nodes:
            owner = self._owners[node.number]
            self._own.setdefault(owner, []).append(node)
            while owner is not None:
                owner.inside.append(node)
                owner = owner.parent
        self._done: set[int] = set()
        self._begun: set[int] = set()

    def _region_of(self, guard: Node) -> _Region:
        return self._regions[guard.args[0].number, guard.args[3]]

    def _place(self, roots: Sequence[Node]) -> None:
        """Give each node the innermost region that all which need it lie in."""
        owners = self._owners
        for root in roots:
            owners[root.number] = None
        if not self._regions:
            owners.update((node.number, None) for node in self._nodes)
            return
        moved = True
        while moved:  # outwards only, so it comes to an end
            moved = False
            for node in reversed(self._nodes):
                if node.number not in owners:
                    moved = True  # needed by a region met later
                    continue
                here = owners[node.number]
                into = here
                if node.op == "guard":
                    into = self._region_of(node)
                    outer = _common(into.parent, here) if into.settled else here
                    if not into.settled or outer is not into.parent:
                        into.parent, into.settled, moved = outer, True, True
                    here = into.parent
                for place, arg in enumerate(node.args):
                    if isinstance(arg, Node):
                        wanted = into if place == 1 or node.op != "guard" else here
                        moved |= self._need(arg, wanted)

    def _need(self, node: Node, where: _Region | None) -> bool:
        """Note that a node is needed somewhere; return whether that moves it."""
        if node.number not in self._owners:
            self._owners[node.number] = where
            return True
        before = self._owners[node.number]
        self._owners[node.number] = _common(before, where)
        return self._owners[node.number] is not before

    # ---- writing

    def write(self, context: _Region | None, indent: str) -> None:
        """Write what belongs to a region, None for the outermost level."""
        for node in self._own.get(context, []):
            self._visit(node, context, indent)

    def _visit(self, node: Node, context: _Region | None, indent: str) -> None:
        """Write a node after what it needs; with a guard its whole region."""
        if node.number in self._done:
            return
        if node.number in self._begun:
            raise Untraceable("a part computed for few rows needs its own result")
        self._begun.add(node.number)
        region = self._region_of(node) if node.op == "guard" else None
        if region is None:
            needed = [arg for arg in node.args if isinstance(arg, Node)]
        else:
            self._begun.update(guard.number for guard in region.guards)
            needed = [region.mask, *(guard.args[2] for guard in region.guards)]
            for inner in (*region.guards, *region.inside):
                needed += [
                    arg for arg in inner.args if isinstance(arg, Node) and not self._in(arg, region)
                ]
        for arg in needed:
            outer = self._lifted(arg, context)
            if outer is not None:
                self._visit(outer, context, indent)
        if region is None:
            self._line(node, indent)
            self._done.add(node.number)
        else:
            self._branch(region, indent)
            self._done.update(guard.number for guard in region.guards)

    def _in(self, node: Node, region: _Region) -> bool:
        owner = self._owners[node.number]
        return owner is not None and region in owner.path()

    def _lifted(self, node: Node, context: _Region | None) -> Node | None:
        """Return what is to be written in `context` for `node` to be there; None if it is seen."""
        owner = self._owners[node.number]
        if owner is context:
            return node
        path = [] if owner is None else owner.path()
        if context is None:
            return path[0].guards[0]
        if context in path:  # deeper: with the region below this one
            return path[path.index(context) + 1].guards[0]
        return None

    def _line(self, node: Node, indent: str) -> None:
        names, vector = self.names, VECTORS[node.kind]
        if node.op == "product":
            names[node.number] = f"p{node.number}"
            self.lines += _product(node, names, indent)
            return
        names[node.number] = f"v{node.number}"
        self.lines.append(f"{indent}const {vector} v{node.number} = {text_of(node, names)};")

    def _branch(self, region: _Region, indent: str) -> None:
        names, lines = self.names, self.lines
        for guard in region.guards:
            names[guard.number] = f"v{guard.number}"
            before = names[guard.args[2].number]
            lines.append(f"{indent}{VECTORS[guard.kind]} v{guard.number} = {before};")
        mask = region.mask
        same = mask.op == "load" and "[l]" not in mask.args[0]  # in all rows
        lines.append(f"{indent}if ({mask.args[0] if same else f'any({names[mask.number]})'}) {{")
        self.write(region, indent + "  ")
        for guard in region.guards:
            name, value = names[guard.number], names[guard.args[1].number]
            picked = value if same else f"pick({names[mask.number]}, {value}, {name})"
            lines.append(f"{indent}  {name} = {picked};")
        lines.append(f"{indent}}}")


def _common(a: _Region | None, b: _Region | None) -> _Region | None:
    """Return the innermost region that holds both."""
    if a is b:
        return a
    common = None
    for one, other in zip(
        [] if a is None else a.path(), [] if b is None else b.path(), strict=False
    ):
        if one is not other:
            break
        common = one
    return common


def _product(node: Node, names: dict[int, str], indent: str) -> list[str]:
    """Multiply a row with a matrix that all rows share."""
    slot, inner, outer, *inputs = node.args
    vector = VECTORS[node.kind]
    loads = ", ".join(names[x.number] for x in inputs)
    return [
        f"{indent}{vector} p{node.number}[{outer}];",
        f"{indent}{{ const {vector} x[{inner}] = {{{loads}}};",
        f"{indent}  product<{inner}, {outer}>(U{slot}, x, p{node.number}); }}",
    ]
