"""Names find their classes; what is not there is refused with the nearest name."""

import pytest

from solver import catalogue
from solver.controllers.digital_filter import DigitalFilter
from solver.controllers.integral import Integral
from solver.controllers.pi import PI
from solver.controllers.pid import PID
from solver.errors import (
    InvalidArgument,
    InvalidType,
    SolverError,
    UnknownController,
    UnknownMethod,
    UnknownStatistic,
)


def test_every_controller_is_found_with_a_name_a_title_and_bounded_settings():
    found = catalogue.controllers()
    assert list(found) == ["digital_filter", "fixed", "integral", "pi", "pid"]
    for name, cls in found.items():
        assert cls.name == name == name.lower()
        assert cls.title
        assert cls.steady["kind"] in ("gains", "fixed")
        assert catalogue.controller_by_name(name) == cls()
        for settings, source in cls.presets.values():
            assert source
            assert cls.with_settings(settings)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("PID", PID()),
        ("i", Integral()),
        ("pi", PI()),
        ("h211b", DigitalFilter(filter="h211b")),
        ("PI.4.2", DigitalFilter(filter="pi.4.2")),
        ("H312b", DigitalFilter(filter="h312b", b=8.0)),
        ("hairer-dopri5", PI.preset("hairer_dopri5")),
        ("scipy", Integral(no_growth_after_reject=True)),
    ],
)
def test_controllers_and_presets_by_name(name, expected):
    assert catalogue.controller_by_name(name) == expected


def test_settings_go_over_the_preset():
    assert catalogue.controller_by_name("h312b", {"b": 6.0}).settings()["b"] == 6.0
    with pytest.raises(InvalidArgument, match="no setting 'gain'"):
        catalogue.controller_by_name("pid", {"gain": 1})


def test_an_unknown_controller_is_answered_with_the_nearest_name():
    with pytest.raises(
        UnknownController, match="unknown controller 'h211c': did you mean 'h211"
    ) as error:
        catalogue.controller_by_name("h211c")
    assert isinstance(error.value, SolverError)
    assert isinstance(error.value, ValueError)
    with pytest.raises(InvalidType, match="controller must be a name"):
        catalogue.controller_by_name(None)  # pyright: ignore[reportArgumentType]


def test_a_copy_of_the_catalogue_may_be_changed():
    catalogue.controllers().clear()
    assert catalogue.controllers()


@pytest.mark.parametrize(
    ("lookup", "known", "error"),
    [
        (catalogue.method_by_name, catalogue.methods, UnknownMethod),
        (catalogue.statistic_by_name, catalogue.statistics, UnknownStatistic),
    ],
)
def test_methods_and_statistics_by_name(lookup, known, error):
    assert len(known()) > 3
    for name, cls in known().items():
        assert isinstance(lookup(name.upper()), cls)
        assert cls.name == name
        with pytest.raises(error, match=f"did you mean '{name}'"):
            lookup(name + "x")
    with pytest.raises(InvalidType, match="must be a name"):
        lookup(5)


def test_an_adjoint_with_settings_behind_its_name():
    plain = catalogue.adjoint_by_name("Symplectic")
    kept = catalogue.adjoint_by_name("symplectic:keep=graphs, budget=8")
    assert (vars(plain)["keep"], vars(kept)["keep"]) == ("one", "graphs")
    assert vars(kept)["budget"] == 8
    chosen = catalogue.adjoint_by_name("continuous:seminorm=false,method=bosh3,rtol=1e-8")
    assert (vars(chosen)["seminorm"], vars(chosen)["method"]) == (False, "bosh3")
    assert vars(chosen)["rtol"] == 1e-8
    for wrong in ("symplectic:keep", "symplectic:nothing=1", "aca:keep=one"):
        with pytest.raises(InvalidArgument, match="is no setting of it"):
            catalogue.adjoint_by_name(wrong)
    with pytest.raises(InvalidArgument, match="must be one of 'one'"):
        catalogue.adjoint_by_name("symplectic:keep=two")
