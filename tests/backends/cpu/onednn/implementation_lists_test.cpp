// What oneDNN has for a kind of problem is asked once; kinds differ by whatever its implementations look at.
#include "backends/cpu/onednn/implementation_lists.h"

#include <gtest/gtest.h>

#include <set>

namespace autograph::onednn {
namespace {

using Names = std::vector<std::string>;

ProblemKind kind_of(int64_t number, const dnnl::memory::dims& extents) {
  ProblemKind kind;
  kind.add(number).add_magnitudes(extents);
  return kind;
}

TEST(ImplementationLists, AreAskedForOncePerKind) {
  int asked = 0;
  const auto ask = [&](int64_t number, const dnnl::memory::dims& extents) {
    return implementations_for(kind_of(number, extents), [&] { return Names{std::to_string(++asked)}; });
  };
  constexpr int64_t kNumber = -77'001;  // of no other test
  EXPECT_EQ(ask(kNumber, {56, 57}), Names{"1"});
  EXPECT_EQ(ask(kNumber, {60, 48}), Names{"1"});
  EXPECT_EQ(ask(kNumber, {47, 57}), Names{"2"});
  EXPECT_EQ(ask(kNumber - 1, {56, 57}), Names{"3"});
  EXPECT_EQ(ask(kNumber, {56, 57, 1}), Names{"4"});
  EXPECT_EQ(ask(kNumber, {57, 56}), Names{"1"});
}

TEST(ImplementationLists, SmallExtentsAreKindsOfTheirOwn) {
  std::set<std::vector<int64_t>> kinds;
  for (int64_t extent = 0; extent <= 16; ++extent) kinds.insert(kind_of(0, {extent}).key());
  // 0 to 8, 9 to 11, 12 to 15, 16.
  EXPECT_EQ(kinds.size(), 12U);
}

TEST(ImplementationLists, PostOpsTellKindsApart) {
  const dnnl::memory::desc channels({1, 16, 1, 1}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::abcd);
  const dnnl::memory::desc pixels({1, 1, 5, 5}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::abcd);
  std::vector<dnnl::post_ops> lists(7);
  lists[1].append_sum(1.0F);
  lists[2].append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  lists[3].append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.1F, 0.0F);
  lists[4].append_binary(dnnl::algorithm::binary_add, channels);
  lists[5].append_binary(dnnl::algorithm::binary_mul, channels);
  lists[6].append_binary(dnnl::algorithm::binary_add, pixels);
  std::set<std::vector<int64_t>> kinds;
  for (const dnnl::post_ops& ops : lists) kinds.insert(ProblemKind().add(ops).key());
  EXPECT_EQ(kinds.size(), lists.size());
}

}  // namespace
}  // namespace autograph::onednn
