// Residuals: the gradients that this rank still owes, one tensor a bucket, on the device of its gradients.
//
// They are kept in float32 at least. What rounding to the bucket's own type cuts off stays, and goes with the next
// contribution. A gradient that is not finite is refused: added to others it would spoil them for good.
//
// Not thread-safe: guarded by the carrier's slot lock.
#pragma once

#include <map>

#include <ATen/core/Tensor.h>

#include "backend/mitigate/slot.h"

namespace straggler {

class Residuals {
 public:
  // The gradient of a slot that was filled without it. False: it is not finite, and is not kept.
  bool add(BucketId bucket, const at::Tensor& gradient);
  // Adds what is owed to a contribution, in place.
  void moveInto(BucketId bucket, at::Tensor& contribution);

  const std::map<BucketId, at::Tensor>& all() const { return owed_; }

 private:
  std::map<BucketId, at::Tensor> owed_;
};

}  // namespace straggler
