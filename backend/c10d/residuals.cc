#include "backend/c10d/residuals.h"

#include <ATen/Functions.h>
#include <c10/core/ScalarType.h>

namespace straggler {

bool Residuals::add(BucketId bucket, const at::Tensor& gradient) {
  if (!at::isfinite(gradient).all().item<bool>()) {
    return false;
  }
  const auto wide = c10::promoteTypes(gradient.scalar_type(), at::kFloat);
  const at::Tensor flat = gradient.reshape({-1}).to(wide);
  auto [owed, first] = owed_.try_emplace(bucket);
  owed->second = first || !owed->second.defined() ? flat.clone() : owed->second.add_(flat);
  return true;
}

void Residuals::moveInto(BucketId bucket, at::Tensor& contribution) {
  const auto owed = owed_.find(bucket);
  if (owed == owed_.end()) {
    return;
  }
  at::Tensor& residual = owed->second;
  at::Tensor flat = contribution.view({-1});
  if (residual.scalar_type() == flat.scalar_type()) {
    flat.add_(residual);
    owed_.erase(owed);
    return;
  }
  residual.add_(flat);
  flat.copy_(residual);
  residual.sub_(flat);
  if (!residual.any().item<bool>()) {
    owed_.erase(owed);
  }
}

}  // namespace straggler
