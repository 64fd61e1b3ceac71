#include "cost/attester.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>

#include "autograph/devices.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/cpu/threads/thread_limit.h"
#include "device/host_threads.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/planted_kernel.h"
#include "support/kernels/run_kernel.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

// Every candidate of the CPU for a call, prepared; the reference left out.
void for_each_kernel(const KernelCatalog& catalog, const KernelCall& call,
                     const std::function<void(const KernelCandidate&, const Kernel&)>& visit) {
  for (const KernelCandidate& candidate : catalog.candidates(call).candidates) {
    if (candidate.kernel->name == "reference") continue;
    const Prepared prepared = catalog.prepare(call, candidate);
    if (prepared.kernel) visit(candidate, *prepared.kernel);
  }
}

// Finds nothing wrong with the kernels of all ops. Without `knows_values` a call knows types alone.
void expect_trust_in_all_ops(bool knows_values) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  size_t num_kernels = 0;
  for (const OpDef* op : all_ops()) {
    if (op->evaluate || !catalog.has_own_kernel(op->name)) continue;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      Random random(seed);
      const KernelCase test(*op, op->sample(random), {.threads = 1, .constant_weights = knows_values && seed % 2 == 0});
      KernelCall call = test.call();
      const std::vector<Tensor> unknown(call.inputs.size());
      if (!knows_values) call.constants = unknown;
      for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
        ++num_kernels;
        EXPECT_EQ(find_wrong_element(call, candidate.variant, kernel, {}), "")
            << op->name << " by " << candidate.name() << ", seed " << seed;
      });
    }
  }
  EXPECT_GT(num_kernels, 500U);
}

TEST(Attester, TrustsTheKernelsOfAllOps) { expect_trust_in_all_ops(/*knows_values=*/true); }

// Extents that a turn of a loop gives are known, the values that they come from are not.
TEST(Attester, TrustsKernelsThatKnowNoValues) { expect_trust_in_all_ops(/*knows_values=*/false); }

TEST(Attester, TrustsConvolutionsInAllLayouts) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  size_t num_blocked = 0;
  for (const int64_t channels : {3, 16, 17, 32}) {
    for (int64_t which = 0; which < kNumEpilogues; ++which) {
      Random random(static_cast<uint64_t>(channels * 10 + which));
      const OpSample conv{.inputs = {draw_tensor(random, DType::f32, {1, channels, 13, 14}),
                                     draw_tensor(random, DType::f32, {channels, channels, 3, 3}),
                                     draw_tensor(random, DType::f32, {channels})},
                          .attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}};
      const KernelCase test(fused_def(), with_epilogue(random, conv, which), {.threads = 2, .constant_weights = true});
      const KernelCall call = test.call();
      const int before = get_device("cpu").host_threads().set(2);
      for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
        num_blocked += candidate.variant.is_row_major() ? 0 : 1;
        EXPECT_EQ(find_wrong_element(call, candidate.variant, kernel, {}), "")
            << channels << " channels, epilogue " << which << ", " << candidate.name();
      });
      get_device("cpu").host_threads().set(before);
    }
  }
  EXPECT_GT(num_blocked, 20U);
}

// Writes nothing.
class Idle : public Kernel {
 public:
  explicit Idle(const Kernel& other) : other_(other) {}
  void run(const KernelArgs&) const override {}
  size_t scratch_bytes() const override { return other_.scratch_bytes(); }

 private:
  const Kernel& other_;
};

// Right kernels that are found right say little: what is not compared is found right, too.
TEST(Attester, ComparesSomethingOfEveryOp) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  std::set<std::string> tried, found;
  for (const OpDef* op : all_ops()) {
    if (op->evaluate || op->traits.random || !catalog.has_own_kernel(op->name)) continue;
    for (uint64_t seed = 0; seed < 24; ++seed) {
      Random random(seed);
      const KernelCase test(*op, op->sample(random), {.threads = 1, .constant_weights = seed % 2 == 0});
      KernelCall call = test.call();
      const std::vector<Tensor> unknown(call.inputs.size());
      const bool knows_values = seed % 2 == 0;
      if (!knows_values) call.constants = unknown;
      for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
        if (call.outputs[0].shape().num_elements() == 0) return;
        const std::string name =
            fmt::format("{} of {}{}", candidate.kernel->name, op->name, knows_values ? "" : ", no values known");
        tried.insert(name);
        if (find_wrong_element(call, candidate.variant, Idle(kernel), {}) != "") found.insert(name);
      });
    }
  }
  for (const std::string& name : tried) EXPECT_TRUE(found.contains(name)) << name << " is trusted unseen";
  EXPECT_GT(tried.size(), 100U);
}

// A kernel of another, which is wrong in a way of its own.
class Disturbed : public Kernel {
 public:
  enum class How { leaves_last, wrong_in_place, wrong_first, wrong_by_team };
  Disturbed(const Kernel& right, How how, int team = 0) : right_(right), how_(how), team_(team) {}
  void run(const KernelArgs& args) const override {
    right_.run(args);
    const TensorView out = args.outputs[0];
    if (how_ == How::leaves_last) std::memset(out.mutable_data<float>() + out.num_elements() - 1, 0xFF, sizeof(float));
    if (how_ == How::wrong_by_team && cpu_thread_limit == team_) out.mutable_data<float>()[0] += 1;
    if (how_ == How::wrong_first && num_runs_++ == 0) out.mutable_data<float>()[0] += 1;
    const bool in_place = args.inputs[0].raw() == out.raw();
    if (how_ == How::wrong_in_place && in_place) {
      for (int64_t i = 0; i < out.num_elements(); ++i) out.mutable_data<float>()[i] += 1;
    }
  }
  size_t scratch_bytes() const override { return right_.scratch_bytes(); }
  std::vector<uint32_t> in_place_inputs() const override { return {0}; }
  std::unique_ptr<KernelState> new_state() const override { return right_.new_state(); }

 private:
  const Kernel& right_;
  How how_;
  int team_;
  mutable int num_runs_ = 0;
};

TEST(Attester, FindsWhatIsNotWrittenAndWhatIsWrongInPlace) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  const OpSample sample{.inputs = {Tensor::zeros(DType::f32, {3, 40, 50})}};
  const KernelCase test(relu_def(), sample);
  const KernelCall call = test.call();
  size_t num_kernels = 0;
  for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
    if (!candidate.variant.is_row_major()) return;
    ++num_kernels;
    EXPECT_EQ(find_wrong_element(call, candidate.variant, kernel, {}), "");
    const Disturbed incomplete(kernel, Disturbed::How::leaves_last);
    EXPECT_NE(find_wrong_element(call, candidate.variant, incomplete, {}), "");
    const Disturbed in_place(kernel, Disturbed::How::wrong_in_place);
    EXPECT_NE(find_wrong_element(call, candidate.variant, in_place, {})->find("in place"), std::string::npos);
  });
  EXPECT_GT(num_kernels, 0U);
}

// Libraries may have another form of a kernel for fewer threads than it was made for.
TEST(Attester, FindsWhatIsWrongWithFewerThreads) {
  const Device& device = get_device("cpu");
  const KernelCase test(relu_def(), {.inputs = {Tensor::zeros(DType::f32, {3, 40, 50})}}, {.threads = 8});
  const KernelCall call = test.call();
  size_t num_kernels = 0;
  limit_cpu_threads(1);  // as a run beside a busy program leaves it
  for_each_kernel(device.catalog(), call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
    if (!candidate.variant.is_row_major()) return;
    ++num_kernels;
    EXPECT_EQ(find_wrong_element(call, candidate.variant, kernel, {}, &device), "");
    for (const int team : {1, 3, 5, 7}) {
      const Disturbed disturbed(kernel, Disturbed::How::wrong_by_team, team);
      const auto wrong = find_wrong_element(call, candidate.variant, disturbed, {}, &device);
      EXPECT_NE(wrong->find(fmt::format("(by {} of 8 threads): expected 0, got 1", team)), std::string::npos) << *wrong;
    }
  });
  EXPECT_EQ(limit_cpu_threads(kNoThreadLimit), 1) << "the limit is as it was";
  EXPECT_GT(num_kernels, 0U);
}

// All bytes are 3; scale and zero point are not written at all.
class WrongQuantize : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const TensorView y = args.outputs[0];
    std::memset(y.mutable_data<uint8_t>(), 3, static_cast<size_t>(y.num_elements()));
  }
};

// The scale is that of all elements, so that no part can be computed alone.
TEST(Attester, TriesASmallerCallWhereTheReferenceTakesTooLong) {
  const KernelCatalog catalog({{.name = "cpu.wrong_quantize",
                                .op = dynamic_quantize_linear_def().name,
                                .why_not = [](const KernelCall&) { return std::string(); },
                                .prepare =
                                    [](const KernelCall&) {
                                      return Prepared{std::make_unique<WrongQuantize>(), ""};
                                    }}});
  const KernelCase test(dynamic_quantize_linear_def(),
                        {.inputs = {Tensor::zeros(DType::f32, {4, 1800, 2000})}, .num_outputs = 3});
  const KernelCall call = test.call();
  for (const KernelCatalog* kernels : {&catalog, &get_device("cpu").catalog()}) {
    const KernelCandidate candidate = kernels->candidates(call).candidates.front();
    const Prepared prepared = kernels->prepare(call, candidate);
    EXPECT_EQ(find_wrong_element(call, candidate.variant, *prepared.kernel, {}), std::nullopt);
    Verdicts verdicts("", "machine");
    const std::string fault = Attester(verdicts, {}, true).judge(call, candidate, *prepared.kernel);
    if (kernels != &catalog) {
      EXPECT_EQ(fault, "") << candidate.name();
      continue;
    }
    EXPECT_NE(fault.find("as dynamic_quantize_linear: f32["), std::string::npos) << fault;
  }
}

TEST(Attester, TriesKernelsInThePlaceOfAnInputOfLowerRank) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  const OpSample sample{.inputs = {Tensor::zeros(DType::f32, {2, 8}), Tensor::zeros(DType::f32, {1, 1, 1})}};
  const KernelCase test(mul_def(), sample);
  const KernelCall call = test.call();
  size_t num_in_place = 0;
  for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
    num_in_place += kernel.in_place_inputs().empty() ? 0 : 1;
    EXPECT_EQ(find_wrong_element(call, candidate.variant, kernel, {}), "") << candidate.name();
  });
  EXPECT_GT(num_in_place, 0U);
}

// relu, then times 1.4, then plus 0.6, behind a 1x1 convolution.
OpSample scaled_convolution() {
  Random random(5);
  auto body = std::make_shared<Graph>("body");
  const Var x = input(*body, DType::f32, {1, 16, 9, 9}, "x");
  const Var w = input(*body, DType::f32, {16, 16, 1, 1}, "w");
  const auto number = [&](float value) { return constant(*body, Tensor::scalar(value)); };
  body->add_output(add(mul(relu(apply(conv_def(), {x, w})), number(1.4F)), number(0.6F)).id());
  return {.inputs = {draw_tensor(random, DType::f32, {1, 16, 9, 9}), draw_tensor(random, DType::f32, {16, 16, 1, 1})},
          .attributes = {{"body", GraphRef(body)}},
          .num_outputs = 1};
}

TEST(Attester, RefusesAWrongKernelFromThenOn) {
  const KernelCatalog catalog({planted_kernel()});
  const KernelCase test(fused_def(), scaled_convolution(), {.threads = 1, .constant_weights = true});
  const KernelCall call = test.call();
  const std::vector<KernelCandidate> candidates = catalog.candidates(call).candidates;
  ASSERT_FALSE(candidates.empty());
  const Prepared prepared = catalog.prepare(call, candidates[0]);
  ASSERT_TRUE(prepared.kernel);
  const TestFolder folder;
  std::string fault;
  {
    Verdicts verdicts(folder.path(), "machine");
    Attester lenient(verdicts, {}, false);
    EXPECT_EQ(lenient.judge(call, candidates[0], *prepared.kernel), "") << "nothing is known, and it may not find out";
    Attester judge(verdicts, {}, true);
    EXPECT_TRUE(judge.has_to_run(call, candidates[0]));
    EXPECT_EQ(judge.known_faults(call, candidates), std::vector<std::string>(candidates.size()));
    fault = judge.judge(call, candidates[0], *prepared.kernel);
    EXPECT_NE(fault.find("expected"), std::string::npos) << fault;
    EXPECT_EQ(judge.num_run(), 1U);
    EXPECT_FALSE(judge.has_to_run(call, candidates[0]));
    EXPECT_EQ(judge.known_faults(call, candidates)[0], fault);
  }
  Verdicts again(folder.path(), "machine");
  Attester lenient(again, {}, false);
  EXPECT_EQ(lenient.known_faults(call, candidates)[0], fault) << "the cache has it";
  EXPECT_EQ(lenient.judge(call, candidates[0], *prepared.kernel), fault);
  ASSERT_EQ(again.refused().size(), 1U);
  EXPECT_TRUE(again.refused()[0].kernel.starts_with(kPlantedKernel));
  EXPECT_NE(again.refused()[0].call.find("conv, relu, mul, add"), std::string::npos) << again.refused()[0].call;
  EXPECT_EQ(again.num_trusted(), 0);
  Verdicts elsewhere(folder.path(), "another build");
  EXPECT_FALSE(elsewhere.has_faults());
}

// How far rounding may go is an estimate: a kernel is refused when it is wrong on several draws of inputs.
TEST(Attester, LooksAgainBeforeItRefuses) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  const KernelCase test(relu_def(), {.inputs = {Tensor::zeros(DType::f32, {4, 9})}});
  const KernelCall call = test.call();
  for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
    if (!candidate.variant.is_row_major()) return;
    const auto judged = [&](Disturbed::How how) {
      Verdicts verdicts("", "machine");
      Attester judge(verdicts, {}, true);
      return judge.judge(call, candidate, Disturbed(kernel, how));
    };
    EXPECT_EQ(judged(Disturbed::How::wrong_first), "") << candidate.name();
    EXPECT_NE(judged(Disturbed::How::leaves_last), "") << candidate.name();
  });
}

TEST(Attester, RemembersWhatIsRight) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  const KernelCase test(relu_def(), {.inputs = {Tensor::zeros(DType::f32, {4, 9})}});
  const KernelCall call = test.call();
  const KernelCandidate candidate = catalog.candidates(call).candidates.front();
  const Prepared prepared = catalog.prepare(call, candidate);
  const TestFolder folder;
  for (const size_t expected_runs : {1U, 0U}) {
    Verdicts verdicts(folder.path(), "machine");
    Attester judge(verdicts, {}, true);
    EXPECT_EQ(judge.judge(call, candidate, *prepared.kernel), "");
    EXPECT_EQ(judge.num_run(), expected_runs);
    EXPECT_EQ(verdicts.num_trusted(), 1);
  }
}

// A bias is one of as many as a network has layers; a factor may decide what a kernel does.
TEST(Attester, JudgesCallsWithOtherBiasesOnce) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  Verdicts verdicts("", "machine");
  Attester judge(verdicts, {}, true);
  const auto num_run_for = [&](const Tensor& operand) {
    const OpSample sum{.inputs = {Tensor::zeros(DType::f32, {4, 16}), operand}};
    const KernelCase test(add_def(), sum, {.constant_weights = true});
    const KernelCall call = test.call();
    const size_t before = judge.num_run();
    for_each_kernel(catalog, call, [&](const KernelCandidate& candidate, const Kernel& kernel) {
      EXPECT_EQ(judge.judge(call, candidate, kernel), "") << candidate.name();
    });
    return judge.num_run() - before;
  };
  Random random(1);
  const Tensor bias = draw_tensor(random, DType::f32, {16});
  const size_t num_kernels = num_run_for(bias);
  EXPECT_GT(num_kernels, 0U);
  EXPECT_EQ(num_run_for(draw_tensor(random, DType::f32, {16})), 0U) << "another bias";
  EXPECT_EQ(num_run_for(Tensor::zeros(DType::f32, {16})), num_kernels) << "all of it is one number";
  EXPECT_EQ(num_run_for(Tensor::scalar(2.0F)), num_run_for(Tensor::scalar(3.0F))) << "factors of their own";
}

TEST(Attester, TrustsThisOnceWhatThereIsNoTimeFor) {
  const KernelCatalog& catalog = get_device("cpu").catalog();
  const KernelCase test(relu_def(), {.inputs = {Tensor::zeros(DType::f32, {4, 9})}});
  const KernelCall call = test.call();
  const KernelCandidate candidate = catalog.candidates(call).candidates.front();
  const Prepared prepared = catalog.prepare(call, candidate);
  const Disturbed wrong(*prepared.kernel, Disturbed::How::leaves_last);
  Verdicts verdicts("", "machine");
  std::vector<std::string> asked;
  bool has_time = false;
  Attester judge(verdicts, {}, true, nullptr, [&](std::string_view kernel) {
    asked.emplace_back(kernel);
    return has_time;
  });
  EXPECT_EQ(judge.judge(call, candidate, wrong), "");
  EXPECT_EQ(judge.num_run(), 0U);
  EXPECT_TRUE(judge.has_to_run(call, candidate)) << "nothing is remembered";
  has_time = true;
  EXPECT_NE(judge.judge(call, candidate, wrong), "");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0], asked[1]) << "the kernel is known by its name";
  EXPECT_NE(judge.judge(call, candidate, wrong), "");
  EXPECT_EQ(asked.size(), 2U) << "what is known needs no time";
}

}  // namespace
}  // namespace autograph
