"""Real solves of a search on a local Dask cluster, through joblib's backend."""

import warnings

import joblib
import pytest

from app.tuning import tune

distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SPEC = {
    "kind": "tune", "problem": "lotka_volterra", "batch": 2, "t1": 3.0, "jobs": 2, "verify": 2,
    "kp": [0.0, 0.2], "ki": [0.3, 0.6], "search": False, "rtol": 1e-4,
}  # fmt: skip


def solved(entries):
    """Return the attempts of each real solve."""
    return {e["label"]: e["attempts"] for e in entries if e["phase"] == "real"}


def test_a_search_gives_the_same_on_a_cluster():
    here = solved(tune(SPEC | {"jobs": 1}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            there = solved(tune(SPEC))
    assert len(there) >= 8
    assert there == here
