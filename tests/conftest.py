"""What every test starts from: one thread, one seed, float64 unless a test says otherwise."""

import os
from collections.abc import Iterator

# Read when the libraries load; worker processes started by tests inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("stepscope", deadline=None, derandomize=True, database=None)
settings.load_profile("stepscope")


@pytest.fixture(autouse=True)
def _float64_and_one_seed() -> Iterator[None]:
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep browser tests on one worker of xdist, so that one server and one browser do."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))
