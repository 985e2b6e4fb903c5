"""What is said goes through Python's logging, whatever the program makes of it, and never holds the program up."""

from collections.abc import Callable

import pytest
from python_process import Run

Succeeds = Callable[..., str]

# A job of one rank, which says that it is armed and reports at its end.
JOB = """
init("straggler_gloo")
for _ in range(20):
    dist.all_reduce(torch.ones(4))
"""
DESTROY = "dist.destroy_process_group()\n"

# A handler of the program's own; `emit` is up to the test.
HANDLER = """
import logging, sys, time
class Handler(logging.Handler):
    def emit(self, record):
        what_it_does(self, record)
logging.getLogger().addHandler(Handler())
"""


def armed_and_report(text: str) -> list[int]:
    """Where each of the two begins."""
    return [text.index("straggler: armed: 1 of 1 rank"), text.index("NO VERDICT: "), text.index("arrival skew")]


def test_without_a_setup_the_text_goes_to_standard_error_as_it_is(python: Run) -> None:
    done = python(JOB + DESTROY)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines[0].startswith("straggler: armed: 1 of 1 rank seen")
    assert lines[1].startswith("straggler: armed: rule ")
    assert lines[2].startswith("NO VERDICT: ")
    assert "arrival skew" in lines[-2] + lines[-1] + lines[-3]
    assert done.stdout == ""


def test_the_report_is_out_when_destroy_returns(python: Run) -> None:
    done = python(JOB + DESTROY + 'import sys; print("destroyed", file=sys.stderr, flush=True)')
    assert done.stderr.rstrip().endswith("destroyed")
    assert armed_and_report(done.stderr)


def test_the_programs_format_and_levels_are_respected(succeeds: Succeeds) -> None:
    said = succeeds(
        'import logging, sys; logging.basicConfig(format="<%(name)s %(levelname)s> %(message)s", stream=sys.stdout)\n'
        + JOB
        + DESTROY
    )
    assert said.count("<torch_straggler INFO>") == 2  # the report is one record
    assert "<torch_straggler INFO> straggler: armed:" in said
    assert "<torch_straggler INFO> NO VERDICT: " in said
    assert not said.endswith("\n\n")


@pytest.mark.parametrize(
    "setup",
    [
        "logging.basicConfig(level=logging.ERROR)",
        'logging.basicConfig(); logging.getLogger("torch_straggler").setLevel(logging.ERROR)',
        'logging.getLogger("torch_straggler").setLevel(logging.ERROR)',
        "logging.disable(logging.ERROR)",
    ],
)
def test_the_level_error_silences(setup: str, python: Run) -> None:
    done = python(f"import logging; {setup}\n" + JOB + DESTROY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_level_of_the_programs_own_stays(succeeds: Succeeds) -> None:
    for level in ("DEBUG", "WARNING"):
        code = f'import logging; logger = logging.getLogger("torch_straggler"); logger.setLevel(logging.{level})\n'
        assert succeeds(code + JOB + DESTROY + "print(logging.getLevelName(logger.level))").strip() == level


def test_a_handler_that_raises_is_told_of_and_everything_goes_on(python: Run) -> None:
    raising = "def what_it_does(handler, record): raise RuntimeError('no disk for ' + record.getMessage()[:16])\n"
    done = python(raising + HANDLER + JOB + DESTROY)
    assert done.returncode == 0
    assert "RuntimeError: no disk for straggler: armed" in done.stderr
    assert "RuntimeError: no disk for NO VERDICT: " in done.stderr
    assert done.stdout == ""


def test_a_handler_that_ends_with_system_exit_ends_nothing(python: Run) -> None:
    done = python("def what_it_does(handler, record): sys.exit(3)\n" + HANDLER + JOB + DESTROY)
    assert done.returncode == 0
    assert armed_and_report(done.stderr)  # where Python does not take it, it goes to standard error


def test_a_handler_may_log_itself(succeeds: Succeeds) -> None:
    again = """
seen = []
def what_it_does(handler, record):
    seen.append(record.name)
    if record.name == "torch_straggler" and len(seen) < 9:
        logging.getLogger("mine").error("heard")
        logging.getLogger("torch_straggler").info("again")
"""
    said = succeeds(again + HANDLER + JOB + DESTROY + "print(seen.count('mine'), seen.count('torch_straggler'))")
    assert [int(count) >= 4 for count in said.split()] == [True, True]


def test_the_interpreter_lock_in_the_programs_hands_delays_lines_and_nothing_else(python: Run) -> None:
    """The main thread holds it for 2 s, in a call into C, while the line about the armed session is on its way."""
    done = python(
        """
        import ctypes, sys, time
        init("straggler_gloo")
        begun = time.monotonic()
        ctypes.PyDLL(None).usleep(2_000_000)
        assert time.monotonic() - begun < 2.5
        for _ in range(20):
            dist.all_reduce(torch.ones(4))
        begun = time.monotonic()
        dist.destroy_process_group()
        assert time.monotonic() - begun < 2
        """
    )
    assert done.returncode == 0, done.stderr
    assert armed_and_report(done.stderr) == sorted(armed_and_report(done.stderr))


def test_a_script_that_never_destroys_gets_its_report(python: Run) -> None:
    done = python(JOB)
    assert done.returncode == 0
    assert armed_and_report(done.stderr) == sorted(armed_and_report(done.stderr))


def test_closed_outputs_harm_nobody(python: Run) -> None:
    for close in ("sys.stderr.close()", "sys.stderr = None", "os.close(2)"):
        done = python(f"import os, sys; {close}\n" + JOB + DESTROY + "print('done')")
        assert (done.returncode, done.stdout) == (0, "done\n"), close


# Outside of the handler's own lock, for which logging itself waits at exit.
STUCK = """
import logging, time
class Stuck(logging.Handler):
    def handle(self, record):
        time.sleep(SECONDS)
logging.getLogger().addHandler(Stuck())
"""


def test_a_thread_in_a_slow_handler_is_left_behind_at_exit(python: Run) -> None:
    """The report goes straight to standard error, and neither the end of the group nor the exit waits for long."""
    done = python(
        STUCK.replace("SECONDS", "600")
        + JOB
        + "begun = time.monotonic()\n"
        + DESTROY
        + "assert time.monotonic() - begun < 3\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("NO VERDICT: ")  # the armed line is in the handler


def test_a_thread_that_wakes_up_in_a_dying_interpreter_crashes_nothing(python: Run) -> None:
    """Its handler sleeps into the end of the interpreter, which an object of the main module holds up for 4 s."""
    done = python(
        STUCK.replace("SECONDS", "3")
        + JOB
        + """
class Last:
    def __init__(self):
        self.sleep = time.sleep
    def __del__(self):
        self.sleep(4)
last = Last()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("NO VERDICT: ") and done.stderr.rstrip().splitlines()[-1].startswith("arrival skew")


def test_a_forked_child_has_a_log_of_its_own(python: Run) -> None:
    done = python(
        JOB
        + """
import os, signal
from datetime import timedelta
from torch_straggler import _C
child = os.fork()
if child == 0:
    signal.alarm(30)
    store = dist.HashStore()
    inner = dist.ProcessGroupGloo(store, 0, 1, timedelta(seconds=9))
    backend = _C.StragglerBackend(inner, store, group_id="own", global_ranks=[0])
    backend.shutdown()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
dist.destroy_process_group()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("straggler: armed: 1 of 1") == 2  # the parent's and the child's, each once
    assert done.stderr.count("NO VERDICT: ") == 2


def test_a_rule_that_never_happened_is_a_record_too(succeeds: Succeeds) -> None:
    said = succeeds(
        'import logging, sys; logging.basicConfig(format="<%(name)s %(levelname)s> %(message)s", stream=sys.stdout)\n'
        + JOB,
        STRAGGLER_INJECT="rank=0,where=input,ms=8",
    )
    assert "<torch_straggler WARNING> torch_straggler: injection rank=0,where=input,ms=8 never happened" in said
