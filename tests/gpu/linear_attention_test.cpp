// linear_attention on an OpenCL device beside the reference: each rule, rows that are shared out evenly and not.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/attention.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"

namespace autograph {
namespace {

struct Rule {
  const char* name;
  int64_t key_size, value_size;
  int64_t decay, beta;  // extents of the gates; 0: none
  DType dtype, past;    // undefined: no past
};

// Two heads of keys with two readers each.
std::string difference_of(const Rule& rule) {
  Random random(1);
  GraphBuilder graph;
  std::vector<Datum> inputs;
  const auto operand = [&](const char* name, DType dtype, const Dims& dims, double low, double high) {
    inputs.emplace_back(draw_tensor(random, dtype, dims, low, high));
    return graph.input(name, dtype, Shape::of(dims));
  };
  const Var q = operand("q", rule.dtype, {2, 9, 4 * rule.key_size}, -1, 1);
  const Var k = operand("k", rule.dtype, {2, 9, 2 * rule.key_size}, -0.3, 0.3);
  const Var v = operand("v", rule.dtype, {2, 9, 2 * rule.value_size}, -1, 1);
  Var past, decay, beta;
  const Dims state{2, 2, rule.key_size, rule.value_size};
  if (rule.past != DType::undefined) past = operand("past", rule.past, state, -1, 1);
  if (rule.decay > 0) decay = operand("decay", rule.dtype, {2, 9, rule.decay}, -1, 0);
  if (rule.beta > 0) beta = operand("beta", rule.dtype, {2, 9, rule.beta}, 0, 1);
  const Attributes attributes{{"q_num_heads", int64_t{4}},
                              {"kv_num_heads", int64_t{2}},
                              {"scale", rule.decay > 0 ? 0.0F : 0.7F},
                              {"update_rule", std::string(rule.name)}};
  const std::vector<Var> results = linear_attention(q, k, v, attributes, past, decay, beta);
  graph.output("y", results[0]);
  graph.output("present", results[1]);
  const double tolerance = rule.dtype == DType::f16 ? 5e-3 : rule.dtype == DType::f64 ? 1e-11 : 1e-5;
  return difference_on_opencl(graph.build(), inputs, {tolerance, tolerance});
}

TEST(OpenClLinearAttention, MatchesTheReference) {
  AG_NEEDS_OPENCL();
  const std::vector<Rule> rules{{"linear", 5, 3, 0, 0, DType::f32, DType::undefined},
                                {"gated", 64, 40, 2, 0, DType::f16, DType::f32},
                                {"delta", 16, 300, 0, 1, DType::f32, DType::f64},
                                {"gated_delta", 37, 33, 74, 2, DType::f32, DType::f16}};
  for (const Rule& rule : rules) EXPECT_EQ(difference_of(rule), "") << rule.name;
}

TEST(OpenClLinearAttention, LeavesKeysOfTooManyElementsToTheHost) {
  AG_NEEDS_OPENCL();
  const Rule rule{"linear", 5000, 1, 0, 0, DType::f32, DType::undefined};
  EXPECT_NE(difference_of(rule).find("keys of too many elements"), std::string::npos);
}

}  // namespace
}  // namespace autograph
