"""What says our lines is blocked for ever: training, the end of the group and the exit of the interpreter are not."""

import textwrap

import pytest
from alike import SLOWER, assert_alike, seconds_after_the_fault
from ranks import Job, read_lines, run_beside_gloo

# Standard error is a pipe that nobody empties; it is full from soon after the start on.
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
time.sleep(0.5)  # our first line is on its way
tell(result=result.tolist(), fault=time.monotonic())
"""
DESTROY = "dist.destroy_process_group()\n"
LOGGING = "import logging; logging.basicConfig(level=logging.INFO)"

BLOCKED = {
    "a full pipe": FULL_PIPE.replace("SETUP", "") + TRAINING + DESTROY,
    "a full pipe, through logging": FULL_PIPE.replace("SETUP", LOGGING) + TRAINING + DESTROY,
    "a full pipe, and no destroy": FULL_PIPE.replace("SETUP", LOGGING) + TRAINING,
    "a handler that never returns": STUCK_HANDLER + TRAINING + DESTROY,
    "a handler that never returns, and no destroy": STUCK_HANDLER + TRAINING,
}

# Each process is a job of one rank, which reports; all are started at once.
ALONE = """
WHO, RANK, WORLD = RANK, 0, 1
rounds = 100 * WHO
os.environ["STRAGGLER_DIR"] += f"-{WHO}"
"""


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Job]:
    bodies = [f"if WHO == {who}:\n" + textwrap.indent(body, "    ") for who, body in enumerate(BLOCKED.values())]
    folder = tmp_path_factory.mktemp("blocked")
    return run_beside_gloo(folder, ALONE + "".join(bodies), len(bodies), PYTHONUNBUFFERED="")


def test_a_reporter_that_is_blocked_for_ever_holds_neither_training_nor_the_exit_up(blocked: tuple[Job, Job]) -> None:
    ours, gloos = blocked
    ends = [seconds_after_the_fault(rank, gloos) for rank in gloos.ranks]
    # On gloo all do the same: what their ends differ by is the noise of so many processes.
    assert_alike(ours, gloos, slower=SLOWER + max(ends) - min(ends))
    assert ours.exit_codes == [0] * len(BLOCKED), ours.text()


@pytest.mark.parametrize("how", list(BLOCKED))
def test_what_is_not_said_is_recorded(how: str, blocked: tuple[Job, Job]) -> None:
    ours, _ = blocked
    who = list(BLOCKED).index(how)
    assert ours.told[who]["result"] == [1.0] * 4
    folder = ours.records.with_name(f"{ours.records.name}-{who}")
    assert len(read_lines(folder / "rank-00000.jsonl")) == 100
    assert read_lines(folder / "job.jsonl")[-1]["type"] == "report"
