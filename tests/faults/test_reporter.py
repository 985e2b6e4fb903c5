"""What says our lines is blocked for ever: training, the end of the group and the exit of the interpreter are not."""

import pytest
from alike import BesideGloo, assert_alike

# Standard error is a pipe that nobody empties; it is full from the first line of ours on.
FULL_PIPE = """
kept, pipe = os.pipe()
os.dup2(pipe, 2)
SETUP
init()
os.set_blocking(pipe, False)
try:
    while True:
        os.write(pipe, b"x" * 65536)
except BlockingIOError:
    os.set_blocking(pipe, True)
"""

# A handler of the program's own that never returns, with its lock in its hands.
STUCK_HANDLER = """
import logging

class Stuck(logging.Handler):
    def emit(self, record):
        threading.Event().wait()

logging.getLogger().addHandler(Stuck())
init()
"""

TRAINING = """
result = torch.ones(4)
for _ in range(100):
    dist.all_reduce(result.fill_(1))
tell(result=result.tolist(), fault=time.monotonic())
"""
DESTROY = "dist.destroy_process_group()\n"

BLOCKED = {
    "full-pipe": FULL_PIPE.replace("SETUP", ""),
    "full-pipe-through-logging": FULL_PIPE.replace("SETUP", "import logging; logging.basicConfig(level=logging.INFO)"),
    "stuck-handler": STUCK_HANDLER,
}


@pytest.mark.parametrize("blocked", list(BLOCKED))
def test_a_reporter_that_is_blocked_for_ever_holds_nothing_up(blocked: str, beside_gloo: BesideGloo) -> None:
    """One rank with `destroy_process_group` is enough: it reports, and all that blocks is its own."""
    ours, gloos = beside_gloo(BLOCKED[blocked] + TRAINING + DESTROY, 1, seconds=30)
    assert_alike(ours, gloos)
    assert ours.exit_codes == [0], ours.text()
    assert ours.told[0]["result"] == [1.0] * 4
    assert len(ours.operations(0)) == 100


def test_a_blocked_reporter_and_no_destroy_is_no_hang_at_exit(beside_gloo: BesideGloo) -> None:
    ours, gloos = beside_gloo(BLOCKED["full-pipe-through-logging"] + TRAINING, 1, seconds=30)
    assert_alike(ours, gloos)
    assert ours.exit_codes == [0], ours.text()
