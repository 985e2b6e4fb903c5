"""A folder that really is slow to read: what reads from it sleeps in the kernel until the bytes are there.

Two of them, under one interface. `LoopDisk` is a disk image behind a loop device whose reads the kernel throttles
(cgroup version 1, blkio): a slow disk, with its file system, its page cache and its read-ahead. It needs root. The
kernel throttles by tenths of a second: batches that take it less come in bursts, some at once and some late. `Pipe` is
for everyone else: the file is a named pipe, and a process writes its bytes into it at a limited rate.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType

READ_AHEAD_KB = 128  # as disks have it; of loop devices it may be some megabytes
SPARE_MB = 24  # of a disk image, for its file system
PIECES_PER_SECOND = 100


class LoopDisk(AbstractContextManager["LoopDisk"]):
    """A disk image at `folder`, with `file` on it. A command of `limited()` reads it at `megabytes_a_second`."""

    what = "a loop device, throttled by the kernel"

    def __init__(self, file: Path, folder: Path, megabytes_a_second: float) -> None:
        self._stack = ExitStack()
        self._group = own_blkio_group() / f"slow-disk-{os.getpid()}"
        try:
            self._make(file, folder, megabytes_a_second)
        except BaseException:
            self._stack.close()
            raise

    def _make(self, file: Path, folder: Path, megabytes_a_second: float) -> None:
        image = folder.with_suffix(".img")
        with open(image, "wb") as out:
            out.truncate(file.stat().st_size + SPARE_MB * 2**20)
        run("mkfs.ext4", "-q", "-F", str(image))
        self._stack.callback(image.unlink)
        run("mount", "-o", "loop", str(image), str(folder))
        shutil.copy(file, folder / file.name)
        run("umount", str(folder))
        run("mount", "-o", "loop", str(image), str(folder))  # nothing of it is in memory now
        self._stack.callback(run, "umount", "--lazy", str(folder))
        device = os.stat(folder).st_dev
        name = f"{os.major(device)}:{os.minor(device)}"
        Path(f"/sys/dev/block/{name}/queue/read_ahead_kb").write_text(str(READ_AHEAD_KB))
        self._group.mkdir()
        self._stack.callback(self._group.rmdir)
        limit = self._group / "blkio.throttle.read_bps_device"
        limit.write_text(f"{name} {int(megabytes_a_second * 1e6)}")

    def limited(self, command: list[str]) -> list[str]:
        """The command, with all its processes in the group whose reads are throttled."""
        return ["sh", "-c", f'echo $$ > {self._group}/cgroup.procs && exec "$@"', "sh", *command]

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()


class Pipe(AbstractContextManager["Pipe"]):
    """A named pipe in `folder`, of the name of `file`, that gives its bytes at `megabytes_a_second`, once."""

    what = "a process that reads for it, at a limited rate"

    def __init__(self, file: Path, folder: Path, megabytes_a_second: float) -> None:
        self._pipe = folder / file.name
        os.mkfifo(self._pipe)
        self._writer = subprocess.Popen(
            [sys.executable, __file__, str(file), str(self._pipe), str(megabytes_a_second)], stderr=subprocess.DEVNULL
        )

    def limited(self, command: list[str]) -> list[str]:
        return command

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.terminate()
        self._writer.wait()
        self._pipe.unlink()


def slow_disk(file: Path, folder: Path, megabytes_a_second: float, kind: str = "auto") -> LoopDisk | Pipe:
    """The slowness that this machine can do; `kind` is `auto`, `loop` or `pipe`. Raises OSError where that fails."""
    if kind != "pipe":
        try:
            return LoopDisk(file, folder, megabytes_a_second)
        except (OSError, subprocess.CalledProcessError) as error:
            if kind == "loop":
                raise OSError(f"no throttled loop device here: {error}") from error
    return Pipe(file, folder, megabytes_a_second)


def own_blkio_group() -> Path:
    """The folder of this process's group in cgroup v1's blkio hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "blkio" in controllers.split(","):
            return Path(f"/sys/fs/cgroup/blkio{path}")
    raise OSError("this kernel throttles no reads by cgroup v1")


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write_slowly(source: Path, pipe: Path, megabytes_a_second: float) -> None:
    """Copies, one piece each hundredth of a second. A reader that pauses finds no more than the pipe holds."""
    piece = int(megabytes_a_second * 1e6 / PIECES_PER_SECOND)
    with open(source, "rb") as read, open(pipe, "wb", buffering=0) as write:
        while data := read.read(piece):
            next_piece = time.monotonic() + 1 / PIECES_PER_SECOND
            view = memoryview(data)
            while view:
                view = view[write.write(view) :]
            time.sleep(max(0.0, next_piece - time.monotonic()))


if __name__ == "__main__":
    write_slowly(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
