"""The two ways in which the bench says no. Both carry one sentence for the user."""

from __future__ import annotations


class InputError(ValueError):
    """What was asked for cannot be measured. Raised before any process is started."""


class JobError(RuntimeError):
    """The ranks were started and did not get to the end. By then none of them is running."""
