"""The two names in torch's tables, and what the creator hands to torch's own."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from python_process import Run


def test_names_types_and_devices(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        import torch_straggler, torch.distributed as dist
        for name in ("straggler_gloo", "straggler_nccl"):
            B = dist.Backend
            print(name, B.backend_type_map[name].name, B.backend_capability[name], dist.is_backend_available(name))
        """
    )
    assert output.splitlines() == [
        "straggler_gloo CUSTOM ['cpu', 'cuda'] True",
        "straggler_nccl NCCL ['cuda'] True",
    ]


def test_registering_changes_nothing_for_other_names(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        import torch.distributed as dist
        B = dist.Backend
        before = [dict(B.default_device_backend_map), dict(B.backend_type_map), dict(B.backend_capability)]
        del B.default_device_backend_map["mps"]  # a device without a default does not become ours
        import torch_straggler
        from torch_straggler.register import register
        register()
        after = [dict(B.default_device_backend_map), dict(B.backend_type_map), dict(B.backend_capability)]
        print(after[0] == {device: name for device, name in before[0].items() if device != "mps"})
        for old, new in zip(before[1:], after[1:]):
            print({name: value for name, value in new.items() if not name.startswith("straggler_")} == old)
        """
    )
    assert output.split() == ["True"] * 3


@pytest.mark.parametrize("name", ["straggler_gloo", "STRAGGLER_GLOO", "cpu:straggler_gloo", "cpu:Straggler_Gloo"])
def test_a_group_of_each_spelling_works_without_a_warning(name: str, succeeds: Callable[..., str]) -> None:
    output = succeeds(
        f"""
        import warnings
        warnings.simplefilter("error")
        init({name!r})
        ones = torch.ones(4)
        dist.all_reduce(ones)
        dist.barrier()
        group = dist.new_group([0])
        dist.all_reduce(ones, group=group)
        print(dist.get_backend(), type(backend_of()).__name__, type(backend_of().inner).__name__)
        print(type(backend_of(group)).__name__, group.rank(), dist.get_rank())
        dist.destroy_process_group()
        """
    )
    assert output.splitlines() == [
        f"{name.lower()} StragglerBackend ProcessGroupGloo",
        "StragglerBackend 0 0",
    ]


def test_another_plugin_before_or_after_ours_does_no_harm(succeeds: Callable[..., str]) -> None:
    for order in ("import torch_straggler; dummy()", "dummy(); import torch_straggler"):
        succeeds(
            f"""
            def dummy():
                dist.Backend.register_backend("dummy", lambda *a: None, devices=["cpu"])
            {order}
            init("cpu:straggler_gloo")
            dist.barrier()
            dist.all_reduce(torch.ones(2))
            dist.destroy_process_group()
            """
        )


def test_a_group_without_a_backend_is_what_it_is_without_us(succeeds: Callable[..., str]) -> None:
    code = """
        init()
        dist.all_reduce(torch.ones(2))
        print(dist.get_backend_config(), type(backend_of()).__name__)
        dist.destroy_process_group()
        """
    assert succeeds(code, "import torch_straggler\n") == succeeds(code)


def test_a_mesh_inits_and_splits(succeeds: Callable[..., str]) -> None:
    """CASES 1.03, 1.05, 1.49: also a mesh that makes the default group, which builds no NCCL for the CPU."""
    output = succeeds(
        """
        import os, torch_straggler
        from torch_straggler import register
        from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
        init("cpu:straggler_gloo")
        overridden = {"a": "straggler_gloo"}
        for options in ({}, {"backend_override": overridden}):
            mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"), **options)
            for name in ("a", "b"):
                dist.all_reduce(torch.ones(2), group=mesh.get_group(name))
                print(type(backend_of(mesh.get_group(name))).__name__)
        dist.destroy_process_group()

        torch_straggler.intercept("gloo", "nccl")
        if not torch.cuda.is_available():
            register.torch_creators["nccl"] = lambda *arguments: print("NCCL is built")
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
        mesh = DeviceMesh("cpu", [0])
        dist.all_reduce(torch.ones(2), group=mesh.get_group())
        print(type(backend_of(mesh.get_group())).__name__, dist.get_rank(), dist.get_world_size())
        dist.destroy_process_group()
        """
    )
    assert output.splitlines() == ["StragglerBackend"] * 4 + ["StragglerBackend 0 1"]


def test_a_map_of_both_names_keeps_two_backends(succeeds: Callable[..., str]) -> None:
    """CASES 1.01, 1.07, 1.20, 1.23: without a warning; objects go over the CPU, a timeout reaches both."""
    output = succeeds(
        """
        import warnings
        from datetime import timedelta
        warnings.simplefilter("error")
        from torch_straggler import register
        register.torch_creators["nccl"] = register.torch_creator("gloo")  # stands for NCCL, which takes a GPU to make
        for on_cpu in ("straggler_gloo", "gloo"):
            init(f"cpu:{on_cpu},cuda:straggler_nccl")
            both = [backend_of(), backend_of(device="cuda")]
            dist.all_reduce(torch.ones(2))
            everyone = [None]
            dist.all_gather_object(everyone, "of the CPU")
            group = dist.new_group([0])
            dist.all_reduce(torch.ones(2), group=group)
            dist.set_timeout(timedelta(seconds=7))
            half = dist.split_group(split_ranks=[[0]], backend="cuda:straggler_nccl")
            print(dist.get_backend(), both[0] is both[1], *(type(backend).__name__ for backend in both))
            print(everyone, *(backend.options._timeout.total_seconds() for backend in both))
            print(type(backend_of(group)).__name__, [device.type for device in half._device_types])
            dist.destroy_process_group()
        """
    )
    ours, theirs = "StragglerBackend", "ProcessGroupGloo"
    assert output.splitlines() == [
        f"cpu:straggler_gloo,cuda:straggler_nccl False {ours} {ours}",
        "['of the CPU'] 7.0 7.0",
        f"{ours} ['cuda']",
        f"cpu:gloo,cuda:straggler_nccl False {theirs} {ours}",
        "['of the CPU'] 7.0 7.0",
        f"{theirs} ['cuda']",
    ]


def test_each_group_builds_one_inner_backend_for_all_its_devices(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        from torch_straggler import register
        plain, built = register.torch_creator("gloo"), []
        register.torch_creators["gloo"] = lambda opts, options: built.append(opts.group_id) or plain(opts, options)
        init("straggler_gloo")
        groups = [dist.new_group([0]) for _ in range(20)]
        print(len(built), len(set(built)), {type(backend_of(group)).__name__ for group in groups})
        """
    )
    assert output == "21 21 {'StragglerBackend'}\n"


def test_without_a_gpu_straggler_nccl_raises_what_nccl_raises(python: Run) -> None:
    code = """
        if torch.cuda.is_available():
            print("GPU"); raise SystemExit
        init({!r})
        """
    ours, theirs = python(code.format("straggler_nccl")), python(code.format("nccl"))
    if "GPU" in ours.stdout:
        pytest.skip("this machine has a GPU, on which NCCL raises nothing")
    assert ours.returncode == theirs.returncode != 0
    assert ours.stderr.splitlines()[-1] == theirs.stderr.splitlines()[-1]


def test_what_the_script_passed_reaches_torchs_creator(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        from datetime import timedelta
        from torch_straggler import register
        plain = register.torch_creator("gloo")
        def spy(opts, options):
            print(opts.timeout.total_seconds(), options, type(opts.split_from).__name__)
            return plain(opts, options)
        register.torch_creators["gloo"] = spy
        init("straggler_gloo", timeout=timedelta(seconds=7), pg_options="of the script")
        opts = dist.distributed_c10d._DistributedBackendOptions()
        opts.store, opts.group_rank, opts.group_size = dist.HashStore(), 0, 1
        opts.timeout, opts.group_id, opts.global_ranks_in_group = timedelta(seconds=9), "child", [0]
        opts.split_from = backend_of()
        register.creator("straggler_gloo", "gloo")(opts, None)
        """
    )
    assert output.splitlines() == ["7.0 of the script NoneType", "9.0 None ProcessGroupGloo"]


def test_the_wrapper_answers_for_what_only_the_inner_class_has(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        init("straggler_gloo")
        backend = backend_of()
        print(backend._Options is type(backend.inner)._Options, hasattr(backend, "perform_nocolor_split"))
        """
    )
    assert output.split() == ["True", "False"]  # Gloo splits without it


def test_a_creation_that_failed_can_be_repeated(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        from torch_straggler import register
        plain = register.torch_creator("gloo")
        def fails_once(opts, options):
            register.torch_creators["gloo"] = plain
            raise OSError("no such interface")
        register.torch_creators["gloo"] = fails_once
        try:
            init("straggler_gloo")
        except OSError as error:
            print(error)
        init("straggler_gloo")
        dist.all_reduce(torch.ones(2))
        print(type(backend_of()).__name__)
        """
    )
    assert output.splitlines() == ["no such interface", "StragglerBackend"]


def test_an_unknown_setting_is_refused_before_the_inner_backend_is_built(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        from torch_straggler import register
        register.torch_creators["gloo"] = lambda opts, options: print("built")
        try:
            init("straggler_gloo")
        except ValueError as error:
            print(error)
        """,
        STRAGGLER_WINDOWS="10",
    )
    (line,) = output.splitlines()
    assert "STRAGGLER_WINDOWS" in line and "STRAGGLER_WINDOW," in line + ","


# ---- Timeouts --------------------------------------------------------------------------------------------------------


def test_exactly_the_default_counts_as_the_inners_own() -> None:
    from torch_straggler.register import effective_timeout

    minutes = {n: timedelta(minutes=n) for n in (5, 10, 30)}
    assert effective_timeout("straggler_nccl", "nccl", minutes[30]) == minutes[10]
    assert effective_timeout("straggler_nccl", "nccl", minutes[5]) == minutes[5]
    assert effective_timeout("straggler_gloo", "gloo", minutes[30]) == minutes[30]


def test_under_a_name_that_was_taken_over_30_minutes_are_30_minutes() -> None:
    from torch_straggler.register import effective_timeout

    assert effective_timeout("nccl", "nccl", timedelta(minutes=30)) == timedelta(minutes=30)
