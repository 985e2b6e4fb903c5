// Residuals: the gradients that this rank still owes, one tensor a bucket, on the device of its gradients.
//
// They are kept in float32 at least, without the scale that a GradScaler puts on gradients: the one in force may have changed
// by the time that they are contributed. What rounding to the bucket's own type cuts off stays, and goes with the next
// contribution; so does what would make a sum of float16 overflow. A gradient that is not finite is refused: added to others it would spoil them for good.
//
// Not thread-safe: guarded by the carrier's slot lock.
#pragma once

#include <map>

#include <ATen/core/Tensor.h>

#include "backend/mitigate/slot.h"

namespace straggler {

class Residuals {
 public:
  explicit Residuals(int ranks) : ranks_(ranks) {}

  // The gradient of a slot that was filled without it. False: it is not finite, and is not kept.
  bool add(BucketId bucket, const at::Tensor& gradient, double scale);
  // Adds what is owed to a contribution, in place; gives what was added, without the scale, if that is asked for.
  at::Tensor moveInto(BucketId bucket, at::Tensor& contribution, double scale, bool keep);
  // Of an earlier run: one-dimensional.
  void restore(BucketId bucket, const at::Tensor& owed);

  const std::map<BucketId, at::Tensor>& all() const { return owed_; }

 private:
  at::Tensor withinHalf(const at::Tensor& sum, const at::Tensor& own) const;

  int ranks_;
  std::map<BucketId, at::Tensor> owed_;
};

}  // namespace straggler
