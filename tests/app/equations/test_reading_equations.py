"""Equations read from text: what is understood, and that anything else is refused in its place."""

import builtins
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.equations.about import TEMPLATE, describe_text
from app.equations.system import is_equations, read
from app.equations.tokens import SIGNS
from app.equations.tree import FUNCTIONS, OPERATIONS, Apply, Refused
from app.own_problem import FORMS
from tests.app.equations.hostile import HOSTILE

VAN_DER_POL = """# Van der Pol
dx = v
dv = mu * (1 - x^2) * v - x
mu = 5 in 1..10
x(0) = 2
t = 0..20"""


def faults(text: str) -> list[str]:
    with pytest.raises(Refused) as caught:
        read(text)
    return [str(fault) for fault in caught.value.faults]


def test_there_are_two_hundred_hostile_texts():
    assert len({text for text, _, _ in HOSTILE}) >= 200


@pytest.mark.parametrize(
    ("text", "line", "column"), HOSTILE, ids=[f"{n}" for n in range(len(HOSTILE))]
)
def test_a_hostile_text_is_refused_in_its_place_and_never_run(monkeypatch, text, line, column):
    def run(*_: object, **__: object) -> None:
        raise AssertionError("something was run or opened")

    for name in ("eval", "exec", "compile", "open", "__import__"):
        monkeypatch.setattr(builtins, name, run)
    read.cache_clear()
    began = time.perf_counter()
    with pytest.raises(Refused) as caught:
        read(text)
    seconds = time.perf_counter() - began
    monkeypatch.undo()
    first = caught.value.faults[0]
    assert (first.line, first.column) == (line, column), first
    assert first.text
    assert first.length >= 1
    assert seconds < 2.0  # a bound for loaded machines; each takes about a millisecond


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=80) | st.text(alphabet="dxyt=+-*/^().,0123456789 \n'<>inlogse", max_size=60)
)
def test_any_text_is_read_or_refused_within_itself(text):
    try:
        system = read(text)
    except Refused as error:
        lines = text.replace("\r\n", "\n").split("\n")
        for fault in error.faults:
            assert 1 <= fault.line <= len(lines)
            assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
    else:
        assert system.states


def test_a_system_is_understood():
    system = read(VAN_DER_POL)
    assert system.title == "Van der Pol"
    assert system.states == ("x", "v")
    assert [(p.name, p.value, p.low, p.high) for p in system.parameters] == [
        ("mu", 5.0, 1.0, 10.0), ("x0", 2.0, -6.0, 6.0), ("v0", 1.0, -3.0, 3.0),
    ]  # fmt: skip
    assert (system.t0, system.t1) == (0.0, 20.0)
    assert is_equations(VAN_DER_POL)
    assert not is_equations("van_der_pol")
    assert not is_equations("my=file.py:Problem")


@pytest.mark.parametrize(
    "form", ["dx = -x", "x' = -x", "dx/dt = -x", "  dx=-x  # decay", "dx = -x\r"]
)
def test_a_slope_can_be_written_in_several_ways(form):
    if form.endswith("\r"):
        form += "\n"
    assert read(form).states == ("x",)


def test_names_that_begin_with_d_are_parameters_where_they_are_used():
    system = read("dv = -damping * v\ndamping = 0.2\ndelta = 1 in 0..2\nw' = delta")
    assert system.states == ("v", "w")
    assert [p.name for p in system.parameters] == ["damping", "delta", "v0", "w0"]
    assert read("dx = dose * x\ndose = 2").parameters[0].name == "dose"


def test_starts_may_be_numbers_ranges_or_made_of_parameters():
    system = read("dx = -x\ndy = -y\ndz = -z\nx(0) = 2 in 1..3\na = 4\ny(0) = 2 * a\nz0 = 7")
    assert [p.name for p in system.parameters] == ["a", "z0", "x0"]
    assert [p.start_of for p in system.parameters] == ["", "z", "x"]
    assert system.parameters[2].ranged
    assert isinstance(system.starts[1], Apply)


def test_definitions_stand_in_the_order_they_need():
    system = read("dx = f\nf = g * x\ng = h + 1\nh = sin(t)")
    assert [name for name, _ in system.definitions] == ["h", "g", "f"]


def test_constants_are_worked_out_as_bounded_numbers():
    system = read("dx = a * x\na = 2 * pi / 3 + 2**-2\nt = 0 .. 4 * pi")
    assert system.parameters[0].value == pytest.approx(2.3443951023931953)
    assert system.t1 == pytest.approx(12.566370614359172)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "dx = lenght\nlength = 2",
            "line 1, column 6: there is no `lenght`; did you mean `length`?",
        ),
        ("dx = Sin(x)", "there is no function `Sin`; did you mean `sin`?"),
        ("dx = -demping * x\ndamping = 1", "there is no `demping`; did you mean `damping`?"),
        ("dx = 2x", "to multiply write 2 * x"),
        ("dx = (1 + x) x", "to multiply write ... * x"),
        ("dx = (x + (1 + x) x)", "to multiply write ... * x"),
        ("dx = eps (x - 1)\neps = 1", "to multiply write eps * (...)"),
        ("dx = x\ndv = dx", "there is no `dx`: it is the slope of `x`, write its right side out"),
        ("dx = k(x + 1)\nk = 1", "there is no function `k`; to multiply write k * (...)"),
        ("dx = x²", "write `**2`"),
        ("dx = μ", "write `mu`"),
        ("dx = \uff58", "write `x`"),
        ("dx = 9**9**9", "constant powers lie in -100 to 100"),
        ("dx = where(x, 1, 2)", "a comparison such as x > 0"),
        ("dx = 1 < x < 2", "join two by `and`"),
        ("lambda = 2\ndx = x", "write `lam`"),
    ],
)
def test_an_error_says_what_is_allowed_and_what_was_meant(text, words):
    assert any(words in fault for fault in faults(text)), faults(text)


def test_every_line_at_fault_is_named():
    found = faults("dx = y\ndv = 2x\nmu = 3 in 5..1\nk = (1\ndw = k * mu * v * v0")
    assert [fault.partition(",")[0] for fault in found] == ["line 1", "line 2", "line 3", "line 4"]


def test_every_operation_has_a_number_and_a_tensor_form():
    assert set(FORMS) == set(OPERATIONS)
    assert set(FUNCTIONS) < set(OPERATIONS)
    assert "=" in SIGNS


def test_the_description_is_like_that_of_any_problem():
    from sample_problems.catalogue import problems

    told = describe_text(TEMPLATE)
    other = next(iter(problems().values())).describe()
    assert set(other) <= set(told)
    assert set(other["parameters"][0]) <= set(told["parameters"][0])
    assert told["spread"] == {"parameter": "friction", "low": 0.1, "high": 1.0, "scale": "linear"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dx = -x / (2 * y_max) + lam\ny_max = 1\nlam = 2",
         r"\dot{x} &= \frac{-x}{2 \, y_{\mathrm{max}}} + \lambda"),
        ("dx = (1 - x) * -mu2**2\nmu2 = 1",
         r"\dot{x} &= \left(1 - x\right) \, \left(-{\mu_{\mathrm{2}}}^{2}\right)"),
        ("dangle = 1", r"\tfrac{\mathrm{d}}{\mathrm{d}t}\,\mathrm{angle} &= 1"),
        ("dx = sqrt(abs(x)) - (2 - (x - 1))",
         r"\dot{x} &= \sqrt{\left|x\right|} - \left(2 - \left(x - 1\right)\right)"),
        ("dx = where(x <= 0, 1e-9, exp(-t))",
         r"\begin{cases} 10^{-9} & x \le 0 \\ \exp\left(-t\right) & \text{else} \end{cases}"),
    ],
)  # fmt: skip
def test_equations_are_shown_as_latex(text, wanted):
    assert wanted in describe_text(text)["latex"]
