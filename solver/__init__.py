"""Solves batches of ODEs, every batch element as its own problem, and tells what each step did."""

from solver.adjoints.aca import ACA
from solver.adjoints.backprop import Backprop
from solver.adjoints.binomial import Binomial
from solver.adjoints.checkpoint_steps import CheckpointSteps
from solver.adjoints.continuous import Continuous
from solver.adjoints.interpolated import Interpolated
from solver.adjoints.joint import Joint
from solver.adjoints.symplectic import Symplectic
from solver.compiling import compile
from solver.controllers.digital_filter import DigitalFilter
from solver.controllers.fixed import Fixed
from solver.controllers.integral import Integral
from solver.controllers.pi import PI
from solver.controllers.pid import PID
from solver.event_log import EventLog
from solver.events import Event, SteadyState
from solver.hooks import BackwardInfo, Hook, SolveEnd, SolveInfo, StepBlock
from solver.implicit.structure import Banded, Pattern, diagonal
from solver.methods.auto import Auto
from solver.methods.bdf import BDF
from solver.methods.bosh3 import Bosh3
from solver.methods.dopri5 import Dopri5
from solver.methods.dopri8 import Dopri8
from solver.methods.euler import Euler
from solver.methods.fehlberg45 import Fehlberg45
from solver.methods.heun import Heun
from solver.methods.heun_euler import HeunEuler
from solver.methods.kencarp3 import KenCarp3
from solver.methods.kencarp4 import KenCarp4
from solver.methods.kvaerno3 import Kvaerno3
from solver.methods.kvaerno4 import Kvaerno4
from solver.methods.kvaerno5 import Kvaerno5
from solver.methods.midpoint import Midpoint
from solver.methods.radau5 import Radau5
from solver.methods.ralston import Ralston
from solver.methods.rk4 import RK4
from solver.methods.rkc2 import RKC2
from solver.methods.rodas4 import Rodas4
from solver.methods.rodas5p import Rodas5P
from solver.methods.ros3p import ROS3P
from solver.methods.trbdf2 import TRBDF2
from solver.methods.tsit5 import Tsit5
from solver.methods.vern7 import Vern7
from solver.solution import Solution, Stats
from solver.solve import solve_ivp
from solver.split import Split
from solver.status import Status

__all__ = [
    "ACA",
    "BDF",
    "PI",
    "PID",
    "RK4",
    "RKC2",
    "ROS3P",
    "TRBDF2",
    "Auto",
    "Backprop",
    "BackwardInfo",
    "Banded",
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
    "KenCarp3",
    "KenCarp4",
    "Kvaerno3",
    "Kvaerno4",
    "Kvaerno5",
    "Midpoint",
    "Pattern",
    "Radau5",
    "Ralston",
    "Rodas4",
    "Rodas5P",
    "Solution",
    "SolveEnd",
    "SolveInfo",
    "Split",
    "Stats",
    "Status",
    "SteadyState",
    "StepBlock",
    "Symplectic",
    "Tsit5",
    "Vern7",
    "compile",
    "diagonal",
    "solve_ivp",
]
