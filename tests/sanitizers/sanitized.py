"""The torch layer under a sanitizer: its C++ tests, and real ranks on an instrumented `_C` in a plain Python and torch.

    tooling/rank_sanitizers.sh asan|tsan [words of a job's name...]

which builds, and calls this. First faults that are planted must be reported, in the same Python, with the same options:
else no report would mean nothing. What is found is in BUILD/sanitized, a file a process. Ends with 1 where anything was
found, a job or test failed, or a fault that was planted was not reported.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "multi_rank")]

from jobs import JOBS  # noqa: E402
from ranks import run_ranks  # noqa: E402

PLANTED = {"tsan": ["race"], "asan": ["overflow", "useAfterFree", "undefined"]}
PROGRAMS = ["c10d_tests", "faults_c10d_tests"]
REPORTED = re.compile(r"WARNING: ThreadSanitizer|ERROR: \w+Sanitizer|runtime error: |FATAL: ThreadSanitizer")
SECONDS = 300

# Leaks are looked for where Python is not: it leaves what it allocated at its exit, and what pybind11 made for it. Of
# torch, which is not instrumented, ThreadSanitizer sees the locks and the threads; what it reads and writes in libc's
# functions is left out. No report is suppressed.
OPTIONS = {
    "asan": {
        "ASAN_OPTIONS": "detect_stack_use_after_return=1:log_path={log}",
        "UBSAN_OPTIONS": "print_stacktrace=1",  # g++'s says it on standard error, whatever log_path
    },
    "tsan": {
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:die_after_fork=0:second_deadlock_stack=1:history_size=5:"
        "log_path={log}",
    },
}


@dataclass(frozen=True)
class Setting:
    """Where the instrumented files are, and how processes find them."""

    sanitizer: str
    build: Path

    @property
    def reports(self) -> Path:
        return self.build / "sanitized"

    def environment(self, name: str, python: bool = True) -> dict[str, str]:
        """Of a process whose findings go to a file `name`.PID; in Python the runtime comes before other libraries."""
        log = self.reports / re.sub(r"\W+", "-", name)
        values = {key: text.format(log=log) for key, text in OPTIONS[self.sanitizer].items()}
        if python:
            if self.sanitizer == "asan":
                values["ASAN_OPTIONS"] += ":detect_leaks=0"
            values |= {"LD_PRELOAD": self.runtime(), "PYTHONPATH": str(self.build / "package")}
        return values

    def runtime(self) -> str:
        compiler = os.environ.get("CXX", "c++")
        # With it libstdc++, whose symbols the runtime looks for when it starts.
        names = [f"lib{self.sanitizer}.so", "libstdc++.so.6"]
        paths = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
        return " ".join(paths)

    def found(self, name: str, said: str) -> int:
        """How many reports there are in the files of `name`, which are printed, and in what its processes said."""
        count = len(REPORTED.findall(said))
        for path in sorted(self.reports.glob(re.sub(r"\W+", "-", name) + ".*")):
            text = path.read_text(errors="replace")
            number = len(REPORTED.findall(text))
            if number:
                print(f"---- {path}: {number} reports\n{text[:6000]}")
            count += number
        return count


# ---- The three parts, each gives what is wrong -----------------------------------------------------------------------


def planted(setting: Setting) -> list[str]:
    wrong = []
    library = next(setting.build.glob("tests/*planted.so"))
    for fault in PLANTED[setting.sanitizer]:
        code = f"import ctypes, torch; ctypes.CDLL({str(library)!r}).{fault}()"
        environment = {**os.environ, **setting.environment(f"planted {fault}")}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=SECONDS
        )
        said = done.stderr + "".join(path.read_text() for path in setting.reports.glob(f"planted-{fault}.*"))
        if done.returncode == 0 or not REPORTED.search(said) or "planted.cc" not in said:
            wrong.append(f"{fault} was planted and is not reported: exit code {done.returncode}\n{said}")
        else:
            print(f"planted {fault}: reported, as it has to be")
    return wrong


def programs(setting: Setting) -> list[str]:
    wrong = []
    for name in PROGRAMS:
        begun = time.monotonic()
        environment = {**os.environ, **setting.environment(name, python=False)}
        command = [setting.build / "tests" / name, "--gtest_brief=1"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
        found = setting.found(name, done.stdout + done.stderr)
        ran = re.search(r"\d+ tests? from", done.stdout)
        print(f"{name}: {ran[0].split()[0] if ran else '?'} tests, {found} reports, {time.monotonic() - begun:.0f} s")
        if done.returncode != 0 or found:
            wrong.append(
                f"{name}: exit code {done.returncode}, {found} reports\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
            )
    return wrong


def jobs(setting: Setting, words: list[str]) -> list[str]:
    wrong, processes, total = [], 0, 0
    possible = [name for name, script in JOBS.items() if setting.sanitizer in script.sanitizers]
    chosen = [name for name in possible if not words or any(word in name for word in words)]
    for name in chosen:
        script, begun = JOBS[name], time.monotonic()
        processes += script.ranks
        folder = setting.reports / "jobs" / re.sub(r"\W+", "-", name)
        settings = {**setting.environment(name), **script.settings}
        try:
            done = run_ranks(folder, script.code, script.ranks, seconds=SECONDS, **settings)
            bad = done.exit_codes != [0] * script.ranks
            said = done.text()
        except AssertionError as late:
            bad, said = True, str(late)
        found = setting.found(name, said)
        total += found
        print(f"{name}: {script.ranks} ranks, {found} reports, {time.monotonic() - begun:.0f} s", flush=True)
        if bad or found:
            wrong.append(f"{name}: {found} reports\n{said[-6000:]}")
    print(f"{setting.sanitizer}: {len(chosen)} jobs of {processes} ranks, {total} reports")
    if not chosen:
        wrong.append(f"no job has {words} in its name; the jobs are {', '.join(possible)}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("sanitizer", choices=OPTIONS)
    parser.add_argument("build", type=Path)
    parser.add_argument("words", nargs="*", help="only jobs with one of them in their names, and no C++ tests")
    options = parser.parse_args()
    setting = Setting(options.sanitizer, options.build.resolve())
    shutil.rmtree(setting.reports, ignore_errors=True)
    setting.reports.mkdir()
    wrong = planted(setting)
    if not wrong and not options.words:
        wrong += programs(setting)
    if not wrong or not options.words:
        wrong += jobs(setting, options.words)
    for text in wrong:
        print(f"\nfailed: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
