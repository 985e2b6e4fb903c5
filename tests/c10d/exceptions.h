// Exceptions of an inner backend, and that they reach the caller as they are.
#pragma once

#include <exception>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/c10d/every_method.h"
#include "tests/fakes/recording_backend.h"

namespace straggler {

// An exception of no class that anybody else knows.
struct Unusual : std::domain_error {
  using std::domain_error::domain_error;
};

// Has every method of `inner` throw, one after the other, and calls it through `outer`.
inline void expectExceptionsPassUnchanged(RecordingBackend& inner, c10d::Backend& outer) {
  for (const auto& method : everyMethod(true)) {
    SCOPED_TRACE(method.name);
    inner.throws = std::make_exception_ptr(Unusual(method.name + ": the inner's own words"));
    try {
      method.call(outer);
      ADD_FAILURE() << "the exception did not come through";
    } catch (const Unusual& error) {
      EXPECT_EQ(error.what(), method.name + ": the inner's own words");
    }
  }
}

}  // namespace straggler
