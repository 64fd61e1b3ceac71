#include "cost/in_network_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/devices.h"
#include "support/cpu_named.h"
#include "support/kernels/conv_call.h"

namespace autograph {
namespace {

// A convolution, the candidates of the catalog for it, and what each takes alone.
class InNetworkCostTest : public testing::Test {
 protected:
  InNetworkCostTest() : candidates_(conv_.candidates(catalog_)) { alone_us_ = ask(alone_); }

  std::vector<double> ask(KernelCost& cost, size_t step = 0) {
    cost.begin_step(step, 2);
    return cost.candidates_us(catalog_, conv_.call, candidates_);
  }

  const KernelCatalog& catalog_ = get_device("cpu").catalog();
  ConvCall conv_;
  std::vector<KernelCandidate> candidates_;
  MeasurementCache cache_{""};
  const CpuNamed machine_{"machine"};
  MeasuredCost alone_{machine_, cache_};
  std::vector<double> alone_us_;
};

TEST_F(InNetworkCostTest, IsThatOfTheKernelsAloneBeforeAnythingHasRun) {
  ASSERT_GT(candidates_.size(), 1U);
  InNetworkCost cost(alone_, "network");
  EXPECT_EQ(ask(cost), alone_us_);
}

TEST_F(InNetworkCostTest, IsWhatWasObservedAndInProportionForTheOthers) {
  InNetworkCost cost(alone_, "network");
  ask(cost, 0);
  ask(cost, 1);
  cost.observe(0, candidates_[0], 2.5 * alone_us_[0]);
  cost.observe(0, candidates_[0], 3.5 * alone_us_[0]);
  const std::vector<double> us = ask(cost, 0);
  EXPECT_DOUBLE_EQ(us[0], 3 * alone_us_[0]) << "the mean";
  for (size_t i = 1; i < us.size(); ++i) EXPECT_DOUBLE_EQ(us[i], 3 * alone_us_[i]);
  EXPECT_DOUBLE_EQ(ask(cost, 1)[0], 3 * alone_us_[0]) << "of another step as well";
}

TEST_F(InNetworkCostTest, PassesOverWhatItWasNotAskedAbout) {
  InNetworkCost cost(alone_, "network");
  ask(cost, 0);
  cost.observe(1, candidates_[0], 1e6);
  KernelCandidate unheard_of = candidates_[0];
  unheard_of.variant.name = "unheard of";
  cost.observe(0, unheard_of, 1e6);
  EXPECT_EQ(ask(cost, 0), alone_us_);
}

TEST_F(InNetworkCostTest, GoesOnWhereTimeWasOver) {
  InNetworkCost cost(alone_, "network");
  ask(cost, 0);
  cost.observe(0, candidates_[0], alone_us_[0]);
  cost.keep({candidates_[0]}, 100, true);
  EXPECT_FALSE(InNetworkCost(alone_, "network").is_kept());
  EXPECT_TRUE(InNetworkCost(alone_, "network", false).is_kept());
  cost.keep({candidates_[0]}, 100);
  EXPECT_TRUE(InNetworkCost(alone_, "network").is_kept());
}

TEST_F(InNetworkCostTest, ChoosesWhatWasKeptForThisNetworkAlone) {
  InNetworkCost cost(alone_, "network");
  ask(cost, 0);
  const size_t dearest = static_cast<size_t>(std::max_element(alone_us_.begin(), alone_us_.end()) - alone_us_.begin());
  cost.observe(0, candidates_[dearest], alone_us_[dearest]);
  EXPECT_FALSE(cost.is_kept());
  cost.keep({candidates_[dearest]}, 100);
  EXPECT_TRUE(cost.is_kept());

  MeasuredCost later(machine_, cache_);
  InNetworkCost again(later, "network");
  ASSERT_TRUE(again.is_kept());
  const std::vector<double> us = ask(again, 0);
  EXPECT_EQ(static_cast<size_t>(std::min_element(us.begin(), us.end()) - us.begin()), dearest);
  EXPECT_EQ(later.num_measured(), 0U);
  EXPECT_FALSE(InNetworkCost(later, "another network").is_kept());
  const CpuNamed another("another machine");
  MeasuredCost elsewhere(another, cache_);
  EXPECT_FALSE(InNetworkCost(elsewhere, "network").is_kept());

  // A plan file carries what was kept.
  MeasurementCache empty("");
  MeasuredCost from_file(machine_, empty);
  from_file.know(later.used());
  InNetworkCost loaded(from_file, "network");
  EXPECT_TRUE(loaded.is_kept());
  EXPECT_EQ(ask(loaded, 0)[dearest], us[dearest]);
}

}  // namespace
}  // namespace autograph
