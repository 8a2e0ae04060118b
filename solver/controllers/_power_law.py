"""The rule behind every adaptive controller here: powers of past errors and past factors."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from solver.bounds import check_bounds
from solver.controllers.base import Controller, Proposal
from solver.errors import InvalidArgument
from solver.norms import power

# An error below this says nothing of the problem, only of rounding; remembered smaller, it would
# cut the next step to pieces. Hairer's DOPRI5 takes 1e-4 here.
RATIO_FLOOR = 1e-8


class PowerLawHistory(NamedTuple):
    """What is remembered of accepted attempts; 1 where nothing is known yet."""

    last: Tensor  # (B,) error ratio of the last accepted attempt, e_(n-1), in [RATIO_FLOOR, 1]
    before: Tensor  # (B,) and of the one before, e_(n-2)
    factor: Tensor  # (B,) factor given after the last accepted attempt, rho_(n-1)
    factor_before: Tensor  # (B,) and after the one before, rho_(n-2)
    refused: Tensor  # (B,) bool, the last attempt was refused


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """Exponents and limits of one controller.

    With `k = error_order + 1`, error ratio `e_n` of the attempt and past factors `rho`,

        factor = gain * e_n^(-beta_1/k) * e_(n-1)^(-beta_2/k) * e_(n-2)^(-beta_3/k)
                      * rho_(n-1)^(-alpha_2) * rho_(n-2)^(-alpha_3)

    Soederlind (2003), ACM TOMS 29(1), 1-26, eq. 38 in form. An exponent that is 0 costs nothing.
    """

    beta: tuple[float, float, float]
    alpha: tuple[float, float] = (0.0, 0.0)
    gain: float
    safety: float  # upper limit of the factor after a refusal
    shrink: float
    grow: float
    smooth: bool = False  # arctangent limiter in place of a clamp
    never_shrink_on_accept: bool = False
    no_growth_after_reject: bool = False
    elementary_refusal: bool = False  # after a refusal safety * e^(-1/k), whatever the filter says

    def init(self, like: Tensor) -> PowerLawHistory:
        """Return the history before the first attempt."""
        one = torch.ones_like(like)
        return PowerLawHistory(one, one, one, one, torch.zeros_like(like, dtype=torch.bool))

    def filtered(self, ratio: Tensor, k: int, history: PowerLawHistory) -> Tensor:
        """Return the product of powers, `(B,)`: inf where the error is 0, 0 where it is inf."""
        beta_1, beta_2, beta_3 = self.beta
        alpha_2, alpha_3 = self.alpha
        exponent = ratio.log() * (-beta_1 / k)
        if beta_2:
            exponent = torch.add(exponent, history.last.log(), alpha=-beta_2 / k)
        if beta_3:
            exponent = torch.add(exponent, history.before.log(), alpha=-beta_3 / k)
        if alpha_2:
            exponent = torch.add(exponent, history.factor.log(), alpha=-alpha_2)
        if alpha_3:
            exponent = torch.add(exponent, history.factor_before.log(), alpha=-alpha_3)
        return exponent.exp() * self.gain

    def elementary(self, ratio: Tensor, k: int) -> Tensor:
        """Return what the classical controller would do, `(B,)`."""
        return power(ratio, -1 / k) * self.safety

    def limited(self, factor: Tensor) -> Tensor:
        """Return the factor within `shrink` and `grow`, `(B,)`; NaN stays NaN.

        Smooth: 1 + kappa * arctan((x - 1) / kappa), which leaves factors near 1 as they are and
        tends to `grow`, so that `grow = 1 + kappa * pi / 2`. Soederlind & Wang (2006), J. Comput.
        Appl. Math. 185(2), 225-243.
        """
        if not self.smooth:
            return factor.clamp(self.shrink, self.grow)
        kappa = 2 * (self.grow - 1) / math.pi
        factor = ((factor - 1) / kappa).atan() / (math.pi / 2) * (self.grow - 1) + 1
        return factor.clamp(self.shrink, self.grow)

    @cached_property
    def may_grow_when_refused(self) -> bool:
        """Whether a refused attempt could be proposed a factor above `safety`.

        Not so if past errors, which are at most 1, can only make it smaller.
        """
        return (
            any(beta > 0 for beta in self.beta[1:])
            or any(self.alpha)
            or self.smooth
            or self.gain > self.safety
        )

    def propose(
        self, ratio: Tensor, error_order: int, history: PowerLawHistory
    ) -> Proposal[PowerLawHistory]:
        """Judge one attempt; see `Controller.propose`."""
        k = error_order + 1
        accept = ratio <= 1  # False for NaN
        factor = self.limited(self.filtered(ratio, k, history))
        if self.never_shrink_on_accept:
            factor = torch.where(accept, factor.clamp(min=1), factor)
        if self.no_growth_after_reject:
            factor = torch.where(history.refused, factor.clamp(max=1), factor)
        if self.elementary_refusal:
            refused = self.elementary(ratio, k).nan_to_num(nan=self.shrink)
            factor = torch.where(accept, factor, refused.clamp(self.shrink, self.safety))
        elif self.may_grow_when_refused:
            refused = factor.nan_to_num(nan=self.shrink).clamp(max=self.safety)
            factor = torch.where(accept, factor, refused)
        else:
            factor = factor.nan_to_num(nan=self.shrink)
        return Proposal(accept, factor, self.moved(ratio, accept, factor, history))

    def moved(
        self, ratio: Tensor, accept: Tensor, factor: Tensor, history: PowerLawHistory
    ) -> PowerLawHistory:
        """Return the history after the attempt; what no exponent needs is left as it is."""
        last, before, past, past_before, refused = history
        if self.beta[2]:
            before = torch.where(accept, last, before)
        if self.beta[1] or self.beta[2]:
            last = torch.where(accept, ratio.clamp(min=RATIO_FLOOR), last)
        if self.alpha[1]:
            past_before = torch.where(accept, past, past_before)
        if self.alpha[0] or self.alpha[1]:
            past = torch.where(accept, factor, past)
        if self.no_growth_after_reject:
            refused = ~accept
        return PowerLawHistory(last, before, past, past_before, refused)

    def unlimited(self, ratio: Tensor, error_order: int, history: PowerLawHistory) -> Tensor:
        """Return the factor before limits, `(B,)`."""
        k = error_order + 1
        factor = self.filtered(ratio, k, history)
        if self.elementary_refusal:
            factor = torch.where(ratio > 1, self.elementary(ratio, k), factor)
        return factor

    def shares(
        self, ratio: Tensor, error_order: int, history: PowerLawHistory
    ) -> dict[str, Tensor]:
        """Return log10 of the P, I and D part, and of past factors (`f`) if any; `(B,)` each.

        In the velocity form of a PID controller, with the gains the exponents stand for,

            i: -(ki/k) log e_n    p: -(kp/k) (log e_n - log e_(n-1))
            d: -(kd/k) (log e_n - 2 log e_(n-1) + log e_(n-2))

        An error of 0 counts as `RATIO_FLOOR`, so that the parts stay finite.
        """
        k = error_order + 1
        beta_1, beta_2, beta_3 = self.beta
        ki, kp, kd = beta_1 + beta_2 + beta_3, -beta_2 - 2 * beta_3, beta_3
        e_n = ratio.clamp(min=RATIO_FLOOR).log10()
        nothing = torch.zeros_like(e_n)
        parts = {"p": nothing, "i": e_n * (-ki / k) + math.log10(self.gain / self.safety)}
        e_1 = nothing  # what has no gain needs no history
        if kp or kd:
            e_1 = history.last.clamp(min=RATIO_FLOOR).log10()
            parts["p"] = (e_n - e_1) * (-kp / k)
        parts["d"] = nothing
        if kd:
            e_2 = history.before.clamp(min=RATIO_FLOOR).log10()
            parts["d"] = (e_n - 2 * e_1 + e_2) * (-kd / k)
        if any(self.alpha):
            rho_1, rho_2 = history.factor.log10(), history.factor_before.log10()
            parts["f"] = rho_1 * -self.alpha[0] + rho_2 * -self.alpha[1]
        if self.elementary_refusal:
            refused = ratio > 1
            alone = {"i": e_n / -k}
            parts = {
                key: torch.where(refused, alone.get(key, nothing), part)
                for key, part in parts.items()
            }
        return parts


class PowerLawController(Controller[PowerLawHistory]):
    """A controller that is a `PowerLaw`; subclasses are frozen dataclasses and say which."""

    def __post_init__(self) -> None:
        """Check bounds, and what one setting demands of another."""
        check_bounds(self)
        owner, law = type(self).__name__, self.law
        if law.shrink > law.safety:
            raise InvalidArgument(
                f"{owner}(shrink={law.shrink!r}): must be at most safety ({law.safety!r}), "
                "or a refused step would hardly be made smaller"
            )
        if law.beta[0] <= 0:
            raise InvalidArgument(
                f"{owner}: the gains add up to {law.beta[0]:g}: must be above 0, "
                "or a larger error would make the next step larger"
            )

    @cached_property
    def law(self) -> PowerLaw:
        """Exponents and limits, worked out once."""
        return self.power_law()

    @abstractmethod
    def power_law(self) -> PowerLaw:
        """Return the exponents and limits that the settings stand for."""

    def init(self, like: Tensor) -> PowerLawHistory:
        """Return the history before the first step, for `like (B,)` of the control dtype."""
        return self.law.init(like)

    def propose(
        self, ratio: Tensor, error_order: int, history: PowerLawHistory
    ) -> Proposal[PowerLawHistory]:
        """Judge one attempt; see `Controller.propose`."""
        return self.law.propose(ratio, error_order, history)

    def shares(
        self, ratio: Tensor, error_order: int, history: PowerLawHistory
    ) -> Mapping[str, Tensor]:
        """Return log10 of `p`, `i`, `d`, and of `f` where past factors count; `(B,)` each."""
        return self.law.shares(ratio, error_order, history)

    def unlimited_factor(self, ratio: Tensor, error_order: int, history: PowerLawHistory) -> Tensor:
        """Return the factor before any clamp or limiter, `(B,)`."""
        return self.law.unlimited(ratio, error_order, history)

    def steady_error_ratio(self, error_order: int) -> float:
        """Return the error ratio at which factor is 1 when nothing changes, in (0, 1]."""
        return self.law.gain ** ((error_order + 1) / sum(self.law.beta))
