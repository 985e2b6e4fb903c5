"""The rules of `--inject`: whatever the text, they are refused, or can be carried out, in Python and in C++."""

import pytest
from fuzzing import SECONDS, TEXT, holds
from hypothesis import strategies as some
from torch._C._distributed_c10d import FakeProcessGroup

from torch_straggler import _C
from torch_straggler.injection_rule import ALL, RuleError, collective_text, delays, parse, target

pytestmark = pytest.mark.timeout(SECONDS + 180)

NUMBERS = ["0", "1", "8", "0.5", "1e-3", "1e308", "1e999", "-1", "nan", "inf", "٣", "1_0", " 7 ", "0x10"]
NUMBERS += [str(2**power + offset) for power in (31, 32, 63, 64) for offset in (-1, 0)] + ["9" * 400, "9" * 5000]
WORDS = ["all", "random", "true", "false", "input", "forward", "backward", "collective", ""]
NAMES = ["rank", "where", "ms", "probability", "rotate", "every", "from", "to", "spin", "seed"]
FIELD = some.builds("{}={}".format, some.sampled_from(NAMES), some.sampled_from(NUMBERS + WORDS) | TEXT)
NATURAL = some.sampled_from(NUMBERS)


@some.composite
def rule_texts(draw: some.DrawFn) -> str:
    """Mostly rules: a place and numbers, and some fields more that are anything."""
    fields = [f"rank={draw(NATURAL)}", f"where={draw(some.sampled_from(WORDS[4:8]))}", f"ms={draw(NATURAL)}"]
    others = {name: draw(NATURAL) for name in draw(some.lists(some.sampled_from(NAMES[3:]), max_size=3))}
    fields += [f"{name}={value}" for name, value in others.items()]
    fields += draw(some.lists(FIELD, max_size=1))
    return ",".join(draw(some.permutations(fields)))


def are_refused_or_can_be_carried_out(text: str) -> None:
    try:
        rules = parse(text)
    except RuleError:
        return
    for rule in rules:
        assert 0 < rule.ms <= 3_600_000
        for step in (0, rule.first, rule.first + rule.every, 10**6):
            assert isinstance(delays(rule, 1, 4, step), bool)
            assert target(rule, 4, step) in (ALL, *range(4)) or rule.rank >= 4
    # A backend of torch's that does nothing: no group is made with it.
    _C.DelayedBackend(FakeProcessGroup._create_internal(0, 1), rank=0, rules=collective_text(rules))


def test_texts_of_rules_are_refused_or_can_be_carried_out() -> None:
    several = some.lists(rule_texts() | TEXT, min_size=1, max_size=3).map(";".join)
    holds(are_refused_or_can_be_carried_out, rule_texts() | several | TEXT)
