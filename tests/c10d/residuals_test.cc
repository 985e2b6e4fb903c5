#include "backend/c10d/residuals.h"

#include <limits>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(Residuals, whatIsOwedIsAddedUpAndMovedOnce) {
  Residuals residuals(4);
  EXPECT_TRUE(residuals.add(0, at::full({2}, 3.0), 1));
  EXPECT_TRUE(residuals.add(0, at::full({2}, 4.0), 1));
  at::Tensor contribution = at::full({2}, 10.0);
  EXPECT_TRUE(residuals.moveInto(0, contribution, 1, true).equal(at::full({2}, 7.0)));
  EXPECT_TRUE(contribution.equal(at::full({2}, 17.0)));
  EXPECT_FALSE(residuals.moveInto(0, contribution, 1, true).defined());
}

TEST(Residuals, theUsersGradientIsCopied) {
  Residuals residuals(4);
  at::Tensor gradient = at::full({2}, 3.0);
  residuals.add(0, gradient, 1);
  gradient.fill_(100);
  EXPECT_TRUE(residuals.all().at(0).equal(at::full({2}, 3.0)));
}

TEST(Residuals, whatRoundingCutsOffIsStillOwed) {
  Residuals residuals(4);
  residuals.add(0, at::full({1}, 0.5, at::kBFloat16), 1);
  at::Tensor contribution = at::full({1}, 256.0, at::kBFloat16);  // the next number is 258
  residuals.moveInto(0, contribution, 1, false);
  const double got = contribution.item<double>();
  EXPECT_EQ(got + residuals.all().at(0).item<double>(), 256.5);
  EXPECT_EQ(residuals.all().at(0).scalar_type(), at::kFloat);
}

TEST(Residuals, doubleStaysDouble) {
  Residuals residuals(4);
  residuals.add(0, at::full({1}, 1e-12, at::kDouble), 1);
  EXPECT_EQ(residuals.all().at(0).scalar_type(), at::kDouble);
}

TEST(Residuals, whatIsNotFiniteIsRefused) {
  Residuals residuals(4);
  EXPECT_FALSE(residuals.add(0, at::full({2}, std::numeric_limits<double>::infinity()), 1));
  EXPECT_TRUE(residuals.all().empty());
}

TEST(Residuals, theScaleIsTakenOffAndPutOn) {
  Residuals residuals(4);
  residuals.add(0, at::full({1}, 24.0), 8);
  EXPECT_EQ(residuals.all().at(0).item<double>(), 3);
  at::Tensor contribution = at::zeros({1});
  residuals.moveInto(0, contribution, 16, false);
  EXPECT_EQ(contribution.item<double>(), 48);
}

TEST(Residuals, anEarlierRunsIsTakenOver) {
  Residuals residuals(4);
  residuals.restore(0, at::full({1}, 5.0));
  residuals.add(0, at::full({1}, 1.0), 1);
  EXPECT_EQ(residuals.all().at(0).item<double>(), 6);
}

TEST(Residuals, aSumOfFloat16StaysFinite) {
  Residuals residuals(4);
  residuals.add(0, at::full({1}, 15'000.0, at::kHalf), 1);
  at::Tensor contribution = at::full({1}, 15'000.0, at::kHalf);
  residuals.moveInto(0, contribution, 1, false);
  EXPECT_LE(4 * contribution.item<double>(), 65'504);
  EXPECT_EQ(contribution.item<double>() + residuals.all().at(0).item<double>(), 30'000);
}

TEST(Residuals, aRanksOwnGradientIsNeverCut) {
  Residuals residuals(4);
  residuals.add(0, at::full({1}, -100.0, at::kHalf), 1);
  at::Tensor contribution = at::full({1}, -60'000.0, at::kHalf);
  residuals.moveInto(0, contribution, 1, false);
  EXPECT_EQ(contribution.item<double>(), -60'000);
  EXPECT_EQ(residuals.all().at(0).item<double>(), -100);
}

}  // namespace
}  // namespace straggler
