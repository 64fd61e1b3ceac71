// The slopes of functions of one number far from 0, where products of what vanishes and what grows go wrong, in f32 and
// f16 against differences in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

const std::vector<double> kFarInF32{-3.4e38, -1e20, -1e4, -1000, -100, -50,  -20, -9.3, -6.3,
                                    6.3,     9.3,   20,   50,    100,  1000, 1e4, 1e20, 3.4e38};
const std::vector<double> kFarInF16{-65504, -1e4, -1000, -200, -50, -20,  -9.3, -6.3,
                                    6.3,    9.3,  20,    50,   200, 1000, 1e4,  65504};

bool is_float_function(const OpDef& op) {
  // Nothing can be told of periodic functions far away, and the samples of a cast are of other types.
  if (&op == &sin_def() || &op == &cos_def() || &op == &tan_def()) return false;
  if (!op.traits.elementwise || !op.vjp || op.inputs.size() != 1 || &op == &cast_def()) return false;
  return op.types.front().allowed.contains(DType::f16) && op.types.front().allowed.contains(DType::f64);
}

std::vector<const OpDef*> float_functions() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops()) {
    if (is_float_function(*op)) ops.push_back(op);
  }
  return ops;
}

Tensor in_f64(const std::vector<double>& values) {
  return Tensor::of<double>({static_cast<int64_t>(values.size())}, values);
}

Tensor in_dtype(const std::vector<double>& values, DType dtype) {
  return run_op(cast_def(), {in_f64(values)}, {{"to", dtype}});
}

std::vector<double> slopes_of(const OpDef& op, const Attributes& attributes, const Tensor& x, const char* device) {
  GraphBuilder graph;
  const Var at = graph.input("x", x.dtype(), {x.num_elements()});
  graph.output("slope", vjp({apply(op, {at}, attributes)},
                            {graph.constant(in_dtype(std::vector<double>(x.num_elements(), 1), x.dtype()))}, {at})[0]);
  return compile(graph.build(), {.device = device}).run({{"x", x}})["slope"].to_f64();
}

// What the values at neighbours tell; nothing where these are not finite.
std::vector<double> differences_of(const OpDef& op, const Attributes& attributes, const Tensor& x) {
  constexpr double kStep = 1e-5;
  const auto moved = [&](double factor) {
    std::vector<double> values = x.to_f64();
    for (double& value : values) value *= factor;
    return run_op(op, {in_f64(values)}, attributes).to_f64();
  };
  const std::vector<double> at = x.to_f64(), above = moved(1 + kStep), below = moved(1 - kStep);
  std::vector<double> slopes;
  for (size_t i = 0; i < at.size(); ++i) slopes.push_back((above[i] - below[i]) / (2 * kStep * at[i]));
  return slopes;
}

void expect_slopes(const OpDef& op, const Attributes& attributes, DType dtype, const std::vector<double>& values) {
  const Tensor x = in_dtype(values, dtype);
  const double tolerance = dtype == DType::f16 ? 4e-3 : 1e-5, largest = dtype == DType::f16 ? 65504 : 3.4e38;
  const std::vector<double> expected = differences_of(op, attributes, x);
  for (const char* device : {"reference", "cpu"}) {
    const std::vector<double> actual = slopes_of(op, attributes, x, device);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!(std::fabs(expected[i]) <= largest)) continue;
      EXPECT_LE(std::fabs(actual[i] - expected[i]), tolerance * (1 + std::fabs(expected[i])))
          << op.name << " at " << values[i] << " on " << device << ": got " << actual[i] << ", expected "
          << expected[i];
    }
  }
}

class FarSlopes : public testing::TestWithParam<const OpDef*> {};

TEST_P(FarSlopes, AreFiniteAndRight) {
  const OpDef& op = *GetParam();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Random random(seed);
    const Attributes attributes = op.sample(random).attributes;
    expect_slopes(op, attributes, DType::f32, kFarInF32);
    expect_slopes(op, attributes, DType::f16, kFarInF16);
  }
}

std::string name_of_function(const testing::TestParamInfo<const OpDef*>& info) { return std::string(info.param->name); }

INSTANTIATE_TEST_SUITE_P(AllOps, FarSlopes, testing::ValuesIn(float_functions()), name_of_function);

}  // namespace
}  // namespace autograph
