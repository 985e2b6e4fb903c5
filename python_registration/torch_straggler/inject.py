"""Delays put into a training script that knows nothing of them: the hooks that carry out `injection_rule`'s rules.

Installed by the autoload from `STRAGGLER_INJECT`, in every process that imports torch. It tells the observing side
nothing. Where a delay is put:

- `input`: inside the fetch of a `DataLoader`, once a step, as a slow loader would: within the scope by which torch's
  profiler knows the fetch.
- `forward`: before the first module that is called with gradients enabled, the outermost (`DistributedDataParallel`).
- `backward`: inside the autograd graph task, when the gradient of the root tensor is there and before any other.
- `collective`: before an operation is passed to the backend, in C++ (`_C.DelayedBackend`); the rules are handed over
  when a group is made.
- `control`: no delay of the job: of mitigation's control messages that share is lost, repeated or late.

A step ends with the outermost `backward()`; steps count from 0, alike on all ranks. Accumulating gradients over n
backwards makes n steps of it. Ranks are those of the default group; before it is made nobody is delayed.

Cost where no delay is due: the forward hook is torch's global one, which puts every module call on a slower path, so it
is taken off by the first module call of a step and put back by the end of the backward. What is left is some 15
microseconds a step (20 small layers, one core), on all ranks alike.
"""

from __future__ import annotations

import atexit
import functools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.modules.module import register_module_forward_pre_hook

from torch_straggler._log import emit
from torch_straggler.injection_rule import ALL, RANDOM, Rule, collective_text, delays, due, parse

_installed: Injector | None = None


def install(text: str) -> Injector:
    """Puts the rules of `text` into force in this process, once; a repetition returns what is there.

    Raises:
        RuleError: the text cannot be understood.
    """
    global _installed
    if _installed is None:
        injector = Injector(parse(text))
        injector.hook()
        atexit.register(injector.say_what_never_happened)
        _installed = injector
    return _installed


def collective_rules() -> str:
    """The rules for the C++ side, one a line; empty if there are none. Called when a group is made."""
    return _installed.collective_rules() if _installed is not None else ""


def control_faults() -> tuple[float, float, int] | None:
    """Probability, delay in milliseconds and seed for mitigation's control messages; None if no rule is about them."""
    rules = [] if _installed is None else [rule for rule in _installed.rules if rule.where == "control"]
    return (rules[0].probability, rules[0].ms, rules[0].seed) if rules else None


class Injector:
    """The rules in force in this process, and how far they have got."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._happened = [False] * len(rules)
        self._step = 0
        self._visited: dict[str, int] = {}  # place to the last step in which it was reached
        self._rank_and_world: tuple[int, int] | None = None  # the last seen: they outlive the group
        self._in_backward = False
        self._forward_hook: Any = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules

    # ---- Hooks -------------------------------------------------------------------------------------------------------

    def hook(self) -> None:
        """Changes torch's Python. Only places that a rule names are hooked, and backward, which counts the steps."""
        places = {rule.where for rule in self._rules}
        if places <= {"collective", "control"}:
            return
        setattr(torch.autograd, "backward", self._counting(torch.autograd.backward))  # noqa: B010
        if "input" in places:
            from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

            for kind in (_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter):
                setattr(kind, "_next_data", self._fetching(kind._next_data))  # noqa: B010
        if "forward" in places:
            self._arm_forward()

    def _fetching(self, plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(plain)
        def fetch(iterator: Any) -> Any:
            batch = plain(iterator)
            self.reach("input")
            return batch

        return fetch

    def _arm_forward(self) -> None:
        if self._forward_hook is None:
            self._forward_hook = register_module_forward_pre_hook(self._before_forward)

    def _before_forward(self, _module: Any, _inputs: Any) -> None:
        if torch.is_grad_enabled() and self._forward_hook is not None:
            self._forward_hook.remove()
            self._forward_hook = None
            self.reach("forward")

    def _counting(self, plain: Callable[..., None]) -> Callable[..., None]:
        """`torch.autograd.backward`, which `Tensor.backward` calls too. Reentrant checkpointing nests it."""

        @functools.wraps(plain)
        def backward(*args: Any, **kwargs: Any) -> None:
            if self._in_backward:
                return plain(*args, **kwargs)
            self._in_backward = True
            handles = self._hook_roots(args[0] if args else kwargs.get("tensors", ()))
            try:
                return plain(*args, **kwargs)
            finally:
                for handle in handles:
                    handle.remove()
                self._in_backward = False
                self._end_step()

        return backward

    def _hook_roots(self, roots: Any) -> list[Any]:
        if all(rule.where != "backward" for rule in self._rules):
            return []

        def at_root(*_gradients: Any) -> None:
            self.reach("backward")

        single = isinstance(roots, (torch.Tensor, torch.autograd.graph.GradientEdge))
        handles: list[Any] = []
        for root in (roots,) if single else roots:
            if isinstance(root, torch.autograd.graph.GradientEdge):
                handles.append(root.node.register_prehook(at_root))
            elif root.requires_grad:  # what does not gets torch's own error
                handles.append(root.register_hook(at_root))
        return handles

    # ---- Delays ------------------------------------------------------------------------------------------------------

    def reach(self, place: str) -> None:
        """Makes the delays that are due at `place`; a place counts once a step."""
        if self._visited.get(place) == self._step:
            return
        self._visited[place] = self._step
        where = self._place_in_job()
        if where is None:
            return
        rank, world = where
        for number, rule in enumerate(self._rules):
            if rule.where == place and due(rule, self._step):
                happens = delays(rule, rank, world, self._step)
                self._happened[number] |= happens or rule.rank == RANDOM or rule.rotate
                if happens:
                    pause(rule.ms, rule.spin)

    def _place_in_job(self) -> tuple[int, int] | None:
        if dist.is_initialized():
            self._rank_and_world = (dist.get_rank(), dist.get_world_size())
        return self._rank_and_world

    def _end_step(self) -> None:
        self._step += 1
        self._place_in_job()
        if any(rule.where == "forward" for rule in self._rules):
            self._arm_forward()

    def collective_rules(self) -> str:
        for number, rule in enumerate(self._rules):
            self._happened[number] |= rule.where == "collective"
        return collective_text(self._rules)

    # ---- Exit --------------------------------------------------------------------------------------------------------

    def say_what_never_happened(self) -> None:
        """One line for each rule that delayed nobody, from the rank that it is about, else from rank 0."""
        where = self._place_in_job()
        if where is None:
            return
        for line in never_happened(self._rules, self._happened, where, self._step):
            emit(logging.WARNING, line)


def never_happened(
    rules: Iterable[Rule], happened: Iterable[bool], rank_and_world: tuple[int, int], steps: int
) -> list[str]:
    """The lines that this rank says at exit."""
    rank, world = rank_and_world
    lines = []
    for rule, done in zip(rules, happened, strict=True):
        about = rule.rank if not rule.rotate and 0 <= rule.rank < world else 0
        if done or rank != about or rule.where == "control":
            continue
        name = {ALL: "all", RANDOM: "random"}.get(rule.rank, str(rule.rank))
        reason = f"the job has no rank {rule.rank}" if rule.rank >= world else f"{steps} steps were seen"
        lines.append(
            f"torch_straggler: injection rank={name},where={rule.where},ms={rule.ms:g} never happened ({reason}, "
            f"it starts at step {rule.first})"
        )
    return lines


def pause(milliseconds: float, spin: bool) -> None:
    """Sleeps, or burns CPU time, holding the interpreter as a slow Python loop would."""
    if not spin:
        time.sleep(milliseconds / 1000)
        return
    end = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < end:
        pass
