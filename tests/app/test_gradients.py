"""Gradient modes on the sample problems: what the Adjoints page shows is so."""

import pytest

from app.adjoints_command import split_modes
from app.gradients import compare_spec, read_spec


def test_on_the_flow_a_loose_tolerance_spoils_continuous_gradients_and_no_exact_one():
    spec = {
        "problem": "flow_two_moons", "batch": 8, "trained": 8, "allocator": False,
        "parameters": {"hidden": 16, "layers": 2}, "sweep": "rtol", "values": [1e-4, 1e-6, 1e-8],
        "modes": ["symplectic", "aca", "continuous", "joint"],
    }  # fmt: skip
    errors: dict[str, list[float]] = {}
    for _, _, entry in compare_spec(spec, keep_going=False):
        errors.setdefault(entry["label"], []).append(max(entry["error"].values()))
    for mode in ("symplectic", "aca"):
        assert max(errors[mode]) < 1e-11
    for mode in ("continuous", "joint"):
        loose, middle, tight = errors[mode]
        assert loose > 5 * middle > 25 * tight
        assert tight > 1e-11


def test_both_energy_problems_keep_the_order_of_the_modes_in_memory():
    for name in ("kdv_hnn", "cahn_hilliard_hnn"):
        spec = {"problem": name, "batch": 2, "sweep": "steps", "values": [4]}
        modes = ["backprop", "aca", "symplectic"]
        kept = {
            entry["label"]: entry["kept_bytes"]
            + entry["graph_bytes"] * (entry["label"] != "backprop")
            for _, _, entry in compare_spec(spec | {"modes": modes, "allocator": False})
        }
        assert kept["backprop"] > 3.5 * kept["aca"] > 14 * kept["symplectic"], name


def test_modes_are_parted_and_keep_their_settings():
    assert split_modes("aca, symplectic:keep=graphs,budget=8; joint") == [
        "aca", "symplectic:keep=graphs,budget=8", "joint",
    ]  # fmt: skip


def test_a_spec_is_filled_from_the_problem():
    asked = read_spec({"problem": "kdv_hnn"})
    assert asked.options["method"] == "dopri5"
    assert asked.values == [1e-6]
    with pytest.raises(ValueError, match="unknown problem"):
        read_spec({"problem": "nothing"})
