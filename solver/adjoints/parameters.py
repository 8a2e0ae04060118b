"""Which tensors a vector field uses, and its vector-Jacobian products with respect to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from solver.errors import UnseenTensor
from solver.loop import Problem

Edge = tuple[Any, int]  # node of autograd's graph, and which of its outputs


def _edge(tensor: Tensor) -> Edge | None:
    """Return where a tensor came from, None for a leaf."""
    return None if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


def _edges(tensors: Iterable[Tensor]) -> set[Edge]:
    return {edge for edge in map(_edge, tensors) if edge is not None}


def _reached(starts: Iterable[Edge], stops: set[Edge]) -> tuple[list[Tensor], set[Edge]]:
    """Walk up autograd's graph; return leaves found and stops met."""
    waiting, seen, leaves, met = list(starts), set(), [], set()
    while waiting:
        edge = waiting.pop()
        if edge in stops:
            met.add(edge)
            continue
        node = edge[0]
        if node in seen:
            continue
        seen.add(node)
        if type(node).__name__ == "AccumulateGrad":
            leaves.append(node.variable)
        else:
            waiting.extend(following for following in node.next_functions if following[0])
    return leaves, met


def find_parameters(problem: Problem, inputs: Sequence[Tensor]) -> tuple[list[Tensor], bool]:
    """Return the tensors that gradients are wanted for besides `inputs`, each once.

    And whether some were found only behind others, so that graphs older than the solve are gone
    through.

    Those given as `params`, those seen from `f` and `args`, and those that autograd's graph of the
    first slope leads to. A tensor with a history of its own counts if it is given or if the first
    slope was made from it.

    Args:
        problem: with the slope at the start, in autograd's graph.
        inputs: initial state and times.
    """
    given = [tensor for tensor in problem.params if tensor.requires_grad]
    known = {id(tensor) for tensor in (*inputs, *given)}
    found = list(given)
    with_history: dict[Edge, Tensor] = {}
    for tensor in problem.field.captured():
        if not tensor.requires_grad or id(tensor) in known:
            continue
        known.add(id(tensor))
        edge = _edge(tensor)
        if edge is None:
            found.append(tensor)
        else:
            with_history.setdefault(edge, tensor)
    slope = problem.slope0
    if slope is None or not slope.requires_grad:
        return found, False
    stops = _edges([*inputs, *given]) | with_history.keys()
    start = _edge(slope)
    leaves, met = _reached([] if start is None else [start], stops)
    found += [tensor for edge, tensor in with_history.items() if edge in met]
    hidden = [leaf for leaf in leaves if id(leaf) not in known]
    return found + hidden, bool(hidden)


@dataclass(eq=False)
class VectorJacobian:
    """Products with the Jacobian of whatever was made from `params`; adds up gradients of these.

    Made for one backward pass and closed after it.
    """

    params: Sequence[Tensor]
    wanted: Sequence[bool]  # which of `params` need a gradient
    totals: list[Tensor | None]
    _direct: list[int]  # of `params`, those that autograd.grad is asked for
    _shadowed: dict[int, list[Tensor]]  # those caught on the way, as others lie behind them
    _handles: list[Any]
    retain: bool  # whether products go through graphs that are older than the solve
    count: int = 0  # products made

    @staticmethod
    def over(
        params: Sequence[Tensor], wanted: Sequence[bool], *, retain: bool = False
    ) -> "VectorJacobian":
        """Start with gradients of zero; `retain` graphs that products go through."""
        shadowed = _shadowed(params, wanted)
        caught: dict[int, list[Tensor]] = {i: [] for i in shadowed}
        direct = [i for i, want in enumerate(wanted) if want and i not in shadowed]
        handles = [params[i].register_hook(_catch(caught[i])) for i in shadowed]
        totals = [torch.zeros_like(p) if w else None for p, w in zip(params, wanted, strict=True)]
        retain = retain or bool(shadowed)
        return VectorJacobian(params, wanted, totals, direct, caught, handles, retain)

    def close(self) -> None:
        """Take the hooks off the parameters."""
        for handle in self._handles:
            handle.remove()

    def __call__(
        self, results: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """Return cotangents of `inputs`; those of the parameters are added to `totals`.

        Args:
            results: tensors in a graph; those that depend on nothing are passed over.
            inputs: leaves of that graph.
            cotangents: of the results.
        """
        at_inputs, at_params = self.apart(results, inputs, cotangents)
        if at_params:
            sums: Any = [self.totals[i] for i, _ in at_params]
            torch._foreach_add_(sums, [gradient for _, gradient in at_params])  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        return at_inputs

    def apart(
        self, results: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]
    ) -> tuple[list[Tensor | None], list[tuple[int, Tensor]]]:
        """Return cotangents of `inputs`, and the parameters' with their numbers, not added up."""
        pairs = [(r, c) for r, c in zip(results, cotangents, strict=True) if r.requires_grad]
        asked = [*inputs, *(self.params[i] for i in self._direct)]
        if not pairs or not asked:
            return [None] * len(inputs), []
        self.count += 1
        gradients = torch.autograd.grad(
            [r for r, _ in pairs],
            asked,
            [c for _, c in pairs],
            retain_graph=self.retain,
            allow_unused=True,
        )
        count = len(inputs)
        direct = zip(self._direct, gradients[count:], strict=True)
        found = [(i, gradient) for i, gradient in direct if gradient is not None]
        for i, caught in self._shadowed.items():
            found += [(i, gradient) for gradient in caught]
            caught.clear()
        return list(gradients[:count]), found

    def check(self, result: Tensor, inputs: Sequence[Tensor]) -> None:
        """Refuse a vector field that uses a tensor no gradient would be returned for.

        Raises:
            UnseenTensor: autograd's graph leads to a tensor that is not among the parameters.
        """
        edge = _edge(result)
        if edge is None:
            return
        stops = _edges(self.params)
        known = {id(tensor) for tensor in (*inputs, *self.params)}
        for leaf in _reached([edge], stops)[0]:
            if id(leaf) not in known:
                raise UnseenTensor(
                    f"f uses a tensor of shape {tuple(leaf.shape)} that requires grad but is seen "
                    "neither from f, from args nor at the first evaluation: list it in "
                    'params=[...], or use adjoint="backprop"'
                )


def _shadowed(params: Sequence[Tensor], wanted: Sequence[bool]) -> list[int]:
    """Return parameters with a history that leads to other parameters.

    Asked for both, autograd would count the way through the first one twice.
    """
    edges = {_edge(tensor): i for i, tensor in enumerate(params)}
    edges = {edge: i for edge, i in edges.items() if edge is not None}
    leaves = {id(tensor) for tensor in params if tensor.grad_fn is None}
    found = []
    for edge, i in edges.items():
        if not wanted[i]:
            continue
        behind, met = _reached([edge], edges.keys() - {edge})
        if met or any(id(leaf) in leaves for leaf in behind):
            found.append(i)
    return found


def _catch(caught: list[Tensor]) -> Any:
    def hook(gradient: Tensor) -> Tensor:
        caught.append(gradient)
        return torch.zeros_like(gradient)

    return hook
