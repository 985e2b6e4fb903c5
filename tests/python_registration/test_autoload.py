"""`import torch` with the package installed: never broken, not slower, and no request is dropped silently."""

from collections.abc import Callable

from python_process import Run

# Before torch is imported: a library that was built for another torch, one that is missing, one that does not load.
WRONG_TORCH = """
import sys, types
sys.modules["torch_straggler._build_info"] = types.SimpleNamespace(BUILT_FOR_TORCH="1.13")
"""
NOT_BUILT = """
import sys
sys.modules["torch_straggler._build_info"] = None
"""
DOES_NOT_LOAD = """
import sys
sys.modules["torch_straggler._C"] = None
"""
REBUILD = "pip install --no-build-isolation"


def test_without_a_request_nothing_is_imported_and_it_takes_less_than_a_millisecond(
    succeeds: Callable[..., str],
) -> None:
    output = succeeds(
        """
        import sys, time, torch
        times = []
        for _ in range(7):
            sys.modules.pop("torch_straggler_autoload", None)
            begin = time.perf_counter()
            import torch_straggler_autoload
            torch_straggler_autoload.autoload()
            times.append(time.perf_counter() - begin)
        print(min(times), "torch_straggler" in sys.modules)
        """
    )
    seconds, imported = output.split()
    assert float(seconds) < 1e-3
    assert imported == "False"


def test_a_broken_library_does_not_break_import_torch(python: Run) -> None:
    for broken in (WRONG_TORCH, NOT_BUILT, DOES_NOT_LOAD):
        done = python("init('gloo'); print(dist.get_backend())", broken)
        assert (done.returncode, done.stdout, done.stderr) == (0, "gloo\n", "")


def test_a_request_that_a_broken_library_cannot_meet_is_one_line_and_an_error_at_the_first_group(python: Run) -> None:
    code = "print('imported')\ntry: init('gloo')\nexcept Exception as error: print(type(error), error)"
    for broken, said in ((WRONG_TORCH, "built for torch 1.13, but torch "), (NOT_BUILT, "is not built")):
        done = python(code, broken, STRAGGLER_INTERCEPT="gloo")
        assert done.returncode == 0
        assert len(done.stderr.splitlines()) == 1
        assert said in done.stderr and REBUILD in done.stderr
        imported, error = done.stdout.splitlines()
        assert imported == "imported"
        assert said in error and REBUILD in error and "STRAGGLER_INTERCEPT=gloo cannot be done" in error


def test_a_library_that_does_not_load_is_one_readable_error_at_the_first_group(python: Run) -> None:
    for settings, name in (({}, "straggler_gloo"), ({"STRAGGLER_INTERCEPT": "gloo"}, "gloo")):
        done = python(f"init({name!r})", DOES_NOT_LOAD, **settings)
        assert done.returncode != 0
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError: torch_straggler's library does not load") and REBUILD in last


def test_a_name_that_cannot_be_taken_over_is_one_line_and_an_error_at_the_first_group(python: Run) -> None:
    done = python("print('imported'); init('gloo')", STRAGGLER_INTERCEPT="gloo,mpi")
    assert done.returncode != 0
    assert done.stdout == "imported\n"
    assert done.stderr.startswith("torch_straggler: STRAGGLER_INTERCEPT=gloo,mpi: ")
    assert "'mpi' cannot be taken over; allowed: gloo, nccl" in done.stderr.strip().splitlines()[-1]


def test_asking_for_our_name_with_the_wrong_torch_says_how_to_rebuild(python: Run) -> None:
    done = python("init('straggler_gloo')", WRONG_TORCH)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: torch_straggler was built for torch 1.13, but torch ") and REBUILD in last


def test_importing_the_package_first_works_with_every_request(succeeds: Callable[..., str]) -> None:
    code = "import torch_straggler, torch; print(callable(torch_straggler.intercept), callable(torch_straggler.report))"
    assert succeeds(code) == "True True\n"
    assert succeeds(code, STRAGGLER_INTERCEPT="gloo", STRAGGLER_INJECT="rank=0,where=input,ms=1") == "True True\n"


def test_importing_the_package_initialises_no_device_and_loads_no_library(succeeds: Callable[..., str]) -> None:
    code = "import sys, torch_straggler, torch; print(torch.cuda.is_initialized(), 'torch_straggler._C' in sys.modules)"
    assert succeeds(code) == "False False\n"
