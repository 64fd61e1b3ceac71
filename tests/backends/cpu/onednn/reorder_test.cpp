// Changes of layout against the definition of each layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/cpu_kernels.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

// Where element [n, c, position] of a tensor with these dims stands.
int64_t offset(Layout layout, const Dims& dims, int64_t positions, int64_t n, int64_t c, int64_t position) {
  const int64_t channels = padded_dims(layout, dims)[1];
  if (layout == Layout::channels_last) return (n * positions + position) * channels + c;
  const int64_t block = channel_block(layout);
  return ((n * channels / block + c / block) * positions + position) * block + c % block;
}

void expect_moved(const Dims& dims, Layout from, Layout to, int threads) {
  const Type type(DType::f32, Shape::of(dims));
  const std::unique_ptr<Kernel> kernel = cpu_reorder()({type, from, to, threads});
  Tensor in = Tensor::zeros(DType::f32, {padded_elements(from, dims)});
  Tensor out = Tensor::empty(DType::f32, {padded_elements(to, dims)});
  std::fill_n(out.mutable_data<float>(), out.num_elements(), -1.0F);
  const int64_t positions = padded_elements(Layout::row_major, dims) / dims[0] / dims[1];
  const auto for_each = [&](const auto& visit) {
    int64_t number = 0;
    for (int64_t n = 0; n < dims[0]; ++n) {
      for (int64_t c = 0; c < dims[1]; ++c) {
        for (int64_t p = 0; p < positions; ++p) visit(n, c, p, static_cast<float>(++number));
      }
    }
  };
  for_each([&](int64_t n, int64_t c, int64_t p, float number) {
    in.mutable_data<float>()[offset(from, dims, positions, n, c, p)] = number;
  });
  const TensorView input(DType::f32, dims, in.mutable_raw()), output(DType::f32, dims, out.mutable_raw());
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel->scratch_bytes()) + 1});
  const auto state = kernel->new_state();
  kernel->run({{&input, 1}, {&output, 1}, scratch.mutable_raw(), state.get()});
  double total = 0;
  for_each([&](int64_t n, int64_t c, int64_t p, float number) {
    ASSERT_EQ(out.data<float>()[offset(to, dims, positions, n, c, p)], number) << n << ' ' << c << ' ' << p;
    total += number;
  });
  const std::span<const float> all = out.elements<float>();
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), total) << "padding is not zero";
}

TEST(Reorder, EveryPairOfLayouts) {
  if (!cpu_reorder()) GTEST_SKIP() << "a build without oneDNN";
  const Layout layouts[] = {Layout::row_major, Layout::channels_last, Layout::blocked8, Layout::blocked16};
  for (const Dims& dims : {Dims{1, 16, 3, 5}, Dims{2, 32, 7}, Dims{2, 24, 5, 3}, Dims{1, 3, 4, 4}, Dims{2, 48, 2, 3, 5},
                           Dims{1, 128, 70, 3}}) {
    for (const Layout from : layouts) {
      for (const Layout to : layouts) {
        if (from == to) continue;
        SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)) + " of rank " +
                     std::to_string(dims.size()) + " with channels " + std::to_string(dims[1]));
        expect_moved(dims, from, to, 1 + static_cast<int>(dims[1] > 100));
      }
    }
  }
}

}  // namespace
}  // namespace autograph
