// Recurrent layers and the flow into their gates on an OpenCL device, beside the reference.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/graphs/sample_graph.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

struct Sizes {
  int64_t length, batch, hidden;
};

// The third is beyond what a group has items for.
constexpr Sizes kSizes[] = {{1, 1, 1}, {5, 3, 37}, {3, 2, 270}, {4, 9, 64}};

struct GatesGradient {
  const OpDef& op;
  Attributes attributes;
  int num_outputs;
  std::vector<Dims> (*dims)(const Sizes& s);
};

std::vector<Dims> dims_of_lstm(const Sizes& s) {
  const Dims state{s.batch, s.hidden};
  return {{s.length, s.batch, 4 * s.hidden}, {4 * s.hidden, s.hidden}, state, {s.length, s.batch, s.hidden}, state};
}

template <int64_t kKept>
std::vector<Dims> dims_of_gru(const Sizes& s) {
  const Dims states{s.length, s.batch, s.hidden};
  return {{s.length, s.batch, kKept * s.hidden}, {3 * s.hidden, s.hidden}, states, states};
}

std::vector<Dims> dims_of_rnn(const Sizes& s) {
  const Dims states{s.length, s.batch, s.hidden};
  return {states, {s.hidden, s.hidden}, states};
}

std::vector<GatesGradient> gates_gradients() {
  return {{lstm_gates_grad_def(), {}, 3, dims_of_lstm},
          {gru_gates_grad_def(), {{"linear_before_reset", int64_t{0}}}, 3, dims_of_gru<3>},
          {gru_gates_grad_def(), {{"linear_before_reset", int64_t{1}}}, 3, dims_of_gru<4>},
          {rnn_gates_grad_def(), {}, 2, dims_of_rnn}};
}

OpSample sample_of(const GatesGradient& test, const Sizes& sizes, bool reverse, DType dtype) {
  Random random(static_cast<uint64_t>(sizes.hidden));
  OpSample sample{.inputs = {}, .attributes = test.attributes, .num_outputs = test.num_outputs};
  for (const Dims& dims : test.dims(sizes)) {
    const double reach = sample.inputs.size() == 1 ? 0.1 : 1;  // of R, with which flows shrink as they do in training
    sample.inputs.emplace_back(draw_tensor(random, dtype, dims, -reach, reach));
  }
  sample.attributes.set("reverse", int64_t{reverse});
  return sample;
}

std::string difference_on_opencl(const OpDef& op, const OpSample& sample, const FloatTolerance& tolerance) {
  const TestGraph test = make_sample_graph(op, sample, true);
  return difference_on_opencl(test.graph, test.inputs, tolerance);
}

Tensor draw_f32(uint64_t seed, Dims dims) {
  Random random(seed);
  return draw_tensor(random, DType::f32, std::move(dims), -1, 1);
}

TEST(OpenClGatesGradient, IsThatOfTheReference) {
  AG_NEEDS_OPENCL();
  for (const GatesGradient& test : gates_gradients()) {
    for (const Sizes& sizes : kSizes) {
      const OpSample sample = sample_of(test, sizes, sizes.length > 3, DType::f32);
      EXPECT_EQ(difference_on_opencl(test.op, sample, {1e-4, 1e-5}), "") << test.op.name << ", hidden " << sizes.hidden;
    }
  }
}

TEST(OpenClGatesGradient, TakesAllFloats) {
  AG_NEEDS_OPENCL();
  for (const GatesGradient& test : gates_gradients()) {
    for (const DType dtype : {DType::f64, DType::bf16}) {
      const double step = dtype == DType::f64 ? 1e-12 : 1e-2;
      const OpSample sample = sample_of(test, {5, 3, 20}, false, dtype);
      EXPECT_EQ(difference_on_opencl(test.op, sample, {step, step}), "") << test.op.name << " " << to_string(dtype);
    }
  }
}

// The gates of a GRU, which gradients read, in all directions and with the reset gate on either side of R.
TEST(OpenClRecurrent, KeepsTheGatesOfAGru) {
  AG_NEEDS_OPENCL();
  constexpr int kOutputs = 3;
  std::set<std::pair<std::string, int64_t>> seen;
  for (uint64_t seed = 0; seed < 400 && seen.size() < 6; ++seed) {
    Random random(seed);
    const OpSample sample = gru_def().sample(random);
    const auto kind = std::pair(sample.attributes.text("direction"), sample.attributes.integer("linear_before_reset"));
    if (sample.num_outputs < kOutputs || sample.attributes.contains("activations") || !seen.insert(kind).second)
      continue;
    EXPECT_EQ(difference_on_opencl(gru_def(), sample, {1e-5, 1e-6}), "") << kind.first << " " << kind.second;
  }
  EXPECT_EQ(seen.size(), 6U);
}

// One after the other, with parameters that are not the usual ones; directions have functions of their own.
TEST(OpenClRecurrent, HasAllActivationFunctions) {
  AG_NEEDS_OPENCL();
  const std::vector<std::string> names{"Affine",   "Elu",        "HardSigmoid",    "LeakyRelu",
                                       "Relu",     "ScaledTanh", "Sigmoid",        "Softplus",
                                       "Softsign", "tanh",       "ThresholdedRelu"};
  const std::tuple<const OpDef*, int64_t, size_t> ops[] = {{&lstm_def(), 4, 6}, {&gru_def(), 3, 4}, {&rnn_def(), 1, 2}};
  size_t next = 0;
  for (const auto& [op, gates, functions] : ops) {
    OpSample sample{.inputs = {draw_f32(1, {3, 2, 3}), draw_f32(2, {2, gates * 4, 3}), draw_f32(3, {2, gates * 4, 4})},
                    .num_outputs = 2};
    std::vector<std::string> own;
    while (own.size() < functions) own.push_back(names[next++ % names.size()]);
    sample.attributes = {{"direction", "bidirectional"},
                         {"activations", own},
                         {"activation_alpha", std::vector<float>{0.3F, 0.7F}},
                         {"activation_beta", std::vector<float>{0.4F}}};
    EXPECT_EQ(difference_on_opencl(*op, sample, {1e-5, 1e-5}), "") << op->name << " " << testing::PrintToString(own);
  }
  EXPECT_GE(next, names.size());
}

TEST(OpenClGatesGradient, HasWhatEntersWithoutPositions) {
  AG_NEEDS_OPENCL();
  for (const GatesGradient& test : gates_gradients()) {
    const OpSample sample = sample_of(test, {0, 2, 3}, false, DType::f32);
    EXPECT_EQ(difference_on_opencl(test.op, sample, {}), "") << test.op.name;
  }
}

TEST(OpenClRecurrent, RunsStatesWithoutElements) {
  AG_NEEDS_OPENCL();
  const OpSample sample{.inputs = {draw_f32(1, {3, 2, 3}), draw_f32(2, {1, 0, 3}), draw_f32(3, {1, 0, 0})},
                        .num_outputs = 2};
  for (const OpDef* op : {&rnn_def(), &gru_def(), &lstm_def()}) {
    const TestGraph test = make_sample_graph(*op, sample, true);
    EXPECT_EQ(difference(compile(test.graph, on_opencl()).run(test.inputs),
                         compile(test.graph, on_reference()).run(test.inputs)),
              "")
        << op->name;
  }
}

TEST(GatesGradient, SaysWhatFitsNoLocalMemory) {
  for (const GatesGradient& test : gates_gradients()) {
    const KernelCase large(test.op, sample_of(test, {1, 1, 70}, false, DType::f32));
    const std::string refusal = gpu::emit(large.call(), {.local_bytes = 512}).refusal;
    EXPECT_NE(refusal.find("bytes, more than the 512 of local memory"), std::string::npos) << refusal;
  }
}

}  // namespace
}  // namespace autograph
