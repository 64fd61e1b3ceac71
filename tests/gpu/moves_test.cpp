// Elements that are moved, and bits that get another dtype, on an OpenCL device.
#include <gtest/gtest.h>

#include <complex>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Elements of one byte of a dtype of `bits`, as memory holds them: all of them, again and again.
Tensor all_bytes(DType dtype, int64_t count, int bits) {
  Tensor x = Tensor::empty(dtype, {count});
  for (int64_t k = 0; k < count; ++k) static_cast<uint8_t*>(x.mutable_raw())[k] = static_cast<uint8_t>(k % (1 << bits));
  return x;
}

std::string bytes_of(const Tensor& x) {
  const TensorView view = x.view();
  return {static_cast<const char*>(view.raw()), view.size_bytes()};
}

// Bits, of which NaN has many, must be the same: elements that are equal are not enough.
TEST(OpenClMoves, KeepBits) {
  AG_NEEDS_OPENCL();
  Random random(3);
  const std::vector<Tensor> inputs{draw_tensor(random, DType::u32, {16388}, 0, 4e9),
                                   draw_tensor(random, DType::u16, {3, 5}, 0, 65535), all_bytes(DType::u8, 257, 8),
                                   all_bytes(DType::u4, 33, 4), all_bytes(DType::u2, 5, 2)};
  const std::vector<std::vector<DType>> to{
      {DType::f32}, {DType::f16}, {DType::boolean}, {DType::i4, DType::f4e2m1}, {DType::i2}};
  GraphBuilder graph;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Var x = graph.input("x" + std::to_string(k), inputs[k].dtype(), Shape::of(inputs[k].dims()));
    for (const DType dtype : to[k]) graph.output(std::string(to_string(dtype)), bit_cast(x, dtype));
  }
  const Graph built = graph.build();
  const std::vector<Datum> data(inputs.begin(), inputs.end());
  const Executable there = compile(built, on_opencl());
  for (const KernelChoice& choice : there.kernel_choices()) EXPECT_NE(choice.kernel, "reference");
  const auto actual = there.run(data), expected = compile(built, on_reference()).run(data);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < actual.size(); ++k) {
    EXPECT_EQ(bytes_of(actual[k].tensor()), bytes_of(expected[k].tensor()))
        << to_string(built.type(built.outputs()[k]));
  }
}

// Odd differences, one axis cut while the other is padded, nothing left, elements of two and of 16 bytes.
TEST(OpenClMoves, CropAndPadAroundTheCentre) {
  AG_NEEDS_OPENCL();
  Random random(5);
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {5, 4, 3}), y = graph.input("y", DType::f16, {1, 6});
  const Var z = graph.input("z", DType::c128, {2, 3});
  graph.output("both", center_crop_pad(x, {2, 7}, {-3, 1}));
  graph.output("none", center_crop_pad(x, {0}, {1}));
  graph.output("halves", center_crop_pad(y, {4, 3}, {0, 1}));
  graph.output("complex", center_crop_pad(z, {3, 6}, {0, 1}));
  const Graph built = graph.build();
  const std::vector<Datum> inputs{
      draw_tensor(random, DType::f32, {5, 4, 3}), draw_tensor(random, DType::f16, {1, 6}),
      Tensor::of<std::complex<double>>({2, 3}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 0}, 1})};
  EXPECT_EQ(difference_on_opencl(built, inputs, {0, 0}), "");
}

}  // namespace
}  // namespace autograph
