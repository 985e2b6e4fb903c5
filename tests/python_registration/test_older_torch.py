"""What torch before 2.14 needs, as far as it can be tested on any torch: the pure parts."""

import pytest
import torch.distributed as dist

from torch_straggler import older_torch


@pytest.mark.parametrize(
    ("taken", "names", "translated"),
    [
        (set(), {"cpu": "gloo", "cuda": "nccl"}, {"cpu": "gloo", "cuda": "nccl"}),
        ({"gloo"}, {"cpu": "gloo", "cuda": "gloo"}, {"cpu": "straggler_gloo", "cuda": "straggler_gloo"}),
        ({"gloo"}, {"cpu": "gloo", "cuda": "nccl"}, {"cpu": "straggler_gloo", "cuda": "nccl"}),
        ({"gloo", "nccl"}, {"cuda": "nccl"}, {"cuda": "straggler_nccl"}),
        ({"gloo", "nccl"}, {"cpu": "gloo", "cuda": "nccl"}, {"cpu": "gloo", "cuda": "straggler_nccl"}),
    ],
)
def test_a_group_gets_one_backend_of_ours_at_most(
    taken: set[str], names: dict[str, str], translated: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(older_torch, "_taken", taken)
    assert older_torch.translated(names) == translated


def test_a_second_name_in_the_same_group_is_refused_and_in_another_group_is_not() -> None:
    group, other = dist.PrefixStore("0/", dist.HashStore()), dist.PrefixStore("1/", dist.HashStore())
    older_torch.refuse_two_names("straggler_gloo", dist.PrefixStore("cpu/", group))
    older_torch.refuse_two_names("straggler_gloo", dist.PrefixStore("cuda/", group))
    with pytest.raises(RuntimeError, match=r"needs torch 2\.14 or later"):
        older_torch.refuse_two_names("straggler_nccl", dist.PrefixStore("cuda/", group))
    older_torch.refuse_two_names("straggler_nccl", dist.PrefixStore("cuda/", other))
