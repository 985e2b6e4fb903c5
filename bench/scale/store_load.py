"""How many ranks can tell one root over one TCPStore, each for itself?

    cd bench/scale
    python store_load.py measure --json results/store.json
    python store_load.py simulate results/store.json --json results/load.json

`measure` asks a real TCPStore, in a process of its own, what 2 to 64 ranks and a root ask it
(`c10d/store_exchange.cc`), as fast as it answers: the server's processor time a request, and how long the root needs
for a frame. `simulate` lets 64 to 8,192 ranks send at their own times to a server and a root that need as long.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import random
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CLIENTS = (2, 8, 32, 64)
SECONDS = 2.0
FRAME_BYTES = 256  # a window, 15 arrivals, now and then counters
PROCESSES = 4  # that the clients are threads of
SEND_PERIOD = 0.25  # s, of Monitor::kSendPeriod
RANKS = (64, 256, 1024, 2048, 3072, 4096, 5120, 6144, 8192)
WINDOW = 1.0  # s: 10 steps of 100 ms
ROOT_PERIOD = 0.05  # s, of a root that found nothing
WAYS = (  # ranks whose messages go in one frame, seconds between a sender's turns
    (1, SEND_PERIOD),
    (1, WINDOW),
    (8, SEND_PERIOD),
)


# ---- Measuring -------------------------------------------------------------------------------------------------------


def _connect(port: int) -> Any:
    from torch.distributed import TCPStore

    return TCPStore("127.0.0.1", port, is_master=False, use_libuv=True)


def serve() -> None:
    """Holds the server until standard input ends."""
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=True)
    print(store.port, flush=True)
    sys.stdin.read()


def clients(port: int, count: int) -> None:
    """`count` ranks, each a thread with a connection: frames pushed until the time is over, printed when it is."""
    stores = [_connect(port) for _ in range(count)]
    pushed = [0] * count
    print("ready", flush=True)
    end = time.monotonic() + float(sys.stdin.readline())

    def rank(number: int) -> None:
        store, frame = stores[number], "x" * FRAME_BYTES
        while time.monotonic() < end:
            store.check(["leaving"])
            if store.queue_len("frames") < 4096:
                store.queue_push("frames", frame)
                pushed[number] += 1

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(pushed), flush=True)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _tell(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def _root_alone(port: int, frames: int) -> dict[str, float]:
    """Seconds a frame, and of them on its own processor, of a root whom nobody else disturbs."""
    store = _connect(port)
    for _ in range(frames):
        store.queue_push("frames", "x" * FRAME_BYTES)
    begun, worked = time.monotonic(), time.thread_time()
    while store.queue_len("frames") > 0:
        store.queue_pop("frames", False)
    return {
        "frame_us": 1e6 * (time.monotonic() - begun) / frames,
        "processor_us": 1e6 * (time.thread_time() - worked) / frames,
    }


def _under_load(port: int, server: int, count: int) -> dict[str, float]:
    shares = [count // PROCESSES + (i < count % PROCESSES) for i in range(PROCESSES)]
    started = [_start("clients", str(port), str(share)) for share in shares if share]
    root = _connect(port)
    for process in started:
        _said(process)
    before, begun = _processor_seconds(server), time.monotonic()
    for process in started:
        _tell(process, str(SECONDS))
    taken = looks = 0
    while time.monotonic() < begun + SECONDS:
        looks += 1
        if root.queue_len("frames") > 0:
            root.queue_pop("frames", False)
            taken += 1
    seconds, worked = time.monotonic() - begun, _processor_seconds(server) - before
    pushed = sum(int(_said(process)) for process in started)
    for process in started:
        process.wait()
    requests = 3 * pushed + looks + taken
    while root.queue_len("frames") > 0:
        root.queue_pop("frames", False)
    return {
        "clients": count,
        "requests_per_s": requests / seconds,
        "pushed_per_s": pushed / seconds,
        "taken_per_s": taken / seconds,
        "server_us_per_request": 1e6 * worked / requests,
    }


def measure() -> dict[str, Any]:
    import torch

    server = _start("serve")
    port = int(_said(server))
    alone = _root_alone(port, 4000)
    rows = [_under_load(port, server.pid, count) for count in CLIENTS]
    assert server.stdin is not None
    server.stdin.close()
    server.wait()
    return {
        "command": "bench/scale/store_load.py measure",
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}",
        "frame_bytes": FRAME_BYTES,
        "root_alone": alone,
        "under_load": rows,
    }


# ---- Simulating ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Service:
    """Seconds.

    Attributes:
        request: the server's, each.
        trip: of a request, what the client and the network need beside it.
        work: the root's for a frame, beside its requests.
    """

    request: float
    trip: float
    work: float = 0.0


@dataclass(frozen=True)
class Load:
    """What a number of ranks are to the store. Delays are from a rank's turn to the root having its frame, seconds."""

    ranks: int
    ranks_a_frame: int
    period: float
    frames_per_s: float
    taken_per_s: float
    server_busy: float
    delay_p50: float
    delay_max: float
    waiting: int  # frames, in the end

    @property
    def keeps_up(self) -> bool:
        return self.delay_max < WINDOW


def simulate(ranks: int, service: Service, seconds: float, ranks_a_frame: int = 1, period: float = SEND_PERIOD) -> Load:
    """Senders ask three times in their turn (leaving, queue's length, push), the root twice a frame (length, pop).

    One server answers in the order in which requests come in. Senders have turns every `period` seconds, each at a
    phase of its own; where `ranks_a_frame` ranks are collected before, there are so many fewer.
    """
    chance = random.Random(1)
    senders = ranks // ranks_a_frame
    free = 0.0  # when the server has answered all that came in
    busy = 0.0
    queue: deque[float] = deque()  # turns of the frames in it
    delays: list[float] = []
    # (time at which a request comes in, tie, who: sender or -1, which of its requests, turn of its frame)
    events = [(chance.uniform(0, period), i, i, 0, 0.0) for i in range(senders)]
    heapq.heapify(events)
    heapq.heappush(events, (0.0, -1, -1, 0, 0.0))
    tie = senders
    while events and events[0][0] < seconds:
        now, _, who, stage, turn = heapq.heappop(events)
        free = max(free, now) + service.request
        busy += service.request
        answered = free + service.trip
        tie += 1
        if who >= 0:
            turn = now if stage == 0 else turn
            if stage < 2:
                heapq.heappush(events, (answered, tie, who, stage + 1, turn))
            else:
                queue.append(turn)
                heapq.heappush(events, (max(answered, turn + period), tie, who, 0, 0.0))
        elif stage == 0:
            heapq.heappush(events, (answered, tie, -1, 1, 0.0) if queue else (answered + ROOT_PERIOD, tie, -1, 0, 0.0))
        else:
            delays.append(answered - queue.popleft())
            heapq.heappush(events, (answered + service.work, tie, -1, 0, 0.0))
    late = sorted(delays[len(delays) // 2 :])
    oldest = max([late[-1] if late else 0.0] + [seconds - turn for turn in queue])
    return Load(
        ranks,
        ranks_a_frame,
        period,
        senders / period,
        len(delays) / seconds,
        min(busy / seconds, 1.0),
        late[len(late) // 2] if late else 0.0,
        oldest,
        len(queue),
    )


def service_of(measured: dict[str, Any]) -> Service:
    """The server's time a request with the most clients; the root's trips as they were without others.

    Its own work a frame is that of the model (bench/micro, 119 ms for a window of 8,192 ranks in four frames each);
    decoding is left out.
    """
    request = 1e-6 * measured["under_load"][-1]["server_us_per_request"]
    return Service(request, max(0.0, 1e-6 * measured["root_alone"]["frame_us"] / 2 - request), 0.119 / (4 * 8192))


def loads(service: Service, seconds: float) -> list[Load]:
    return [simulate(ranks, service, seconds, share, period) for share, period in WAYS for ranks in RANKS]


def show(rows: list[Load]) -> None:
    print("| ranks a frame | every (s) | ranks | frames/s | taken/s | server busy | delay p50, max (s) | keeps up |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row.ranks_a_frame} | {row.period:g} | {row.ranks:,} | {row.frames_per_s:,.0f} "
            f"| {row.taken_per_s:,.0f} | {row.server_busy:.0%} | {row.delay_p50:.3f}, {row.delay_max:.3f} "
            f"| {'yes' if row.keeps_up else 'no'} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    simulating = commands.add_parser("simulate")
    simulating.add_argument("measured", type=Path)
    simulating.add_argument("--seconds", type=float, default=6.0)
    for command in (measuring, simulating):
        command.add_argument("--json", type=Path)
    commands.add_parser("serve")
    client = commands.add_parser("clients")
    client.add_argument("port", type=int)
    client.add_argument("count", type=int)
    options = parser.parse_args()
    if options.command == "serve":
        return serve()
    if options.command == "clients":
        return clients(options.port, options.count)
    if options.command == "measure":
        document = measure()
        print(json.dumps(document, indent=2))
    else:
        measured = json.loads(options.measured.read_text())
        service = service_of(measured)
        rows = loads(service, options.seconds)
        show(rows)
        document = {
            "command": f"bench/scale/store_load.py simulate {options.measured} --seconds {options.seconds:g}",
            "service": asdict(service),
            "rows": [asdict(row) | {"keeps_up": row.keeps_up} for row in rows],
        }
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
