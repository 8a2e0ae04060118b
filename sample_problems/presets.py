"""Settings that show a visible difference, shared by the problems: partial specs with a title."""

from collections.abc import Mapping
from typing import Any


def preset(name: str, title: str, **spec: Any) -> Mapping[str, Any]:
    """Return one preset: what of the run's spec it sets."""
    return {"name": name, "title": title, "spec": spec}


PID = preset("pid", "PID controller", controller={"name": "pid"})
INTEGRAL = preset("integral", "I controller: more refusals", controller={"name": "integral"})
SMOOTH = preset(
    "smooth",
    "Digital filter H211b: smooth steps",
    controller={"name": "digital_filter", "filter": "h211b"},
)
STABILISED = preset(
    "stabilised",
    "PI.4.2: calm at the stability limit",
    controller={"name": "digital_filter", "filter": "pi.4.2"},
)
JOINT = preset("joint", "One step size for the whole batch", stepping="joint")
TIGHT = preset("tight", "High order at a tight tolerance", method="dopri8", rtol=1e-9, atol=1e-12)
LOW_ORDER = preset("low_order", "Low order: many small steps", method="bosh3")
