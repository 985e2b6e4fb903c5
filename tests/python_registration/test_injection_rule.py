"""The rules of --inject: text to values, and (rule, rank, world, step) to yes or no."""

import pytest

from torch_straggler.injection_rule import ALL, RANDOM, Rule, RuleError, collective_text, delays, parse

# ---- Text ------------------------------------------------------------------------------------------------------------


def test_three_fields_are_enough_and_the_first_eight_steps_are_warm_up() -> None:
    assert parse("rank=2,where=backward,ms=8") == (Rule(rank=2, where="backward", ms=8.0),)
    assert parse("rank=2,where=backward,ms=8")[0].first == 8


def test_every_field_is_read() -> None:
    text = "rank=1,where=input,ms=2.5,probability=0.25,every=3,from=0,to=90,spin=true,seed=7"
    assert parse(text) == (
        Rule(rank=1, where="input", ms=2.5, probability=0.25, every=3, first=0, last=90, spin=True, seed=7),
    )


def test_named_ranks() -> None:
    assert parse("rank=all,where=forward,ms=1")[0].rank == ALL
    assert parse("rank=random,where=forward,ms=1")[0].rank == RANDOM


def test_rotation_starts_at_rank_0_unless_told_otherwise() -> None:
    assert parse("rotate=true,where=forward,ms=1")[0] == Rule(rank=0, where="forward", ms=1.0, rotate=True)
    assert parse("rank=3,rotate=true,where=forward,ms=1")[0].rank == 3


def test_several_rules_and_blanks() -> None:
    rules = parse(" rank=0, where=input, ms=1 ; rank=1,where=forward,ms=2; ")
    assert [(rule.rank, rule.where) for rule in rules] == [(0, "input"), (1, "forward")]


@pytest.mark.parametrize(
    ("field", "allowed"),
    [
        ("rank=-1", "a rank number, random, all"),
        ("rank=two", "a rank number, random, all"),
        ("where=bakward", "input, forward, backward, collective"),
        ("ms=0", "milliseconds above 0"),
        ("ms=-3", "milliseconds above 0"),
        ("ms=fast", "milliseconds above 0"),
        ("ms=inf", "milliseconds above 0"),
        ("ms=nan", "milliseconds above 0"),
        ("ms=3600001", "at most 3600000"),
        (f"rank={2**31}", "a rank number, random, all"),
        (f"from={2**63}", "0 or more"),
        (f"every={2**63}", "1 or more"),
        (f"seed={'9' * 5000}", "0 or more"),
        ("probability=1.1", "from 0 to 1"),
        ("probability=nan", "from 0 to 1"),
        ("rotate=yes", "true, false"),
        ("every=0", "1 or more"),
        ("from=-8", "0 or more"),
        ("to=1.5", "0 or more"),
        ("spin=1", "true, false"),
        ("seed=x", "0 or more"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(field: str, allowed: str) -> None:
    fields = {"rank": "rank=2", "where": "where=backward", "ms": "ms=8"}
    fields[field.partition("=")[0]] = field
    with pytest.raises(RuleError) as error:
        parse(",".join(fields.values()))
    assert f"{field} is not valid" in str(error.value)
    assert allowed in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rule"),
        (" ; ", "no rule"),
        ("rank=2,where=backward", "ms is missing"),
        ("rank=2,ms=1", "where is missing"),
        ("where=backward,ms=1", "rank is missing"),
        ("rank=2,where=backward,ms=8,color=red", "unknown field color; the fields are rotate, rank"),
        ("rank=2,rank=3,where=backward,ms=8", "rank is given twice"),
        ("rank=2,backward,ms=8", "'backward' is not a field"),
        ("rank=2,where=backward,ms=8,", "'' is not a field"),
        ("rank=all,rotate=true,where=forward,ms=8", "rotate starts at a rank number"),
        ("rank=0,where=forward,ms=8,from=9,to=8", "to=8 comes before from=9"),
        ("rank=random,where=collective,ms=5", "cannot draw or rotate"),
        ("rotate=true,where=collective,ms=5", "cannot draw or rotate"),
        ("rank=1,where=collective,ms=5,spin=true", "cannot spin"),
    ],
)
def test_a_bad_rule_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(RuleError, match=said):
        parse(text)


def test_collective_rules_are_handed_over_one_a_line_with_every_field() -> None:
    rules = parse("rank=1,where=collective,ms=5;rank=0,where=input,ms=1;rank=all,where=collective,ms=0.5,to=90,seed=3")
    assert collective_text(rules).splitlines() == [
        "rank=1 ms=5.0 probability=1.0 from=8 to=-1 every=1 seed=0",
        "rank=-1 ms=0.5 probability=1.0 from=8 to=90 every=1 seed=3",
    ]


# ---- Decision --------------------------------------------------------------------------------------------------------


def delayed(text: str, world: int = 4, steps: int = 40) -> list[tuple[int, int]]:
    """(step, rank) of each delay."""
    (rule,) = parse(text)
    return [(step, rank) for step in range(steps) for rank in range(world) if delays(rule, rank, world, step)]


def test_one_rank_in_every_step_from_the_ninth_on() -> None:
    assert delayed("rank=2,where=backward,ms=8", steps=11) == [(8, 2), (9, 2), (10, 2)]


def test_first_and_last_step_are_included() -> None:
    assert delayed("rank=0,where=input,ms=1,from=3,to=5") == [(3, 0), (4, 0), (5, 0)]


def test_every_counts_from_the_first_step() -> None:
    assert [step for step, _ in delayed("rank=0,where=input,ms=1,from=5,every=10")] == [5, 15, 25, 35]


def test_all_ranks() -> None:
    assert delayed("rank=all,where=input,ms=1,from=0,to=0") == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_rotation_visits_every_rank_in_turn_also_when_it_skips_steps() -> None:
    assert [rank for _, rank in delayed("rank=2,rotate=true,where=input,ms=1", steps=14)] == [2, 3, 0, 1, 2, 3]
    assert [rank for _, rank in delayed("rotate=true,every=4,where=input,ms=1", steps=24)] == [0, 1, 2, 3]


def test_random_draws_one_rank_a_step_and_each_of_them_in_the_long_run() -> None:
    found = delayed("rank=random,where=input,ms=1,from=0", steps=400)
    assert [step for step, _ in found] == list(range(400))
    counts = [sum(rank == wanted for _, rank in found) for wanted in range(4)]
    assert min(counts) > 60
    assert found != delayed("rank=random,where=input,ms=1,from=0,seed=1", steps=400)


def test_probability_is_drawn_by_each_rank_for_itself() -> None:
    found = delayed("rank=all,where=input,ms=1,from=0,probability=0.25", steps=1000)
    assert 850 < len(found) < 1150  # 1000 expected, of 4000
    of_rank = [{step for step, rank in found if rank == wanted} for wanted in range(2)]
    assert of_rank[0] != of_rank[1]
    assert delayed("rank=0,where=input,ms=1,probability=0") == []


def test_a_rank_outside_the_job_is_nobody() -> None:
    assert delayed("rank=7,where=input,ms=1") == []
