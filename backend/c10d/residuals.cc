#include "backend/c10d/residuals.h"

#include <ATen/Functions.h>
#include <c10/core/ScalarType.h>

namespace straggler {
namespace {

at::Tensor wide(const at::Tensor& tensor) {
  return tensor.reshape({-1}).to(c10::promoteTypes(tensor.scalar_type(), at::kFloat), /*non_blocking=*/false,
                                 /*copy=*/true);
}

constexpr double kLargestHalf = 65504;

}  // namespace

// float16 ends at 65,504: that the sum of all ranks' contributions may not exceed, unless their own gradients do.
at::Tensor Residuals::withinHalf(const at::Tensor& sum, const at::Tensor& own) const {
  const at::Tensor bound = own.abs().clamp_min(kLargestHalf / ranks_);
  return at::max(at::min(sum, bound), -bound);
}

bool Residuals::add(BucketId bucket, const at::Tensor& gradient, double scale) {
  if (!at::isfinite(gradient).all().item<bool>()) {
    return false;
  }
  at::Tensor late = wide(gradient);
  if (scale != 1) {
    late.div_(scale);
  }
  at::Tensor& owed = owed_[bucket];
  owed = owed.defined() ? owed.add_(late) : late;
  return true;
}

at::Tensor Residuals::moveInto(BucketId bucket, at::Tensor& contribution, double scale, bool keep) {
  const auto owed = owed_.find(bucket);
  if (owed == owed_.end()) {
    return {};
  }
  const at::Tensor before = owed->second;
  const at::Tensor scaled = scale == 1 ? before : before.mul(scale);
  at::Tensor flat = contribution.view({-1});
  if (scaled.scalar_type() == flat.scalar_type()) {
    flat.add_(scaled);
    owed_.erase(owed);
    return before;
  }
  // The sum is rounded to the bucket's type; what that cuts off is owed still.
  const at::Tensor own = wide(flat);
  at::Tensor rest = own.add(scaled);
  flat.copy_(flat.scalar_type() == at::kHalf ? withinHalf(rest, own) : rest);
  rest.sub_(flat);
  rest.div_(scale);
  if (rest.any().item<bool>()) {
    owed->second = rest;
  } else {
    owed_.erase(owed);
  }
  return keep ? before.sub(rest) : at::Tensor();
}

void Residuals::restore(BucketId bucket, const at::Tensor& owed) { owed_[bucket] = wide(owed); }

}  // namespace straggler
