"""Nothing of c10d's interface is forgotten: the installed torch's headers against the wrapper's.

A method that torch adds, renames or gives one more parameter fails here, with its name, until it is forwarded or waived
with a reason. The compiler checks the types, since every method of ours says `override`.
"""

from pathlib import Path

import cpp_header
import pytest
import torch
from cpp_header import Method

ROOT = Path(__file__).parents[2]
C10D = Path(torch.__file__).parent / "include/torch/csrc/distributed/c10d"

MAJOR, MINOR = (int(part) for part in str(torch.__version__).split(".")[:2])
STRAGGLER_TORCH = MAJOR * 100 + MINOR

# Old names, from torch 2.14 on. The base class passes each on to the canonical method, which is forwarded. Overriding
# both would trip the base's guard against endless forwarding.
ALIASES = {
    "_allgather_base": "all_gather_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "gather_into_tensor": "gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}
WAIVED = ALIASES if STRAGGLER_TORCH >= 214 else {}


def torch_header(name: str) -> str:
    return cpp_header.preprocessed(cpp_header.without_comments((C10D / name).read_text()), STRAGGLER_TORCH)


def source(path: str) -> str:
    return cpp_header.preprocessed(cpp_header.without_comments((ROOT / path).read_text()), STRAGGLER_TORCH)


def virtuals(header: str, name: str) -> set[Method]:
    return cpp_header.methods(header, name, cpp_header.is_new_virtual)


def overrides(header: str, name: str) -> set[Method]:
    return cpp_header.methods(header, name, cpp_header.is_override)


def forgotten(header: str, base: str, own: set[Method], waived: dict[str, str]) -> list[str]:
    """What is virtual in `base`, and neither in `own` nor waived."""
    return sorted(str(method) for method in virtuals(header, base) - own if method.name not in waived)


# ---- The wrapper -----------------------------------------------------------------------------------------------------


def test_every_virtual_of_backend_is_forwarded_or_waived() -> None:
    own = overrides(source("backend/c10d/forwarding_backend.h"), "ForwardingBackend")
    assert forgotten(torch_header("Backend.hpp"), "Backend", own, WAIVED) == []


def test_every_virtual_of_work_is_forwarded() -> None:
    own = overrides(source("backend/c10d/observed_work.h"), "ObservedWork")
    assert forgotten(torch_header("Work.hpp"), "Work", own, {}) == []


@pytest.mark.parametrize("name", sorted(WAIVED))
def test_a_waived_alias_reaches_the_method_that_is_forwarded(name: str) -> None:
    own = overrides(source("backend/c10d/forwarding_backend.h"), "ForwardingBackend")
    assert name not in {method.name for method in own}, "it is overridden, so the waiver is stale"
    assert name in {method.name for method in virtuals(torch_header("Backend.hpp"), "Backend")}, "torch has it no more"
    assert f"return {WAIVED[name]}(" in cpp_header.body_of(torch_header("Backend.hpp"), name)


def test_each_override_calls_the_inner_by_the_same_name() -> None:
    own = overrides(source("backend/c10d/forwarding_backend.h"), "ForwardingBackend")
    text = source("backend/c10d/forwarding_backend.cc")
    silent = [
        str(method)
        for method in sorted(own)
        if f"inner_->{method.name}(" not in cpp_header.body_of(text, f"ForwardingBackend::{method.name}")
    ]
    assert silent == []


def test_each_override_of_the_work_calls_the_inner_by_the_same_name() -> None:
    header, text = source("backend/c10d/observed_work.h"), source("backend/c10d/observed_work.cc")
    for method in sorted(overrides(header, "ObservedWork")):
        where, name = (text, f"ObservedWork::{method.name}") if method.name == "wait" else (header, method.name)
        assert f"inner_->{method.name}(" in cpp_header.body_of(where, name), method


@pytest.mark.parametrize(
    ("file", "name"), [("straggler_backend", "StragglerBackend"), ("delayed_backend", "DelayedBackend")]
)
def test_what_a_wrapper_overrides_again_it_passes_on(file: str, name: str) -> None:
    backend = virtuals(torch_header("Backend.hpp"), "Backend")
    again = overrides(source(f"backend/c10d/{file}.h"), name) & backend
    text = source(f"backend/c10d/{file}.cc")
    for method in sorted(again):
        assert f"ForwardingBackend::{method.name}(" in cpp_header.body_of(text, f"{name}::{method.name}"), method


# ---- The C++ tests and their fakes -----------------------------------------------------------------------------------


def test_the_fakes_record_what_is_forwarded() -> None:
    backend = overrides(source("backend/c10d/forwarding_backend.h"), "ForwardingBackend")
    assert overrides(source("tests/fakes/recording_backend.h"), "RecordingBackend") == backend
    work = overrides(source("backend/c10d/observed_work.h"), "ObservedWork")
    assert overrides(source("tests/fakes/recording_work.h"), "RecordingWork") == work


@pytest.mark.parametrize(
    ("header", "base", "file"),
    [
        ("Backend.hpp", "Backend", "every_method.h"),
        ("Work.hpp", "Work", "observed_work_test.cc"),
    ],
)
def test_the_cpp_tests_call_every_method(header: str, base: str, file: str) -> None:
    calls = (ROOT / "tests/c10d" / file).read_text()
    names = {method.name for method in virtuals(torch_header(header), base)}
    assert sorted(name for name in names if f'("{name}",' not in calls) == []


# ---- The reader itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("header", "name"), [("Backend.hpp", "Backend"), ("Work.hpp", "Work")])
def test_no_virtual_is_passed_over(header: str, name: str) -> None:
    text = torch_header(header)
    declared = [text for text in cpp_header.declarations(text, name) if "virtual" in text.split()]
    found = virtuals(text, name)
    assert len(found) == len(declared)
    nested = 1 if name == "Backend" and STRAGGLER_TORCH >= 214 else 0  # Options::clone
    assert len(found) + nested == text.split().count("virtual")


FABRICATED = """
class TORCH_API Base;
class TORCH_API Base : public torch::CustomClassHolder {
 public:
  struct Options : torch::CustomClassHolder { virtual int clone() const { return 1; } };
  ~Base() override = 0;
  // virtual void commented(int a);
  int plain() const { return virtual_; }
  virtual bool small() const { if (true) { return false; } return true; }
  virtual std::unordered_map<std::string, uint64_t>
  wide(
      const std::vector<int64_t>& /* one, two */,
      std::function<void(std::shared_ptr<Info>, int)>&& hook,
      Options options = {},
      const std::map<int, int>& more = std::map<int, int>()) {
    CHECK(false, "virtual void quoted(); {");
  }
#define MACRO(x) \\
  virtual void x();
  virtual const Name& last() const = 0;
 protected:
  int virtual_;
};
class Other { virtual void elsewhere(); };
"""


def test_the_reader_finds_what_is_declared() -> None:
    text = cpp_header.preprocessed(cpp_header.without_comments(FABRICATED), 215)
    assert virtuals(text, "Base") == {Method("small", 0), Method("wide", 4), Method("last", 0)}
    assert "if (true)" in cpp_header.body_of(text, "small")
    with pytest.raises(ValueError, match="class Missing"):
        cpp_header.declarations(text, "Missing")


def test_the_reader_follows_the_conditions_of_our_own_headers() -> None:
    text = "class A : public B {\n int a() override;\n#if STRAGGLER_TORCH >= 214\n int b() override;\n#else\n"
    text += " int c(int x, int y) override;\n#endif\n};\n"
    assert overrides(cpp_header.preprocessed(text, 214), "A") == {Method("a", 0), Method("b", 0)}
    assert overrides(cpp_header.preprocessed(text, 213), "A") == {Method("a", 0), Method("c", 2)}


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("virtual void abort()", "virtual void novel(\n  int a,\n  T b = {}) {}\n  virtual void abort()", ["novel/2"]),
        ("virtual void abort()", "virtual void abort(int reason)", ["abort/1"]),
        ("virtual void shutdown()", "virtual void close()", ["close/0"]),
    ],
)
def test_a_method_that_torch_adds_or_changes_is_reported(old: str, new: str, missing: list[str]) -> None:
    header = torch_header("Backend.hpp")
    assert header.count(old) == 1
    own = overrides(source("backend/c10d/forwarding_backend.h"), "ForwardingBackend")
    assert forgotten(header.replace(old, new), "Backend", own, WAIVED) == missing


def test_a_method_that_we_drop_is_reported() -> None:
    own = overrides(source("backend/c10d/forwarding_backend.h"), "ForwardingBackend")
    dropped = {method for method in own if method.name != "setTimeout"}
    assert forgotten(torch_header("Backend.hpp"), "Backend", dropped, WAIVED) == ["setTimeout/1"]
