"""Settings that are wrong are refused before any collective; records that cannot be written never end the training."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ranks import Job


def test_what_is_not_valid_is_an_error_that_says_what_is(job: Callable[..., Job]) -> None:
    """Each on both ranks; then, with what is valid, all works."""
    code = """
        open("file", "w").close()
        wrong = {
            "STRAGGLER_WINDOWS": ["10"], "STRAGGLER_WINDOW": ["ten", "0", "1001", "-3", "1.5", ""],
            "STRAGGLER_DIR": ["", "file", "file/folder", "/proc/folder"], "STRAGGLER_INTERCEPT": ["mpi", "gloo,,nccl"],
        }
        kept = os.environ.pop("STRAGGLER_DIR")
        said = {}
        for name, values in wrong.items():
            for value in values:
                os.environ[name] = value
                try:
                    init()
                    said[f"{name}={value}"] = "accepted"
                    dist.destroy_process_group()
                except ValueError as error:
                    said[f"{name}={value}"] = str(error)
                del os.environ[name]
        os.environ["STRAGGLER_DIR"] = kept
        init()
        ones = torch.ones(2)
        dist.all_reduce(ones)
        dist.destroy_process_group()
        tell(said=said, right=ones.tolist())
        """
    done = job(code).succeeded()
    for rank, told in enumerate(done.told):
        assert told["right"] == [2, 2]
        said = told["said"]
        assert len(said) == 13
        assert "STRAGGLER_DIR, STRAGGLER_INTERCEPT, STRAGGLER_INJECT, STRAGGLER_WINDOW" in said["STRAGGLER_WINDOWS=10"]
        for name, text in said.items():
            setting, _, value = name.partition("=")
            assert setting in text
            if setting == "STRAGGLER_WINDOW":
                assert f"'{value}' is not valid; allowed: a whole number from 1 to 1000" in text
            if setting == "STRAGGLER_INTERCEPT":
                assert "allowed: gloo, nccl" in text
            if setting == "STRAGGLER_DIR":
                assert "a folder that can be written" in text or "name a folder that can be written" in text
        assert [op["collective_seq_id"] for op in done.operations(rank)] == [0]


# ---- Records that cannot be written ----------------------------------------------------------------------------------

TRAINING = """
        init()
        result = torch.ones(4)
        for number in range(3000):
            dist.all_reduce(result.fill_(1))
            if number == 500:
                time.sleep(0.5)
                dist.barrier()
                if RANK == 0:
                    REMOVE
                dist.barrier()
        tell(result=result.tolist())
        dist.destroy_process_group()
        """


def assert_lost_and_said_once(done: Job, reason: str) -> None:
    """One line on each rank, and the report of what was lost; training is not touched."""
    done.succeeded()
    assert [told["result"] for told in done.told] == [[2.0] * 4] * 2
    for rank in done.ranks:
        assert len([line for line in rank.our_lines if "records are lost" in line and reason in line]) == 1, done.text()
        assert len(rank.our_lines) == 1, done.text()
    said = [line for line in done.ranks[0].stderr.splitlines() if line.startswith("note: ")]
    (lost,) = (line for line in said if "records were dropped or could not be written" in line)
    assert int(lost.split()[1]) > 1000


def test_a_folder_that_is_removed_costs_its_records_and_one_line(job: Callable[..., Job]) -> None:
    code = TRAINING.replace("REMOVE", 'import shutil; shutil.rmtree(os.environ["STRAGGLER_DIR"])')
    assert_lost_and_said_once(job(code), "the file was removed")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    made = subprocess.run(mount, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a small disk takes root and the right to mount: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_fills_costs_the_records_and_one_line(small_disk: Path, job: Callable[..., Job]) -> None:
    done = job(TRAINING.replace("REMOVE", "pass"), STRAGGLER_DIR=str(small_disk / "records"))
    assert_lost_and_said_once(done, "No space left on device")
