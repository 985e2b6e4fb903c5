"""Delays that are no rule of the injection: a quota on processor time, a competing process, a slow link.

Each is put on a running rank at a step, from outside, and sized by what the rank used in the steps before. Needs root;
the quota is that of a control group (v1, `cpu`), the link a network namespace's with a token bucket (`tc tbf`). What
is left of them is taken off when the launch ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

CONTROL_GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 10_000
LEAST_QUOTA_US = 1_000  # the kernel's
COMPETITORS = 4
BURST_BYTES = 4_000
LEAST_RATE_BITS = 100_000
NETWORK = "10.77.0"


class Disturbance(Protocol):
    """What is done to one rank of a launch. `processes` are those of the ranks, in their order."""

    def prepare(self, processes: list[int], culprit: int) -> None:
        """Before the rank is disturbed, some steps before: to see what it uses."""

    def start(self, share: float, step_s: float) -> None:
        """For a share of the base, `step_s`: what it is a share of is each one's own matter."""

    def stop(self) -> None: ...


def processor_s(process: int) -> float:
    """What all threads of a process have run."""
    spent = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            spent += int((task / "schedstat").read_text().split()[0])
    return spent / 1e9


class Quota:
    """The rank may run for less than it did: a step that ran for c of its time t, under a quota of c / (1 + share)
    a t, takes (1 + share) t."""

    def __init__(self) -> None:
        self.group = CONTROL_GROUPS / f"straggler-scoreboard-{os.getpid()}"

    def prepare(self, processes: list[int], culprit: int) -> None:
        self.group.mkdir(exist_ok=True)
        (self.group / "cpu.cfs_quota_us").write_text("-1")
        (self.group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self.group / "cgroup.procs").write_text(str(processes[culprit]))
        self.process, self.at, self.spent = processes[culprit], time.monotonic(), processor_s(processes[culprit])

    def start(self, share: float, step_s: float) -> None:
        used = (processor_s(self.process) - self.spent) / (time.monotonic() - self.at)
        quota = max(LEAST_QUOTA_US, int(used / (1 + share) * PERIOD_US))
        (self.group / "cpu.cfs_quota_us").write_text(str(quota))

    def stop(self) -> None:
        if self.group.exists():
            (self.group / "cpu.cfs_quota_us").write_text("-1")
            for process in (self.group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):  # a process that has ended meanwhile
                    (CONTROL_GROUPS / "cgroup.procs").write_text(process)
            self.group.rmdir()


class Competing:
    """The rank has a processor for itself, the others share the rest; then processes that never sleep come to its."""

    def __init__(self) -> None:
        self.competitors: list[subprocess.Popen[bytes]] = []

    def prepare(self, processes: list[int], culprit: int) -> None:
        first, *rest = sorted(os.sched_getaffinity(0))
        for rank, process in enumerate(processes):
            _pin(process, {first} if rank == culprit else set(rest))
        self.processor = first

    def start(self, share: float, step_s: float) -> None:
        for _ in range(COMPETITORS):
            competitor = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            os.sched_setaffinity(competitor.pid, {self.processor})
            self.competitors.append(competitor)

    def stop(self) -> None:
        for competitor in self.competitors:
            competitor.kill()
            competitor.wait()
        self.competitors.clear()


def _pin(process: int, processors: set[int]) -> None:
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(task.name), processors)


class Network:
    """Each rank has a namespace and a link; the link of one is limited to what makes its bytes of a step take that
    much longer, in both directions."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.limited: list[list[str]] = []

    def prepare(self, processes: list[int], culprit: int) -> None:
        self.culprit, self.at, self.bytes = culprit, time.monotonic(), self._bytes(culprit)

    def _bytes(self, rank: int) -> int:
        """Of the direction that carries more."""
        counters = Path(f"/sys/class/net/{self.prefix}o{rank}/statistics")
        return max(int((counters / f"{way}_bytes").read_text()) for way in ("rx", "tx"))

    def start(self, share: float, step_s: float) -> None:
        a_step = (self._bytes(self.culprit) - self.bytes) / (time.monotonic() - self.at) * step_s
        rate = max(LEAST_RATE_BITS, int(8 * a_step / (share * step_s)))
        inside = ["ip", "netns", "exec", f"{self.prefix}{self.culprit}"]
        for where, device in ((inside, f"{self.prefix}i{self.culprit}"), ([], f"{self.prefix}o{self.culprit}")):
            limit = ["root", "tbf", "rate", f"{rate}bit", "burst", str(BURST_BYTES), "latency", "2s"]
            _run(*where, "tc", "qdisc", "add", "dev", device, *limit)
            self.limited.append([*where, "tc", "qdisc", "del", "dev", device, "root"])

    def stop(self) -> None:
        for command in self.limited:
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
        self.limited.clear()


@contextmanager
def links(ranks: int) -> Iterator[str]:
    """A namespace and a link for each rank, all on one bridge; gives the prefix of their names. Rank r has address
    10.77.0.(r + 1) on device PREFIXir in namespace PREFIXr."""
    prefix = f"sb{os.getpid() % 100_000}"
    try:
        _run("ip", "link", "add", f"{prefix}b", "type", "bridge")
        _run("ip", "link", "set", f"{prefix}b", "up")
        for rank in range(ranks):
            space, inner, outer = f"{prefix}{rank}", f"{prefix}i{rank}", f"{prefix}o{rank}"
            _run("ip", "netns", "add", space)
            _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
            _run("ip", "link", "set", outer, "master", f"{prefix}b", "up")
            inside = ("ip", "netns", "exec", space, "ip")
            _run(*inside, "addr", "add", f"{NETWORK}.{rank + 1}/24", "dev", inner)
            _run(*inside, "link", "set", inner, "up")
            _run(*inside, "link", "set", "lo", "up")
        yield prefix
    finally:
        for rank in range(ranks):
            subprocess.run(["ip", "link", "del", f"{prefix}o{rank}"], check=False, stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "netns", "del", f"{prefix}{rank}"], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", f"{prefix}b"], check=False, stderr=subprocess.DEVNULL)


def on_each_link(prefix: str, ranks: int, command: list[str], port: int) -> list[str]:
    """A command of `straggler run` as one that runs it in every namespace, a node each; ends when all have ended, with
    the first exit code that is not 0."""
    text = " ".join(f"'{part}'" for part in command[2:])
    script = f"""
      for r in {" ".join(map(str, range(ranks)))}; do
        GLOO_SOCKET_IFNAME={prefix}i$r ip netns exec {prefix}$r {command[0]} {command[1]} --nnodes={ranks} \\
          --node-rank=$r --nproc-per-node=1 --master-addr={NETWORK}.1 --master-port={port} {text} &
        nodes="$nodes $!"
      done
      code=0
      for node in $nodes; do wait $node || code=$?; done
      exit $code"""
    return ["bash", "-c", script]


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
