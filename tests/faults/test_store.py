"""The store dies, or stands still, while training needs it no more; and when a new group needs it."""

import pytest
from alike import SLOWER, BesideGloo, assert_alike
from own_store import STORE_OF_ITS_OWN

GONE = (
    STORE_OF_ITS_OWN
    + """
server, store = store_of_its_own()
dist.init_process_group(BACKEND, store=store, rank=RANK, world_size=WORLD, timeout=timedelta(seconds=20))
result = torch.ones(4)
for number in range(200):
    dist.all_reduce(result.fill_(1))
    if RANK == 0 and number == 50:
        os.kill(server, signal.SIGNAL)
    time.sleep(0.01)
tell(result=result.tolist(), fault=time.monotonic())
THEN
"""
)


def code(how: str, then: str) -> str:
    return GONE.replace("SIGNAL", how).replace("THEN", then)


def test_a_store_that_is_killed_costs_a_line_and_training_ends_as_on_gloo(beside_gloo: BesideGloo) -> None:
    ours, gloos = beside_gloo(code("SIGKILL", "dist.destroy_process_group()"))
    assert_alike(ours, gloos)
    assert ours.exit_codes == [0, 0], ours.text()
    assert [told["result"] for told in ours.told] == [[2.0] * 4] * 2
    assert [len(ours.operations(rank)) for rank in range(2)] == [200, 200]


def test_a_group_that_is_made_without_the_store_fails_as_on_gloo(beside_gloo: BesideGloo) -> None:
    ours, gloos = beside_gloo(code("SIGKILL", "dist.new_group()"))
    assert_alike(ours, gloos)
    assert all(rank.exit_code != 0 and rank.error for rank in ours.ranks), ours.text()


@pytest.mark.long
def test_a_store_that_stands_still_holds_the_end_up_for_a_bounded_time(beside_gloo: BesideGloo) -> None:
    """No answer and no error: the threads that wait for it are left behind, the root's after 2 s, others' after 1.5."""
    ours, gloos = beside_gloo(code("SIGSTOP", "dist.destroy_process_group()"))
    assert_alike(ours, gloos, slower=SLOWER + 0.5)
    assert ours.exit_codes == [0, 0], ours.text()
    assert [told["result"] for told in ours.told] == [[2.0] * 4] * 2
