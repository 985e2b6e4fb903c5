"""Programs are run once a session, all in one job: to start its ranks takes longer than most of them."""

import os
from pathlib import Path
from typing import Any

import pytest
from programs import Program, read
from ranks import run_ranks

HERE = Path(__file__).parent
RUN = f"""
sys.path.insert(0, {str(HERE)!r})
import programs, program_table
from pathlib import Path
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
named = [program_table.BY_NAME[name] for name in os.environ["PROGRAMS"].split(",")]
programs.run(named, RANK, Path(os.environ["TEST_JOB"]), store)
"""
# On gloo, where nobody is ever late, the closed form must hold too: MITIGATION_BACKEND=gloo shows that a test is right.
BACKEND = os.environ.get("MITIGATION_BACKEND", "straggler_gloo")


class Outcomes:
    """What the ranks saw of programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[str, list[dict[str, Any]]] = {}
        self.failed: dict[str, str] = {}
        self.records: dict[str, Path] = {}  # the folder that STRAGGLER_DIR named
        self.said: dict[str, str] = {}  # what the ranks said, of all programs of the job

    def of(self, program: Program) -> list[dict[str, Any]]:
        """By rank."""
        if program.name in self.failed:
            pytest.fail(f"{program.name}: {self.failed[program.name]}")
        return self.seen[program.name]

    def run(self, programs: list[Program], **settings: str) -> None:
        """Runs all; after one that fails, those behind it in a job of their own."""
        while programs:
            folder = self.folder / programs[0].name
            names = ",".join(program.name for program in programs)
            ranks = max(program.ranks for program in programs)
            try:
                seconds = 40 + 5 * len(programs)
                said = run_ranks(folder, RUN, ranks, seconds, PROGRAMS=names, BACKEND=BACKEND, **settings).text()
            except AssertionError as late:
                said = str(late)
            done = [p for p in programs if all((folder / f"{p.name}-{r}.npz").exists() for r in range(p.ranks))]
            for program in done:
                self.seen[program.name] = [read(folder, program, rank) for rank in range(program.ranks)]
                self.records[program.name], self.said[program.name] = folder / program.name, said
            left = programs[len(done) :]
            if left:
                self.failed[left[0].name] = said
            programs = left[1:]
