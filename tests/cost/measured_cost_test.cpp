#include "cost/measured_cost.h"

#include <gtest/gtest.h>

#include "autograph/devices.h"
#include "support/cpu_named.h"
#include "support/kernels/conv_call.h"

namespace autograph {
namespace {

TEST(MeasuredCost, MeasuresEveryOfferOnce) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  const ConvCall conv;
  const CpuNamed machine("machine");
  const CpuNamed another("another machine");
  MeasurementCache cache("");
  size_t reported = 0;
  MeasuredCost cost(machine, cache, [&](size_t, size_t, size_t measured) { reported = measured; });
  const std::vector<KernelCandidate> candidates = conv.candidates(catalog);
  ASSERT_GT(candidates.size(), 1U);
  const std::vector<double> costs = cost.candidates_us(catalog, conv.call, candidates);
  for (const double us : costs) EXPECT_GT(us, 0);
  EXPECT_EQ(cost.candidates_us(catalog, conv.call, candidates), costs);
  EXPECT_EQ(cost.num_measured(), candidates.size());
  EXPECT_EQ(reported, candidates.size());

  MeasuredCost second(machine, cache);
  EXPECT_EQ(second.candidates_us(catalog, conv.call, candidates), costs);
  EXPECT_EQ(second.num_measured(), 0U) << "the cache has them";
  MeasuredCost elsewhere(another, cache);
  elsewhere.candidates_us(catalog, conv.call, {candidates.data(), 1});
  EXPECT_EQ(elsewhere.num_measured(), 1U);
}

TEST(MeasuredCost, MeasuresReorders) {
  const Device& device = get_device("cpu");
  MeasurementCache cache("");
  MeasuredCost cost(device, cache);
  const Type type(DType::f32, {1, 32, 14, 14});
  EXPECT_GT(cost.reorder_us(device.catalog(), {type, Layout::row_major, Layout::channels_last, 1}), 0);
  EXPECT_EQ(cost.num_measured(), 1U);
}

}  // namespace
}  // namespace autograph
