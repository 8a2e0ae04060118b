"""Solves batches of ODEs, every batch element as its own problem, and tells what each step did."""

from solver.adjoints.aca import ACA
from solver.adjoints.backprop import Backprop
from solver.adjoints.binomial import Binomial
from solver.adjoints.checkpoint_steps import CheckpointSteps
from solver.adjoints.continuous import Continuous
from solver.adjoints.interpolated import Interpolated
from solver.adjoints.joint import Joint
from solver.adjoints.symplectic import Symplectic
from solver.controllers.digital_filter import DigitalFilter
from solver.controllers.fixed import Fixed
from solver.controllers.integral import Integral
from solver.controllers.pi import PI
from solver.controllers.pid import PID
from solver.event_log import EventLog
from solver.events import Event, SteadyState
from solver.hooks import BackwardInfo, Hook, SolveEnd, SolveInfo, StepBlock
from solver.methods.bosh3 import Bosh3
from solver.methods.dopri5 import Dopri5
from solver.methods.dopri8 import Dopri8
from solver.methods.euler import Euler
from solver.methods.fehlberg45 import Fehlberg45
from solver.methods.heun import Heun
from solver.methods.heun_euler import HeunEuler
from solver.methods.midpoint import Midpoint
from solver.methods.ralston import Ralston
from solver.methods.rk4 import RK4
from solver.methods.tsit5 import Tsit5
from solver.methods.vern7 import Vern7
from solver.solution import Solution, Stats
from solver.solve import solve_ivp
from solver.status import Status

__all__ = [
    "ACA",
    "PI",
    "PID",
    "RK4",
    "Backprop",
    "BackwardInfo",
    "Binomial",
    "Bosh3",
    "CheckpointSteps",
    "Continuous",
    "DigitalFilter",
    "Dopri5",
    "Dopri8",
    "Euler",
    "Event",
    "EventLog",
    "Fehlberg45",
    "Fixed",
    "Heun",
    "HeunEuler",
    "Hook",
    "Integral",
    "Interpolated",
    "Joint",
    "Midpoint",
    "Ralston",
    "Solution",
    "SolveEnd",
    "SolveInfo",
    "Stats",
    "Status",
    "SteadyState",
    "StepBlock",
    "Symplectic",
    "Tsit5",
    "Vern7",
    "solve_ivp",
]
