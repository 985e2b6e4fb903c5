"""What torch itself counted, written down at the end of each rank: an account of a job that owes nothing to ours.

Python imports a module of this name when it starts. The script is left as it is.

- Gloo's own C++ keeps a Flight Recorder, with an entry for each collective that it was asked for. At the exit of the
  interpreter, after all else, its entries are written down: group and kind. It has none for point to point calls and
  `monitored_barrier`, and calls a reduce_scatter an all_reduce, since gloo makes it of one.
- Each group has a sequence number, in gloo's C++ too, that counts every operation, point to point included, and each
  send and receive of a `monitored_barrier`. It is asked for just before the group is destroyed.
"""

import atexit
import functools
import importlib.util
import json
import os
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

C10D = "torch.distributed.distributed_c10d"
totals = {}


def note_totals(groups):
    for group in groups:
        try:
            number = group._get_sequence_number_for_group()
        except (AttributeError, RuntimeError):
            continue  # this rank is no member of it, or it has none
        name = group.group_name
        totals[name] = totals.get(name, 0) + number


class AfterImport(MetaPathFinder):
    """Wraps `destroy_process_group` as soon as the module that has it is there."""

    def find_spec(self, name, path=None, target=None):
        if name != C10D:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        plain = spec.loader.exec_module

        def exec_module(module):
            plain(module)
            wrap(module)

        spec.loader.exec_module = exec_module
        return spec


def wrap(c10d):
    plain = c10d.destroy_process_group

    @functools.wraps(plain)
    def destroy_process_group(group=None):
        everything = group is None or group is c10d.GroupMember.WORLD
        note_totals(list(c10d._world.pg_map) if everything else [group])
        return plain(group)

    c10d.destroy_process_group = destroy_process_group


def write_down(folder):
    c10d = sys.modules.get(C10D)
    if c10d is None:
        return
    note_totals(list(c10d._world.pg_map))
    trace = json.loads(sys.modules["torch"]._C._distributed_c10d._dump_fr_trace_json(True, False))
    entries = [[*entry["process_group"], entry["profiling_name"]] for entry in trace.get("entries", [])]
    place = f"{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}.{os.getpid()}.json"
    Path(folder, place).write_text(json.dumps({"entries": entries, "totals": totals}))


if "RANK" in os.environ and "FEATURE_COUNTS" in os.environ:
    sys.meta_path.insert(0, AfterImport())
    atexit.register(write_down, os.environ["FEATURE_COUNTS"])
