// Every layout against its definition, on random extents.
#include "runtime/observe/row_major.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

namespace autograph {
namespace {

// Where element (n, c, place) lies, as layout.h has it.
int64_t place_of(Layout layout, const Dims& dims, int64_t places, int64_t n, int64_t c, int64_t place) {
  const int64_t block = channel_block(layout);
  switch (layout) {
    case Layout::row_major: return (n * dims[1] + c) * places + place;
    case Layout::channels_last: return (n * places + place) * dims[1] + c;
    default: {
      const int64_t blocks = (dims[1] + block - 1) / block;
      return ((n * blocks + c / block) * places + place) * block + c % block;
    }
  }
}

TEST(RowMajor, FromEveryLayout) {
  std::mt19937 random(5);
  for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    for (int trial = 0; trial < 20; ++trial) {
      Dims dims{1 + static_cast<int64_t>(random() % 3), 1 + static_cast<int64_t>(random() % 35)};
      const size_t rank = 3 + random() % 3;
      while (dims.size() < rank) dims.push_back(1 + static_cast<int64_t>(random() % 4));
      const int64_t places = std::accumulate(dims.begin() + 2, dims.end(), int64_t{1}, std::multiplies<>());
      const Dims padded = padded_dims(layout, dims);
      std::vector<int16_t> stored(static_cast<size_t>(padded[0] * padded[1] * places), -1);
      std::vector<int16_t> expected;
      for (int64_t n = 0; n < dims[0]; ++n) {
        for (int64_t c = 0; c < dims[1]; ++c) {
          for (int64_t place = 0; place < places; ++place) {
            expected.push_back(static_cast<int16_t>(expected.size()));
            stored[static_cast<size_t>(place_of(layout, dims, places, n, c, place))] = expected.back();
          }
        }
      }
      const Tensor found = to_row_major(DType::i16, dims, layout, stored.data());
      EXPECT_TRUE(found.bitwise_equal(Tensor::of<int16_t>(dims, expected))) << to_string(layout);
    }
  }
}

}  // namespace
}  // namespace autograph
