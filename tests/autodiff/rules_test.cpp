// The gradient rule of every op of the registry, against central differences in f64 along random directions.
#include <gtest/gtest.h>

#include <map>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
#include "autograph/error.h"
#include "autograph/ops/random.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr int kSamples = 25;

// Ops that have a derivative but no rule yet. An op that gets one leaves this list, or the test fails.
const std::set<std::string_view> kMissing = {};

// Their samples take or give lists of tensors: sequence_test.cpp.
const std::set<std::string_view> kOfLists = {
    "concat_from_sequence", "optional",        "sequence_at",  "sequence_construct",
    "sequence_erase",       "sequence_insert", "sequence_map", "split_to_sequence",
};

// Their samples let states grow from step to step, which differentiation does not do: see control_test.cpp.
const std::set<std::string_view> kGrowing = {"loop", "scan"};

// Their gradient is what a program says, whatever they compute: tests/eager/own_gradients_test.cpp.
const std::set<std::string_view> kSaid = {"with_gradient"};

// Inputs of floats that are settings: the op has no gradient with respect to them.
const std::map<std::string_view, std::set<size_t>> kSettings = {
    {"resize", {1, 2}}, {"dropout", {1}}, {"max_roi_pool", {1}}};

bool has_rule(const OpDef& op) { return op.vjp || op.decompose; }

std::vector<const OpDef*> differentiable_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops()) {
    const bool is_elsewhere = kOfLists.contains(op->name) || kGrowing.contains(op->name) || kSaid.contains(op->name);
    if (op->no_grad.empty() && !kMissing.contains(op->name) && !is_elsewhere) ops.push_back(op);
  }
  return ops;
}

// Of updates that replace each other one counts, and which one is not defined.
bool is_ambiguous(const OpDef&, const OpSample& sample) {
  const auto* reduction = sample.attributes.find_as<std::string>("reduction");
  if (!reduction || *reduction != "none" || sample.inputs.size() < 3) return false;
  return true;
}

class Rules : public testing::TestWithParam<const OpDef*> {};

TEST_P(Rules, AgreeWithDifferences) {
  const OpDef& op = *GetParam();
  ASSERT_TRUE(has_rule(op)) << op.name << " has neither a gradient rule nor a reason for having none";
  const auto settings = kSettings.find(op.name);
  int checked = 0;
  for (int seed = 0; checked < kSamples && seed < 4 * kSamples; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const OpSample sample = op.sample(random);
    if (is_ambiguous(op, sample)) continue;
    try {
      const GradientCase test =
          make_gradient_case(op, sample, settings == kSettings.end() ? std::set<size_t>() : settings->second);
      if (test.wanted.empty() || test.outputs.empty()) continue;
      ++checked;
      const std::string text = print_text(*test.graph);
      const std::string wrong = check_gradients(test, random);
      ASSERT_EQ(wrong, "") << op.name << ", seed " << seed << "\n" << text;
    } catch (const std::exception& error) {
      FAIL() << op.name << ", seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GT(checked, 0) << op.name << " has no sample with floats";
}

std::string name_of(const testing::TestParamInfo<const OpDef*>& info) { return std::string(info.param->name); }

INSTANTIATE_TEST_SUITE_P(AllOps, Rules, testing::ValuesIn(differentiable_ops()), name_of);

// How many elements are dropped moves in jumps, which no gradient tells: it is refused instead of called 0.
TEST(Rules, ADropoutHasNoGradientOfItsRatio) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x"), ratio = input(graph, DType::f32, {}, "ratio");
  const Var y = dropout(x, ratio, constant(graph, Tensor::scalar(true)), 1).first;
  EXPECT_NO_THROW(vjp({y}, {y}, {x}));
  const std::string message = message_of<UnsupportedError>([&] { vjp({y}, {y}, {ratio}); });
  EXPECT_NE(message.find("no gradient with respect to the ratio"), std::string::npos) << message;
}

TEST(Rules, ThoseThatAreMissingAreListed) {
  for (const std::string_view name : kMissing) {
    const OpDef& op = get_op(name);
    EXPECT_FALSE(has_rule(op)) << name << " has a rule now: take it out of the list";
    EXPECT_TRUE(op.no_grad.empty()) << name << " has no gradient by nature: take it out of the list";
  }
}

}  // namespace
}  // namespace autograph
