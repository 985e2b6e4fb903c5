"""The simulation of the store's load: against figures that can be worked out by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "scale"))
from store_load import ROOT_PERIOD, Service, service_of, simulate

FAST = Service(request=1e-6, trip=1e-6)


def test_few_ranks_are_heard_within_a_round_of_the_root() -> None:
    load = simulate(64, FAST, 5)
    assert load.keeps_up
    assert load.frames_per_s == 256
    assert load.taken_per_s == pytest.approx(256, rel=0.02)
    assert load.delay_max < ROOT_PERIOD + 0.002


def test_the_server_is_as_busy_as_its_requests_say() -> None:
    """1,024 ranks, four times a second: five requests a frame of 10 us each, and the root's looks into nothing."""
    load = simulate(1024, Service(request=10e-6, trip=0), 5)
    assert load.server_busy == pytest.approx(4096 * 5 * 10e-6, rel=0.02)


def test_a_server_that_is_asked_for_more_than_it_can_answer_does_not_keep_up() -> None:
    """2,048 ranks ask for 8,192 * 5 requests a second."""
    assert simulate(2048, Service(request=0.9 / (8192 * 5), trip=0), 8).keeps_up
    load = simulate(2048, Service(request=1.1 / (8192 * 5), trip=0), 30)
    assert not load.keeps_up
    assert load.server_busy > 0.99


def test_a_root_that_needs_longer_for_a_frame_than_they_come_does_not_keep_up() -> None:
    """256 ranks send 1,024 frames a second; the root takes one in 1.2 ms, the server has hardly anything to do."""
    load = simulate(256, Service(request=1e-6, trip=0.1e-3, work=1e-3), 12)
    assert not load.keeps_up
    assert load.taken_per_s == pytest.approx(1 / 1.2e-3, rel=0.02)
    assert load.waiting == pytest.approx((1024 - load.taken_per_s) * 12, rel=0.05)
    assert load.server_busy < 0.1


def test_ranks_that_are_collected_before_send_so_much_less() -> None:
    flat = simulate(4096, FAST, 3)
    collected = simulate(4096, FAST, 3, ranks_a_frame=8)
    assert collected.frames_per_s == flat.frames_per_s / 8
    assert collected.server_busy < flat.server_busy / 7


def test_service_times_come_from_what_was_measured() -> None:
    measured = {
        "root_alone": {"frame_us": 40.0},
        "under_load": [{"server_us_per_request": 1.0}, {"server_us_per_request": 12.0}],
    }
    service = service_of(measured)
    assert service.request == pytest.approx(12e-6)
    assert service.trip == pytest.approx(8e-6), "of two requests a frame"
