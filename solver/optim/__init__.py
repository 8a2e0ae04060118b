"""Optimizers for training through a solver, fast with many small tensors, which tell how they step.

opt = AdamW(model.parameters(), lr=1e-3)
opt.step()
opt.statistics()  # 0-d tensors, such as the median of the effective step size
"""

from solver.optim.adahessian import AdaHessian, MissingGraph
from solver.optim.adamw import AdamW
from solver.optim.alig import AliG, L2Ball
from solver.optim.base import BatchedOptimizer
from solver.optim.lion import Lion, lion_schedule
from solver.optim.madgrad import MADGRAD

__all__ = [
    "MADGRAD",
    "AdaHessian",
    "AdamW",
    "AliG",
    "BatchedOptimizer",
    "L2Ball",
    "Lion",
    "MissingGraph",
    "lion_schedule",
]
