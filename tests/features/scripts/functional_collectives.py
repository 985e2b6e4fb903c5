"""Functional collectives, and those with gradients."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as with_autograd

dist.init_process_group("gloo")
rank, size, group = dist.get_rank(), dist.get_world_size(), dist.group.WORLD
even = [2] * size


def show(name, *tensors):
    print(rank, name, *(tensor.flatten().tolist() for tensor in tensors))


def values(count):
    return torch.arange(count, dtype=torch.float32) + rank


show("all_reduce", functional.all_reduce(values(4), "sum", group))
show("all_gather", functional.all_gather_tensor(values(4), 0, group))
show("reduce_scatter", functional.reduce_scatter_tensor(values(2 * size), "sum", 0, group))
show("all_to_all", functional.all_to_all_single(values(2 * size), None, None, group))
show("broadcast", functional.broadcast(values(4), 0, group))
show("coalesced", *functional.all_reduce_coalesced([values(2), values(3)], "sum", group))

for name, call, count in (
    ("all_gather", lambda leaf: functional.all_gather_tensor_autograd(leaf, 0, group), 4),
    ("reduce_scatter", lambda leaf: functional.reduce_scatter_tensor_autograd(leaf, "sum", 0, group), 2 * size),
    ("all_to_all", lambda leaf: functional.all_to_all_single_autograd(leaf, even, even, group), 2 * size),
    ("nn.all_reduce", lambda leaf: with_autograd.all_reduce(leaf.clone()), 4),
    ("nn.all_gather", lambda leaf: torch.cat(with_autograd.all_gather(leaf)), 4),
    ("nn.broadcast", lambda leaf: with_autograd.broadcast(leaf.clone(), 0), 4),
    ("nn.all_to_all_single", lambda leaf: with_autograd.all_to_all_single(torch.empty(2 * size), leaf), 2 * size),
):
    leaf = values(count).requires_grad_()
    out = call(leaf)
    (out * out).sum().backward()
    show(f"gradient of {name}", out.detach(), leaf.grad)
dist.destroy_process_group()
