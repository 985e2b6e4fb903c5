"""What others put in our way: files where records go, and whatever is found in the store."""

import re
from pathlib import Path

import pytest
from alike import BesideGloo
from ranks import Job, run_ranks

PACKAGE = Path(__file__).parents[2] / "python_registration" / "torch_straggler"
BACKEND = Path(__file__).parents[2] / "backend"


def test_another_file_in_the_place_of_records_is_refused_before_the_first_collective(tmp_path: Path) -> None:
    """The target of a link is not touched, and a pipe is not waited for."""
    code = """
        records = os.environ["STRAGGLER_DIR"]
        os.mkdir(records)
        open("target", "w").write("kept")
        said = {}
        link = lambda place: os.symlink(os.path.abspath("target"), place)
        for name in ("rank-00000.jsonl", "job.jsonl"):
            for kind, make in (("link", link), ("pipe", os.mkfifo)):
                place = os.path.join(records, name)
                make(place)
                try:
                    init()
                except ValueError as error:
                    said[f"{kind} {name}"] = str(error)
                os.remove(place)
        init()
        dist.all_reduce(torch.ones(2))
        dist.destroy_process_group()
        tell(said=said, target=open("target").read())
        """
    told = run_ranks(tmp_path, code, 1, seconds=30).succeeded().told[0]
    assert len(told["said"]) == 4
    for what, said in told["said"].items():
        assert what.split()[1] in said and "STRAGGLER_DIR" in said
    assert told["target"] == "kept"


# Rank 1 is hostile. It knows the store, so it finds our keys there, and writes whatever it likes.
HOSTILE = '''
import pickle
import torch_straggler
from torch_straggler import _C

class Trap:
    def __reduce__(self):
        return os.system, (f"touch {os.path.abspath('executed')}",)

def hello(rank, host):
    """A frame that is right in form: the version, the rank, one message of type 0 with host, process and clock."""
    return bytes([VERSION, rank, 1, 0, len(host)]) + host + bytes([0, 0])

launcher = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
init()
result = torch.ones(4)
for number in range(150):
    dist.all_reduce(result.fill_(1))
    time.sleep(0.02)
    if number == 100 and RANK == 1:
        (counter,) = (key for key in launcher.list_keys() if key.endswith("straggler/round/1"))
        ours = counter.removesuffix("round/1") + "1/"
        frames = [b"", b"\\x00", b"\\xff" * 100, pickle.dumps(Trap())]
        frames += [bytes([VERSION]) * (2 << 20), bytes([VERSION + 1, 1, 0])]
        frames += [hello(1, b"\\x1b[2J\\nSTRAGGLER rank 0 (x)"), hello(99, b"stranger"), hello(1, b"x")[:-1]]
        for frame in frames:
            launcher.queue_push(ours + "frames", frame)
        found = []

        def until(wanted, report):
            limit = time.monotonic() + 10
            while type(torch_straggler.report()).__name__ != wanted and time.monotonic() < limit:
                launcher.set(ours + "report", report)  # again: the root sets it too, every five seconds
                time.sleep(0.3)
            found.append(type(torch_straggler.report()).__name__)

        until("JobReport", b"")
        right = _C.report_json().encode()
        for report in (b"", b"x" * (5 << 20)):
            launcher.set(ours + "report", report)
            time.sleep(1.5)  # a rank looks once a second
            until("JobReport", report)
        for number, garbage in enumerate((pickle.dumps(Trap()), b"{" * 4000, b"[1]")):
            until("NoneType", bytes([200 + 2 * number]) * 8 + garbage)
            until("JobReport", bytes([201 + 2 * number]) * 8 + right)
        tell(found=found)
tell(result=result.tolist(), keys=[key for key in launcher.list_keys() if "straggler" in key])
dist.barrier()
dist.destroy_process_group()
tell(executed=os.path.exists("executed"))
'''


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Job:
    version = re.search(r"kCodecVersion = (\d+);", (BACKEND / "exchange" / "codec.h").read_text())
    assert version
    code = HOSTILE.replace("VERSION", version.group(1))
    return run_ranks(tmp_path_factory.mktemp("hostile"), code, 2).succeeded()


def test_hostile_bytes_in_the_store_change_nothing_and_are_counted(hostile: Job) -> None:
    assert [told["result"] for told in hostile.told] == [[2.0] * 4] * 2
    assert [told["executed"] for told in hostile.told] == [False, False]
    assert any(re.match("[1-9][0-9]* frames could not be read", note) for note in hostile.report["notes"])
    assert hostile.report["collectives"] == 2 * 151


def test_a_hostile_report_is_no_report(hostile: Job) -> None:
    """An empty one and one of 5 MB leave what was there before; one that is newer and no report leaves none."""
    assert hostile.told[1]["found"] == ["JobReport"] * 3 + ["NoneType", "JobReport"] * 3


def test_names_of_strangers_reach_no_terminal_as_they_are(hostile: Job) -> None:
    said = hostile.ranks[0].stderr
    assert "?[2J?STRAGGLER rank 0 (x)" in said
    assert "\x1b" not in said
    assert not [line for line in said.splitlines() if line.startswith("STRAGGLER")]


def test_all_our_keys_in_the_store_have_one_prefix_and_are_few(hostile: Job) -> None:
    names = {key.partition("straggler/")[2] for key in hostile.told[0]["keys"]}
    assert names <= {"round/0", "round/1", "1/frames", "1/report", "1/leaving", "1/beat"}


def test_no_port_is_opened_and_one_connection_is_made(beside_gloo: BesideGloo) -> None:
    """CASES 5.06, 5.10, 5.11: as many sockets of a process listen as on gloo, and one more leads to the store."""
    code = """
        def sockets(counts):  # of this process
            inodes = set()
            for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
                with open(table) as lines:
                    rows = [line.split() for line in lines][1:]
                inodes |= {row[9] for row in rows if counts(row)}
            links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                     if os.path.exists(f"/proc/self/fd/{fd}")]
            return sum(f"socket:[{inode}]" in links for inode in inodes)

        init()
        groups = [dist.new_group() for _ in range(3)]
        dist.all_reduce(torch.ones(2))
        time.sleep(0.5)
        store = f":{int(os.environ['MASTER_PORT']):04X}"
        tell(listening=sockets(lambda row: row[3] == "0A"), to_store=sockets(lambda row: row[2].endswith(store)))
        dist.barrier()
        dist.destroy_process_group()
        """
    ours, gloos = beside_gloo(code)
    for told, gloo in zip(ours.succeeded().told, gloos.succeeded().told, strict=True):
        assert told["listening"] == gloo["listening"]
        assert told["to_store"] == gloo["to_store"] + 1


def test_nothing_is_unpickled_evaluated_or_listened_on() -> None:
    """By the words of the sources, the package's and the C++ side's."""
    forbidden = re.compile(r"\b(pickle|marshal|shelve|yaml|torch\.load|eval|exec)\b\s*[.(]|\b(socket|listen)\(")
    sources = [*PACKAGE.glob("*.py"), *BACKEND.rglob("*.cc"), *BACKEND.rglob("*.h")]
    assert len(sources) > 80
    found = [
        f"{source}: {match.group()}" for source in sources for match in [forbidden.search(source.read_text())] if match
    ]
    assert not found
