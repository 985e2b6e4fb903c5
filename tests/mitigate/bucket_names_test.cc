#include "backend/mitigate/bucket_names.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

class Watched final : public StorageWatch {
 public:
  explicit Watched(std::shared_ptr<bool> alive) : alive_(std::move(alive)) {}
  bool isAlive() const noexcept override { return *alive_; }

 private:
  std::shared_ptr<bool> alive_;
};

class BucketNamesTest : public testing::Test {
 protected:
  std::optional<BucketId> see(std::uintptr_t storage, int backward, std::uint64_t elements = 64) {
    auto& alive = alive_[storage];
    if (!alive) {
      alive = std::make_shared<bool>(true);
    }
    return names.see(storage, elements, backward, [alive] { return std::make_unique<Watched>(alive); });
  }
  void end(std::uintptr_t storage) {
    *alive_[storage] = false;
    alive_.erase(storage);
  }

  BucketNames names;

 private:
  std::map<std::uintptr_t, std::shared_ptr<bool>> alive_;
};

TEST_F(BucketNamesTest, storageThatComesBackInAFourthBackwardIsABucket) {
  for (int backward = 0; backward < 3; ++backward) {
    EXPECT_EQ(see(100, backward), std::nullopt);
    EXPECT_EQ(see(200, backward), std::nullopt);
  }
  for (int backward = 3; backward < 6; ++backward) {
    EXPECT_EQ(see(100, backward), 0U);
    EXPECT_EQ(see(200, backward), 1U);
  }
}

TEST_F(BucketNamesTest, storageThatExpiresIsNone) {
  for (int backward = 0; backward < 20; ++backward) {
    EXPECT_EQ(see(100, backward), std::nullopt);
    end(100);
  }
  EXPECT_EQ(names.named(), (BucketNames::Named{0, 0}));
}

TEST_F(BucketNamesTest, anotherStorageAtTheSameAddressIsAnotherBucket) {
  for (int backward = 0; backward < 4; ++backward) {
    see(100, backward);
  }
  end(100);  // DDP builds its buckets anew
  for (int backward = 4; backward < 7; ++backward) {
    EXPECT_EQ(see(100, backward), std::nullopt);
  }
  EXPECT_EQ(see(100, 7), 1U);
}

TEST_F(BucketNamesTest, orderOfTheBackwardsDoesNotChangeNames) {
  for (int backward = 0; backward < 4; ++backward) {
    see(100, backward);
    see(200, backward);
  }
  EXPECT_EQ(see(200, 4), 1U);
  EXPECT_EQ(see(100, 5), 0U);
}

TEST_F(BucketNamesTest, oneThatABackwardReducesTwiceEndsNaming) {
  for (int backward = 0; backward < 4; ++backward) {
    see(100, backward);
  }
  EXPECT_EQ(see(100, 3), std::nullopt);
  EXPECT_EQ(names.refusal(), "a backward reduces one tensor twice");
  EXPECT_EQ(see(100, 4), 0U);
}

TEST_F(BucketNamesTest, firstReasonStays) {
  names.refuse("a");
  names.refuse("b");
  EXPECT_EQ(names.refusal(), "a");
}

TEST_F(BucketNamesTest, whatIsDeadIsForgottenAndTooMuchEndsNaming) {
  for (std::uintptr_t storage = 1; storage <= 3 * BucketNames::kMaxStorages; ++storage) {
    see(storage, 0);
    end(storage);
  }
  EXPECT_EQ(names.refusal(), "");
  for (std::uintptr_t storage = 1; storage <= BucketNames::kMaxStorages + 1; ++storage) {
    see(storage, 1);
  }
  EXPECT_NE(names.refusal(), "");
}

TEST_F(BucketNamesTest, whatIsNamedAndAliveIsCounted) {
  for (int backward = 0; backward < BucketNames::kSightings; ++backward) {
    see(100, backward, 10);
    see(200, backward, 7);
  }
  see(300, 9, 5);
  EXPECT_EQ(names.named(), (BucketNames::Named{2, 17}));
  end(100);
  EXPECT_EQ(names.named(), (BucketNames::Named{1, 7}));
}

TEST_F(BucketNamesTest, storageOfWhichAnotherPartIsReducedIsNoBucket) {
  see(100, 0, 10);
  see(100, 1, 9);
  EXPECT_FALSE(names.refusal().empty());
}

TEST_F(BucketNamesTest, somethingElseInTheFirstBackwardAloneIsForgiven) {
  see(100, 0);
  names.seeOther("a map of used parameters", 0);
  names.seeOther("a map of used parameters", 0);
  for (int backward = 1; backward < 1 + BucketNames::kSightings; ++backward) {
    EXPECT_EQ(names.named().buckets, 0U);
    see(100, backward);
  }
  EXPECT_EQ(names.named().buckets, 1U);
  EXPECT_EQ(names.refusal(), "");
}

TEST_F(BucketNamesTest, somethingElseInASecondBackwardEndsNaming) {
  names.seeOther("a map of used parameters", 0);
  names.seeOther("a map of used parameters", 1);
  EXPECT_EQ(names.refusal(), "a map of used parameters");
}

TEST_F(BucketNamesTest, somethingElseOnceABucketIsNamedEndsNaming) {
  for (int backward = 0; backward < BucketNames::kSightings; ++backward) {
    see(100, backward);
  }
  names.seeOther("a gather", 9);
  EXPECT_EQ(names.refusal(), "a gather");
  EXPECT_EQ(see(100, 10), 0U) << "it may still owe something";
  for (int backward = 11; backward < 20; ++backward) {
    EXPECT_EQ(see(200, backward), std::nullopt);
  }
}

}  // namespace
}  // namespace straggler
