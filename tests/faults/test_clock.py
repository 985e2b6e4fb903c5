"""Clocks that are far from each other: one rank's is 40 years ahead, another's near zero."""

import shutil
import subprocess
import time

import pytest
from alike import BesideGloo, assert_alike

YEARS = 40 * 365 * 86400
AHEAD = ("unshare", "--time", "--monotonic", str(YEARS), "--boottime", str(YEARS), "--fork")
BACK = str(-int(time.monotonic()) + 100)
NEAR_ZERO = ("unshare", "--time", "--monotonic", BACK, "--boottime", BACK, "--fork")

STEPS = """
init()
result = torch.ones(16)
for number in range(100):
    dist.all_reduce(result.fill_(1))
    time.sleep(0.005)
tell(result=result.tolist(), clock=time.monotonic(), **({"fault": time.monotonic()} if RANK == 0 else {}))
dist.destroy_process_group()
"""


@pytest.fixture
def time_namespaces() -> None:
    allowed = shutil.which("unshare") and all(
        subprocess.run([*command, "true"], capture_output=True).returncode == 0 for command in (AHEAD, NEAR_ZERO)
    )
    if not allowed:
        pytest.skip("no time namespace can be made here: run as root on Linux 5.6 or later, with util-linux")


@pytest.mark.usefixtures("time_namespaces")
def test_clocks_that_are_decades_apart_change_nothing_and_blame_nobody(beside_gloo: BesideGloo) -> None:
    """A time more than 36 years from the clock's zero is refused with its frame: that is said, and no more."""
    commands = ((), AHEAD, NEAR_ZERO)
    ours, gloos = beside_gloo(STEPS, 3, before=lambda rank: commands[rank])
    assert_alike(ours, gloos)
    assert ours.exit_codes == [0, 0, 0], ours.text()
    clocks = [told["clock"] for told in ours.told]
    assert clocks[1] - clocks[0] > YEARS - 100 and clocks[2] < clocks[0]
    assert [told["result"] for told in ours.told] == [[3.0] * 16] * 3
    assert [len(ours.operations(rank)) for rank in range(3)] == [100] * 3
    assert ours.report["verdict"]["ranks"] == []
    assert any("frames could not be read" in note for note in ours.report["notes"])
