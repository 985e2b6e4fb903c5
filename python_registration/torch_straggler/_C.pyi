# ruff: noqa: N999
"""The compiled library. Loaded through `torch_straggler._library.load`, which checks first that it fits torch."""

from datetime import timedelta
from typing import Any

from torch import Tensor
from torch._C._distributed_c10d import Backend, Store

BUILT_FOR_TORCH: str

class SettingsError(ValueError):
    """A `STRAGGLER_*` setting that is unknown or malformed."""

class ForwardingBackend(Backend):
    """A c10d backend that passes everything on to `inner`, attributes of the inner's Python class included."""

    @property
    def inner(self) -> Backend: ...
    def __getattr__(self, name: str) -> Any: ...

class StragglerBackend(ForwardingBackend):
    """Records when each operation arrived and was released.

    `global_ranks` are the ranks of the group, in the order of their ranks in it; `store` is the group's, of which the
    session clones a connection. Raises SettingsError for a setting that is not valid.
    """

    def __init__(self, inner: Backend, store: Store, *, group_id: str, global_ranks: list[int]) -> None: ...

class DelayedBackend(ForwardingBackend):
    """Delays operations before `inner` sees them; `rules` is the text of `injection_rule.collective_text`.

    `rank` is this process's global rank. Raises ValueError for text that is not in that form.
    """

    def __init__(self, inner: Backend, *, rank: int, rules: str) -> None: ...

class MitigatingBackend(ForwardingBackend):
    """A late rank does not hold up its group. Made by `make_mitigation`; see `torch_straggler.mitigation`."""

    def expect_gradients(self, elements: int) -> None: ...
    def set_gradient_scale(self, scale: float) -> None: ...
    def stand_down(self, reason: str) -> None: ...
    def flush(self) -> None: ...
    def restore(self, bucket: int, owed: Tensor) -> None: ...
    def residuals(self) -> dict[int, Tensor]: ...
    def status(self) -> dict[str, Any]: ...

class SubgroupBackend(ForwardingBackend):
    """Tells the process's group with mitigation of the operations of another group, which passes through it."""

    def __init__(self, inner: Backend, *, name: str) -> None: ...

def make_mitigation(
    inner: Backend,
    store: Store,
    *,
    global_rank: int,
    timeout: timedelta,
    fills: list[dict[str, Any]] | None,
    participants: dict[int, int] | None,
    faults: tuple[float, float, int] | None,
) -> MitigatingBackend | None:
    """Wraps `inner` as the settings say. None where it cannot be had, which one line has said.

    `fills` and `participants` are those of `participation.Script`; `faults` are (probability, milliseconds, seed).
    Waits for the group's rank 0, a minute at most. Raises SettingsError for a setting that does not fit the group.
    """

def current_mitigation() -> MitigatingBackend | None:
    """The group of this process that has mitigation."""

class Replay:
    """The report of one session, from the records it wrote. Raises ValueError for one that is not in their schema."""

    def __init__(self, session: dict[str, Any]) -> None: ...
    def line(self, line: dict[str, Any]) -> bool:
        """Takes one more record; False if a replay has no use for its type."""

    def report_json(self) -> str: ...
    def text(self) -> str: ...

class Rescoring:
    """A session's records through the detector under other options, by name and as text; `window` None: as recorded.

    Raises ValueError for an option, a value or a record that is not allowed; the text says what is.
    """

    def __init__(self, session: dict[str, Any], options: dict[str, str], window: int | None) -> None: ...
    @staticmethod
    def synthetic(spec: str, options: dict[str, str], window: int | None) -> Rescoring:
        """Takes synthetic windows instead, all of them at once."""

    def line(self, line: dict[str, Any]) -> bool: ...
    def finish(self) -> None: ...
    def events(self) -> list[str]: ...
    def verdict(self) -> str: ...
    def texts(self) -> list[str]: ...
    def counts(self) -> dict[str, int]: ...
    def options(self) -> dict[str, str]: ...

class NoiseFit:
    """The noise of a session's records, as the description of synthetic windows; None of too few windows."""

    def __init__(self, session: dict[str, Any]) -> None: ...
    def line(self, line: dict[str, Any]) -> bool: ...
    def like(self) -> str | None: ...

def synthetic_spec(text: str) -> str:
    """The same description with every name and value. Raises ValueError for one that is not allowed."""

def detector_options() -> list[dict[str, str]]:
    """One row an option of the detector: name, default, unit, allowed, text."""

def synthetic_options() -> list[dict[str, str]]:
    """The same of the description of synthetic windows."""

def settings() -> list[dict[str, str | None]]:
    """One row a setting: name, value, default, type, unit, allowed, source (`default`, `environment`), text."""

def check_settings() -> None:
    """Raises SettingsError for an unknown `STRAGGLER_*` name or a malformed value; the text names what is allowed."""

def finish() -> None:
    """Ends the session of this process: last exchange, and the report on global rank 0; then the thread that logs, so
    that what is said later goes straight to standard error. Returns within about 3 s.
    """

def report_json() -> str | None:
    """The `report` record of the session that runs or has just ended, as one JSON object; None without one.

    On a rank that does not collect it is what the collecting rank published last, which is not checked here. Raises
    UnicodeDecodeError, a ValueError, for what is no text.
    """
