"""The plan: families of backends, cells, and the order of a round; sizes and bandwidths of the collectives."""

import pytest
from skew_samples import BARE, CONTROL, FAMILY, WRAPPED

from torch_straggler.bench.collective_kinds import COLLECTIVES
from torch_straggler.bench.plan import Cell, Family, Plan, Subject, families, order


def plan(patterns: tuple[str, ...], skews: tuple[float, ...]) -> Plan:
    return Plan(2, (FAMILY,), ("all_reduce", "broadcast"), (4, 8), patterns, skews, rounds=1, time_limit_s=60)


def test_a_family_is_measured_with_a_second_group_of_the_bare_backend() -> None:
    assert FAMILY.subjects == (
        Subject("gloo", "bare"),
        Subject("gloo", "control"),
        Subject("straggler_gloo", "wrapped"),
    )
    assert Family("gloo", None).subjects == (Subject("gloo", "bare"), Subject("gloo", "control"))


@pytest.mark.parametrize(
    ("backends", "expected"),
    [
        (("gloo", "straggler_gloo"), (FAMILY,)),
        (("straggler_gloo",), (FAMILY,)),
        (("gloo",), (Family("gloo", None),)),
        (("nccl", "gloo", "straggler_nccl"), (Family("gloo", None), Family("nccl", "straggler_nccl"))),
    ],
)
def test_a_wrapped_backend_brings_its_bare_one(backends: tuple[str, ...], expected: tuple[Family, ...]) -> None:
    assert families(backends) == expected


def test_every_subject_runs_twice_a_round_forwards_and_backwards() -> None:
    assert order(FAMILY.subjects, 0) == (BARE, CONTROL, WRAPPED, WRAPPED, CONTROL, BARE)
    assert order(FAMILY.subjects, 1) == (CONTROL, WRAPPED, BARE, BARE, WRAPPED, CONTROL)
    assert order(FAMILY.subjects, 3) == order(FAMILY.subjects, 0)


def test_no_arrival_skew_goes_with_the_pattern_none_alone() -> None:
    assert plan(("random", "none"), (0.0, 1.0, 4.0)).shapes() == [("none", 0.0), ("random", 1.0), ("random", 4.0)]
    assert plan(("random",), (0.0,)).shapes() == []
    assert plan(("none",), (4.0,)).shapes() == [("none", 0.0)]


def test_a_block_is_what_has_one_transfer_time_and_its_cells_are_the_shapes() -> None:
    made = plan(("none", "half_late"), (2.0,))
    assert made.blocks() == [
        (FAMILY, "all_reduce", 4),
        (FAMILY, "all_reduce", 8),
        (FAMILY, "broadcast", 4),
        (FAMILY, "broadcast", 8),
    ]
    assert list(made.cells(FAMILY, "broadcast", 8)) == [
        Cell(FAMILY, "broadcast", 8, "none", 0.0),
        Cell(FAMILY, "broadcast", 8, "half_late", 2.0),
    ]


@pytest.mark.parametrize(
    ("collective", "asked", "whole", "sent", "received"),
    [
        ("all_reduce", 4096, 1024, 1024, 1024),
        ("all_reduce", 5, 2, 2, 2),
        ("broadcast", 4, 1, 1, 1),
        ("all_gather", 4096, 1024, 256, 1024),
        ("all_gather", 4, 4, 1, 4),
        ("reduce_scatter", 4096, 1024, 1024, 256),
        ("reduce_scatter", 20, 8, 8, 2),
    ],
)
def test_elements_are_rounded_up_to_whole_shares(
    collective: str, asked: int, whole: int, sent: int, received: int
) -> None:
    kind = COLLECTIVES[collective]
    assert kind.elements(asked, ranks=4) == whole
    assert (kind.sent(whole, 4), kind.received(whole, 4)) == (sent, received)


def test_bus_factors_are_those_of_nccl_tests() -> None:
    factors = {name: kind.bus_factor(4) for name, kind in COLLECTIVES.items()}
    assert factors == {"all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75, "broadcast": 1.0}
