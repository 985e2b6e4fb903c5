#include "backend/session/publisher.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_exchange.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/reports.h"

namespace straggler {
namespace {

class PublisherTest : public testing::Test {
 protected:
  std::shared_ptr<FakeExchange> exchange_ = std::make_shared<FakeExchange>();
  std::shared_ptr<FakeExchange> other_ = std::make_shared<FakeExchange>();
  Publisher publisher_{{exchange_, other_}};
};

TEST_F(PublisherTest, publishesAtOnceThenEveryFiveSecondsAndWhenTheVerdictChanges) {
  EXPECT_TRUE(publisher_.due(at(0), false));
  publisher_.publish(smallReport(), at(0));
  EXPECT_FALSE(publisher_.due(at(4'999), false));
  EXPECT_TRUE(publisher_.due(at(1), true));
  EXPECT_TRUE(publisher_.due(at(5'000), false));
}

TEST_F(PublisherTest, everyTransportGetsTheBriefReport) {
  publisher_.publish(smallReport(), at(0));
  ASSERT_EQ(exchange_->publications.size(), 1U);
  EXPECT_EQ(exchange_->publications, other_->publications);
  EXPECT_NE(exchange_->publications.front().first.find(R"("type":"report")"), std::string::npos);
  EXPECT_LE(exchange_->publications.front().first.size(), Exchange::kMaxPublished);
}

TEST_F(PublisherTest, onlyAnotherVerdictIsNews) {
  JobReport report = smallReport();
  publisher_.publish(report, at(0));
  report.collectives += 100;
  report.verdict.excessMs = 9;
  publisher_.publish(report, at(5'000));
  report.verdict.ranks = {0};
  publisher_.publish(report, at(6'000));
  ASSERT_EQ(exchange_->publications.size(), 3U);
  EXPECT_EQ(exchange_->publications[0].second, Exchange::Publication::kNews);
  EXPECT_EQ(exchange_->publications[1].second, Exchange::Publication::kFigures);
  EXPECT_EQ(exchange_->publications[2].second, Exchange::Publication::kNews);
}

TEST_F(PublisherTest, whatDoesNotFitIsNotPublished) {
  JobReport report = smallReport();
  report.verdict.reason = std::string(Exchange::kMaxPublished, 'x');
  publisher_.publish(report, at(0));
  EXPECT_TRUE(exchange_->publications.empty());
  EXPECT_FALSE(publisher_.due(at(1), false));
}

}  // namespace
}  // namespace straggler
