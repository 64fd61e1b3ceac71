// Elementwise chains on an OpenCL device: every dtype, all special values, random chains with broadcasts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr DType kNumbers[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,
                              DType::i32, DType::i64, DType::u8,  DType::u16,  DType::u32, DType::u64};

// Numbers of all sizes, among them the extremes of integers: -lowest, lowest / -1 and x / 0 are defined.
Tensor draw_numbers(Random& random, DType dtype) {
  const bool is_integer = dtypes::kInteger.contains(dtype);
  Tensor x = draw_tensor(random, dtype, {64}, dtypes::kUnsigned.contains(dtype) ? 0 : -9, 9);
  if (!is_integer) return x;
  char* bytes = static_cast<char*>(x.mutable_raw());
  const size_t size = element_size(dtype);
  for (size_t b = 0; b < size; ++b) {
    bytes[b] = static_cast<char>(b + 1 == size ? 0x80 : 0);                // the lowest of signed ones
    bytes[size + b] = static_cast<char>(0xff);                             // -1, or the largest
    bytes[2 * size + b] = static_cast<char>(b + 1 == size ? 0x7f : 0xff);  // the largest of signed ones
    bytes[3 * size + b] = 0;
  }
  return x;
}

TEST(OpenClChains, ComputeWithEveryDtype) {
  AG_NEEDS_OPENCL();
  for (const DType dtype : kNumbers) {
    GraphBuilder graph;
    const Var a = graph.input("a", dtype, {64});
    const Var b = graph.input("b", dtype, {64});
    const Var quotient = sub(mul(a, b), div(a, b));
    const bool is_signed = !dtypes::kUnsigned.contains(dtype);  // the others have no sign to change
    graph.output("y", where(less(a, b), max({a, is_signed ? neg(b) : b}), min({is_signed ? abs(a) : a, quotient})));
    graph.output("z", add(div(b, a), is_signed ? sign(a) : a));
    Random random(1);
    const std::vector<Datum> inputs{draw_numbers(random, dtype), draw_numbers(random, dtype)};
    // Narrow floats: what lies between two nodes is rounded, but functions may differ in the last place before.
    const bool is_narrow = dtype == DType::f16 || dtype == DType::bf16;
    const FloatTolerance tolerance = is_narrow ? FloatTolerance{2e-2, 2e-2} : FloatTolerance{};
    EXPECT_EQ(difference_on_opencl(graph.build(), inputs, tolerance), "") << to_string(dtype);
  }
}

// To f32 directly; to the others by way of them, so that one kernel does all.
TEST(OpenClChains, CastFromEveryDtype) {
  AG_NEEDS_OPENCL();
  for (const DType from : kNumbers) {
    GraphBuilder graph;
    const Var x = graph.input("x", from, {64});
    Var total = cast(x, DType::f32);
    for (const DType to : {DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                           DType::u32, DType::u64, DType::f64}) {
      total = add(total, sub(cast(cast(x, to), DType::f32), cast(x, DType::f32)));
    }
    graph.output("y", total);
    Random random(2);
    EXPECT_EQ(difference_on_opencl(graph.build(), {draw_numbers(random, from)}), "") << to_string(from);
  }
}

TEST(OpenClChains, TreatWhatIsNoNumberAsTheReferenceDoes) {
  AG_NEEDS_OPENCL();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> specials{0.0F,          -0.0F, 1.0F,   -1.0F,  kInf,  -kInf,
                                    std::nanf(""), 3e38F, -3e38F, 1e-30F, 88.0F, -104.0F};
  std::vector<float> a, b;
  for (const float x : specials) {
    for (const float y : specials) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const auto count = static_cast<int64_t>(a.size());
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {count});
  const Var y = graph.input("y", DType::f32, {count});
  graph.output("max", max({x, y}));
  graph.output("min", min({x, y}));
  graph.output("clip", clip(x, graph.constant(Tensor::scalar(-2.0F)), graph.constant(Tensor::scalar(2.0F))));
  graph.output("order", where(less(x, y), sigmoid(x), where(equal(x, y), tanh(x), softplus(x))));
  graph.output("tests", where(is_nan(x), y, where(is_inf(x), sign(y), relu(x))));
  graph.output("power", pow(x, y));
  graph.output("rest", mod(x, y, true));
  EXPECT_EQ(difference_on_opencl(graph.build(), {Tensor::of<float>({count}, a), Tensor::of<float>({count}, b)}), "");
}

// Sums of products of functions of three inputs that broadcast to four dims.
TEST(OpenClChains, OfRandomOpsMatchTheReference) {
  AG_NEEDS_OPENCL();
  using Unary = Var (*)(Var);
  const Unary functions[] = {[](Var v) { return relu(v); },     [](Var v) { return sigmoid(v); },
                             [](Var v) { return tanh(v); },     [](Var v) { return exp(v * 0.25F); },
                             [](Var v) { return abs(v); },      [](Var v) { return erf(v); },
                             [](Var v) { return softplus(v); }, [](Var v) { return hard_swish(v); },
                             [](Var v) { return gelu(v); },     [](Var v) { return floor(v); }};
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Random random(seed);
    const Dims dims = draw_dims(random, 1, 4, 6);
    GraphBuilder graph;
    std::vector<Datum> inputs;
    std::vector<Var> values;
    for (const char* name : {"a", "b", "c"}) {
      const Dims own = values.empty() ? dims : draw_broadcastable(random, dims);
      inputs.emplace_back(draw_tensor(random, DType::f32, own));
      values.push_back(graph.input(name, DType::f32, Shape::of(own)));
    }
    const auto pick = [&] {
      return values[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(values.size()) - 1))];
    };
    for (int n = 0; n < 8; ++n) {
      const Var v = pick();
      const Unary function = functions[draw(random, 0, std::size(functions) - 1)];
      values.push_back(draw_bool(random) ? function(v) : draw_bool(random) ? mul(function(v), pick()) : add(v, pick()));
    }
    Var total = values[0];
    for (size_t k = 1; k < values.size(); ++k) total = add(total, values[k]);
    graph.output("y", total);
    // Sums of terms of both signs: the error is that of the terms.
    EXPECT_EQ(difference_on_opencl(graph.build(), inputs, {1e-4, 1e-3}), "") << "seed " << seed;
  }
}

// Enough elements to be read four at a time: extents that are no multiples of 4, broadcasts along any axis.
TEST(OpenClChains, OfFoursMatchTheReference) {
  AG_NEEDS_OPENCL();
  struct Shapes {
    Dims x, y, z;
  };
  const Shapes all[] = {{{16384}, {1}, {16384}},        {{16387}, {16387}, {}},
                        {{129, 131}, {131}, {129, 1}},  {{130, 128}, {128}, {130, 128}},
                        {{2, 64, 130}, {64, 1}, {130}}, {{128, 2, 65}, {1, 2, 1}, {2, 65}}};
  for (const DType dtype : {DType::f32, DType::f16, DType::i64, DType::u8, DType::f64}) {
    for (const Shapes& shapes : all) {
      if (dtype != DType::f32 && shapes.x.size() != 2) continue;  // compilers are slow
      Random random(static_cast<uint64_t>(shapes.x[0]));
      GraphBuilder graph;
      std::vector<Datum> inputs;
      std::vector<Var> values;
      for (const Dims& dims : {shapes.x, shapes.y, shapes.z}) {
        inputs.emplace_back(draw_tensor(random, dtype, dims, 0, 9));
        values.push_back(graph.input("x" + std::to_string(inputs.size()), dtype, Shape::of(dims)));
      }
      graph.output("y", max({values[0], values[1]}) + values[2] * values[0]);
      const FloatTolerance tolerance = dtype == DType::f16 ? FloatTolerance{2e-3, 2e-3} : FloatTolerance{};
      EXPECT_EQ(difference_on_opencl(graph.build(), inputs, tolerance), "")
          << to_string(dtype) << " " << testing::PrintToString(shapes.x);
    }
  }
}

// Pieces that begin at no multiple of 4 elements, and such that end at none.
TEST(OpenClChains, MoveFoursToAnyPlace) {
  AG_NEEDS_OPENCL();
  for (const int64_t cut : {1, 2, 128}) {
    GraphBuilder graph;
    const Var x = graph.input("x", DType::f32, {2, 16640});
    const std::vector<Var> pieces = split(x, std::vector<int64_t>{cut, 16640 - cut}, 1);
    graph.output("y", concat({pieces[1], pieces[0]}, 1));
    graph.output("z", relu(pieces[1]));
    graph.output("t", transpose(reshape(x, {2, 130, 128}), {1, 0, 2}));
    Random random(3);
    EXPECT_EQ(difference_on_opencl(graph.build(), {draw_tensor(random, DType::f32, {2, 16640})}), "") << cut;
  }
}

}  // namespace
}  // namespace autograph
