"""torch's own distributed tests (`torch/testing/_internal/distributed/distributed_test.py`), as pytest runs them here.

What torch's `test/distributed/test_distributed_spawn.py` does, and five things more. The ranks are forked: a spawned
one imports torch for seconds. Each rank checks which class is under test: a run that is not intercepted cannot pass for
one that is. Every test has the same limit, fails as hung where it reaches it, and its ranks are killed at its end,
whatever they do. A rank that crashes after its test is a failure: torch looks at the exit code of rank 0 only. Where a
test races with itself, torch's own barrier after each group is asked for.

The environment, set by `suite_run.py`: BACKEND, WORLD_SIZE, TEMP_DIR and INIT_METHOD are torch's; TESTED_CLASS is the
class of the backend that must be under test; DISTRIBUTED_TESTS_DEFAULT_TIMEOUT is the limit in seconds; SKIPS_OF is the
name by which the suite decides what to skip, if that is not BACKEND.
"""

import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed

BACKEND = os.environ["BACKEND"]
# Before the suite is imported: it then looks up by name what a backend can do, and knows no plugin's.
for feature, backends in common_distributed.DistTestCases.backend_feature.items():
    if feature == "plugin" or dist.Backend.GLOO in backends:
        backends.add(BACKEND)
common_distributed.TIMEOUT_OVERRIDE.clear()

os.environ["BACKEND"] = os.environ.get("SKIPS_OF", BACKEND)
suite: Any = importlib.import_module("torch.testing._internal.distributed.distributed_test")
os.environ["BACKEND"] = suite.BACKEND = BACKEND


# Ranks destroy a group that they have only just made. torch makes it without a barrier, so the last to connect may find
# its peer gone: on gloo itself too, in 6 of 40 runs on a busy machine.
MADE_AND_DESTROYED = {"test_new_subgroups_with_group_param"}


class DistributedSuite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):  # type: ignore[misc]
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(multiprocessing.get_context("fork").Process)

    def tearDown(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        super().tearDown()

    def run_test(self, test_name: str, parent_pipe: Any) -> None:
        """On a rank, with the group made."""
        tested = type(dist.group.WORLD._get_backend(torch.device("cpu"))).__name__  # type: ignore[union-attr]
        if tested != os.environ["TESTED_CLASS"]:
            parent_pipe.send(f"AssertionError: the backend is a {tested}, not a {os.environ['TESTED_CLASS']}")
            sys.exit(self.TEST_ERROR_EXIT_CODE)
        if test_name in MADE_AND_DESTROYED:
            os.environ["TORCH_DIST_INIT_BARRIER"] = "1"
        super().run_test(test_name, parent_pipe)

    def _check_return_codes(self, fn: Callable[..., None], elapsed_time: float) -> None:
        """In pytest's process, when all ranks have ended or were told to."""
        limit = common_distributed.get_timeout(self.id())
        if elapsed_time > limit:
            raise TimeoutError(f"hung: not done after {limit} s, and ended")
        super()._check_return_codes(fn, elapsed_time)
        codes = [process.exitcode for process in self.processes]
        if any(codes) and fn not in self.skip_return_code_checks:
            raise AssertionError(f"the exit codes of the ranks are {codes}")
