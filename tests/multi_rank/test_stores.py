"""Stores and addresses of all sorts: what gloo can start with, straggler_gloo can, and reports."""

import shutil
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ranks import Job, read_lines, run_command

TRAFFIC = """
for _ in range(20):
    dist.all_reduce(torch.ones(8))
    time.sleep(0.02)
group = dist.new_group()
dist.all_reduce(torch.ones(8), group=group)
dist.destroy_process_group()
"""


def free_port(family: socket.AddressFamily, host: str) -> str:
    with socket.socket(family) as server:
        server.bind((host, 0))
        return str(server.getsockname()[1])


def assert_reported(done: Job) -> None:
    assert not [line for rank in done.ranks for line in rank.our_lines], done.text()
    assert done.report["ranks_reported"] == 2
    assert done.report["collectives"] == 42
    assert not done.report["notes"]


def test_a_file_store_serves_and_reports(job: Callable[..., Job]) -> None:
    code = """
        dist.init_process_group(BACKEND, init_method=f"file://{os.getcwd()}/meeting", rank=RANK, world_size=WORLD)
        """
    assert_reported(job(code + TRAFFIC.replace("\n", "\n        ")).succeeded())


def test_leaving_takes_no_longer_than_on_gloo_whatever_ranks_meet_by(job: Callable[..., Job]) -> None:
    """The last frames wait for nothing, and none is lost: neither of a rank that is on time nor of one that is late."""
    code = """
        def leave(backend, store, late):
            dist.init_process_group(backend, store=store, rank=RANK, world_size=WORLD)
            dist.all_reduce(torch.ones(8))
            dist.barrier()
            if late and RANK == 1:
                time.sleep(0.05)
            begun = time.monotonic()
            dist.destroy_process_group()
            return time.monotonic() - begun

        def in_a_file(number):
            return dist.FileStore(f"{os.getcwd()}/{number}", WORLD)

        kinds = {
            "file": in_a_file,
            "prefix": lambda number: dist.PrefixStore("a", in_a_file(number)),
            "tcp": lambda number: store_of_round(),
        }
        took = {kind: {"gloo": [], "straggler_gloo": []} for kind in kinds}
        number = 0
        for late in (False, False, False, False, False, True):
            for kind, make in kinds.items():
                for backend, seconds in took[kind].items():
                    number += 1
                    seconds.append(leave(backend, make(number), late))
        tell(**took)
        """
    done = job(code).succeeded()
    for told in done.told:
        for kind, seconds in told.items():
            on_time = {backend: statistics.median(each[:5]) for backend, each in seconds.items()}
            assert on_time["straggler_gloo"] - on_time["gloo"] < 0.1, (kind, seconds)
    reports = done.of_type("report")
    assert [(report["ranks_reported"], report["collectives"], report["notes"]) for report in reports] == [
        (2, 4, [])
    ] * 18


def test_a_file_that_is_removed_costs_a_line_and_no_wait(beside_gloo: Callable[..., tuple[Job, Job]]) -> None:
    code = """
        path = f"{os.getcwd()}/meeting"
        dist.init_process_group(BACKEND, init_method=f"file://{path}", rank=RANK, world_size=WORLD)
        dist.all_reduce(torch.ones(8))
        dist.barrier()
        if RANK == 0:
            os.remove(path)
        dist.barrier()
        time.sleep(0.6)
        dist.all_reduce(torch.ones(8))
        begun = time.monotonic()
        dist.destroy_process_group()
        tell(took=time.monotonic() - begun, made_again=os.path.exists(path))
        """
    ours, gloos = beside_gloo(code)
    assert ours.exit_codes == gloos.exit_codes == [0, 0], ours.text() + gloos.text()
    for rank, gloo_rank in zip(ours.ranks, gloos.ranks, strict=True):
        assert rank.told["took"] - gloo_rank.told["took"] < 0.5, ours.text()
        assert not rank.told["made_again"]
    assert [len(rank.our_lines) for rank in ours.ranks] == [0, 1], ours.text()
    assert "the store cannot be reached any more (its file was removed)" in ours.ranks[1].our_lines[0]
    assert len(ours.operations(0)) == len(ours.operations(1)) == 4


def test_a_rank_that_is_gone_from_a_file_is_missing_and_waited_for_as_by_a_server(job: Callable[..., Job]) -> None:
    code = """
        took = {}
        for kind in ("file", "tcp"):
            store = dist.FileStore(f"{os.getcwd()}/meeting", WORLD) if kind == "file" else store_of_round()
            child = os.fork() if RANK == 1 else 0  # a rank for each kind, so that each can be killed
            if RANK == 1 and child:
                os.waitpid(child, 0)
                continue
            dist.init_process_group("straggler_gloo", store=store, rank=RANK, world_size=WORLD)
            dist.all_reduce(torch.ones(8))
            dist.barrier()
            if RANK == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            begun = time.monotonic()
            dist.destroy_process_group()
            took[kind] = time.monotonic() - begun
        tell(**took)
        """
    done = job(code).succeeded()
    took = done.told[0]
    assert took["file"] - took["tcp"] < 0.5
    assert took["file"] > 1, "it was not waited for"
    for report in done.of_type("report"):
        assert any("rank 1" in note for note in report["notes"])


def test_a_store_of_the_legacy_server_serves_and_reports(job: Callable[..., Job]) -> None:
    code = """
        port = int(os.environ["PORT"])
        store = dist.TCPStore("127.0.0.1", port, WORLD, RANK == 0, use_libuv=False)
        dist.init_process_group(BACKEND, store=store, rank=RANK, world_size=WORLD)
        """
    done = job(code + TRAFFIC.replace("\n", "\n        "), PORT=free_port(socket.AF_INET, "127.0.0.1"))
    assert_reported(done.succeeded())


def test_a_master_at_an_ipv6_address_serves_and_reports(job: Callable[..., Job]) -> None:
    """CASES 5.09."""
    try:
        port = free_port(socket.AF_INET6, "::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0")
    code = """
        os.environ.update(MASTER_ADDR="::1", MASTER_PORT=os.environ["PORT"])
        dist.init_process_group(BACKEND)
        """
    assert_reported(job(code + TRAFFIC.replace("\n", "\n        "), PORT=port).succeeded())


def test_without_ipv6_it_serves_and_reports(tmp_path: Path) -> None:
    """CASES 5.09: a network of its own, which has the IPv4 loopback and no more."""
    if not shutil.which("ip") or subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("a network of its own takes root, util-linux's unshare and iproute2's ip")
    within = (
        "ip link set lo up && echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && "
        'echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6 && ! grep -q . /proc/net/if_inet6 && exec "$@"'
    )
    (tmp_path / "script.py").write_text(
        "import time, torch, torch.distributed as dist\ndist.init_process_group('gloo')\n" + TRAFFIC
    )
    run = (str(Path(sys.executable).with_name("straggler")), "run", "--nproc-per-node=2", "script.py")
    records = tmp_path / "records"
    done = run_command(
        tmp_path, "/usr/bin/env", "unshare", "--net", "sh", "-c", within, "sh", *run, STRAGGLER_DIR=str(records)
    )
    assert done.returncode == 0, done.stderr
    report = read_lines(records / "job.jsonl")[-1]
    assert (report["ranks_reported"], report["collectives"], report["notes"]) == (2, 42, [])


def test_a_host_name_that_does_not_resolve_is_no_matter_of_ours(beside_gloo: Callable[..., tuple[Job, Job]]) -> None:
    """CASES 5.12: what gloo makes of it is what straggler_gloo makes of it."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode:
        pytest.skip("a host name of its own takes root and util-linux's unshare")
    rename = ("unshare", "--uts", "sh", "-c", 'hostname nowhere-at-all && exec "$@"', "sh")
    code = """
        init(timeout=timedelta(seconds=20))
        import socket
        tell(host=socket.gethostname())
        """
    ours, gloos = beside_gloo(code + TRAFFIC.replace("\n", "\n        "), before=lambda rank: rename)
    assert ours.told[0]["host"] == gloos.told[0]["host"] == "nowhere-at-all"
    assert ours.exit_codes == gloos.exit_codes == [0, 0], ours.text() + gloos.text()
    assert_reported(ours)


def test_a_connection_of_ours_that_is_reset_costs_a_line_and_the_figures_of_its_rank(job: Callable[..., Job]) -> None:
    """CASES 5.13: rank 1's. It is not made again; training, the records and the report of the others are as before."""
    code = """
        import socket

        def to_store():
            found = set()
            for number in map(int, os.listdir("/proc/self/fd")):
                try:
                    with socket.socket(fileno=os.dup(number)) as end:
                        if end.getpeername()[1] == int(os.environ["MASTER_PORT"]):
                            found.add(number)
                except OSError:
                    pass  # no socket, or none with another end
            return found

        store = store_of_round()
        users = to_store()
        dist.init_process_group(BACKEND, store=store, rank=RANK, world_size=WORLD)
        for number in range(60):
            dist.all_reduce(torch.ones(2))
            time.sleep(0.02)
            if number == 20 and RANK == 1:
                (ours,) = to_store() - users
                with socket.socket(fileno=os.dup(ours)) as end:
                    end.shutdown(socket.SHUT_RDWR)
        dist.new_group()  # the user's own connection is as it was
        dist.destroy_process_group()
        """
    done = job(code).succeeded()
    assert not done.ranks[0].our_lines, done.text()
    (line,) = done.ranks[1].our_lines
    assert "rank 1: the store cannot be reached any more" in line
    assert [len(done.operations(rank)) for rank in range(2)] == [60, 60]
    assert any("rank 1 has not told its end" in note for note in done.report["notes"])
