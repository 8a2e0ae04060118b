"""What every test starts from: one thread, one seed, float64 unless a test says otherwise."""

import os
from collections.abc import Iterator
from typing import Any

# Read when the libraries load; worker processes started by tests inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings

from solver import engines

torch.set_num_threads(1)
# Warnings that PyTorch gives once a process would fall on whichever test comes first.
torch.set_warn_always(True)
# Whether a solve is compiled by itself depends on the time spent before; tests that want that ask.
engines.LOOK_AFTER = float("inf")
settings.register_profile("stepscope", deadline=None, derandomize=True, database=None)
settings.load_profile("stepscope")


@pytest.fixture(autouse=True)
def _float64_and_one_seed() -> Iterator[None]:
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send all browser tests to one worker, so that one browser and its servers do."""
    from xdist.scheduler import LoadScopeScheduling

    class OneBrowser(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if nodeid.startswith("tests/browser/") else nodeid

    return OneBrowser(config, log)
