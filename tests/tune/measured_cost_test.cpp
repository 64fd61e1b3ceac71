#include "tune/measured_cost.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "backends/cpu/cpu_kernels.h"
#include "engine/backends.h"

namespace autograph {
namespace {

// A convolution and what the catalog offers for it.
struct ConvCall {
  Attributes attributes{{"group", int64_t{1}},
                        {"strides", std::vector<int64_t>{1, 1}},
                        {"dilations", std::vector<int64_t>{1, 1}},
                        {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                        {"auto_pad", std::string("NOTSET")}};
  std::vector<Type> inputs{Type(DType::f32, {1, 32, 14, 14}), Type(DType::f32, {32, 32, 3, 3})};
  std::vector<Type> outputs{Type(DType::f32, {1, 32, 14, 14})};
  std::vector<Tensor> constants{Tensor(), Tensor::zeros(DType::f32, {32, 32, 3, 3})};
  KernelCall call{get_op("conv"), attributes, inputs, outputs, constants, 1};
};

TEST(MeasuredCost, MeasuresEveryOfferOnce) {
  const KernelCatalog& catalog = get_device("cpu").catalog;
  const ConvCall conv;
  MeasurementCache cache("");
  size_t reported = 0;
  MeasuredCost cost("machine", cache, [&](size_t, size_t, size_t measured) { reported = measured; });
  const Offers offers = catalog.offers(conv.call);
  ASSERT_GT(offers.offers.size(), 1U);
  std::vector<Offer> candidates;
  for (const Offer& offer : offers.offers) {
    if (offer.variant.cost_us < kLastResortUs) candidates.push_back(offer);
  }
  const std::vector<double> costs = cost.offers_us(catalog, conv.call, candidates);
  for (const double us : costs) EXPECT_GT(us, 0);
  EXPECT_EQ(cost.offers_us(catalog, conv.call, candidates), costs);
  EXPECT_EQ(cost.num_measured(), candidates.size());
  EXPECT_EQ(reported, candidates.size());

  MeasuredCost second("machine", cache);
  EXPECT_EQ(second.offers_us(catalog, conv.call, candidates), costs);
  EXPECT_EQ(second.num_measured(), 0U) << "the cache has them";
  MeasuredCost elsewhere("another machine", cache);
  elsewhere.offers_us(catalog, conv.call, {candidates.data(), 1});
  EXPECT_EQ(elsewhere.num_measured(), 1U);
}

TEST(MeasuredCost, MeasuresReorders) {
  const Device& device = get_device("cpu");
  MeasurementCache cache("");
  MeasuredCost cost("machine", cache);
  const Type type(DType::f32, {1, 32, 14, 14});
  EXPECT_GT(cost.reorder_us(device.catalog, {type, Layout::row_major, Layout::channels_last, 1}), 0);
  EXPECT_EQ(cost.num_measured(), 1U);
}

}  // namespace
}  // namespace autograph
