"""Text of the command line: what it means, and the sentence for what it cannot mean."""

import pytest

from torch_straggler.bench import parsing
from torch_straggler.bench.errors import InputError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4", 4),
        ("100B", 100),
        ("64K", 65_536),
        ("64k", 65_536),
        ("1MiB", 1_048_576),
        (" 2 MB ", 2_097_152),
        ("1G", 1 << 30),
    ],
)
def test_a_size_may_have_a_suffix(text: str, size: int) -> None:
    assert parsing.size(text) == size


@pytest.mark.parametrize("text", ["", "x", "0", "3", "-4", "1.5M", "4X", "2G", "1KK"])
def test_what_is_no_size_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InputError, match=r"^--bytes .* is not a size; allowed: 4 to 1G, with a suffix K, M or G$"):
        parsing.size(text)


def test_lists_keep_their_order_and_lose_repetitions() -> None:
    assert parsing.sizes("1M,4K,1024K") == (1_048_576, 4096)
    assert parsing.names("--patterns", "random, none,random", ("none", "random")) == ("random", "none")
    assert parsing.skews("4,0,0.5") == (4.0, 0.0, 0.5)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^--collectives 'all_recude' is not known; allowed: all_reduce, broadcast$"):
        parsing.names("--collectives", "all_reduce,all_recude", ("all_reduce", "broadcast"))


@pytest.mark.parametrize("text", ["-1", "101", "nan", "inf", "one"])
def test_an_arrival_skew_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"allowed: a number of transfer times from 0 to 100$"):
        parsing.skews(text)


@pytest.mark.parametrize("text", ["1", "65", "-2", "2.0", "two", ""])
def test_a_number_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--ranks .* is not valid; allowed: a whole number from 2 to 64$"):
        parsing.whole("--ranks", text, 2, 64)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(InputError, match=r"^--skews is empty; give one value, or several with commas between them$"):
        parsing.skews(" , ")
