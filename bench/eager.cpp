// Define by run: what an op costs beyond its kernel, with the tape, on chains of 64x64 matrices, where the kernel runs
// on buffers that stay in the cache, and on those of a chain; what a backward pass
// costs per op; what remembering source lines and looking for NaNs costs; rows that are not copied against a copy of
// them; and memory over many steps of changing shapes. JSON on standard output. With --steps N the last takes N steps
// (100,000 unless said otherwise). Exit status 1 when memory grows.
#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograph/autograph.h"
#include "measure.h"

namespace {

using namespace autograph;

constexpr int kChain = 200;
constexpr int kRounds = 30;
constexpr int64_t kSide = 64;

Tensor matrix(float value) { return Tensor::of<float>({kSide, kSide}, std::vector<float>(kSide * kSide, value)); }

// Microseconds of the kernel alone, on buffers that stay where they are.
double kernel_us(const OpDef& op, size_t num_inputs) {
  const Attributes attributes;
  const std::vector<Type> types(num_inputs, Type(DType::f32, {kSide, kSide}));
  const std::vector<Type> output(1, types[0]);
  const std::vector<Tensor> constants(num_inputs);
  const KernelSelection selection = get_device("cpu").catalog().select({op, attributes, types, output, constants});
  const Tensor x = matrix(0.01F);
  const Tensor y = Tensor::empty(DType::f32, {kSide, kSide});
  const Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(selection.kernel->scratch_bytes())});
  const std::vector<TensorView> inputs(num_inputs, x.view()), outputs{y.view()};
  const auto state = selection.kernel->new_state();
  const KernelArgs args{inputs, outputs, scratch.buffer().data(), state.get()};
  return 1e3 / kChain * best_milliseconds(kRounds, [&] {
           for (int i = 0; i < kChain; ++i) selection.kernel->run(args);
         });
}

// The same one after the other, each on what the one before gave and into memory of its own, as in the chain: what the
// processor takes to fetch and to keep the values is none of define by run's doing.
double chained_us(const OpDef& op, size_t num_inputs) {
  const Attributes attributes;
  const std::vector<Type> types(num_inputs, Type(DType::f32, {kSide, kSide}));
  const std::vector<Type> output(1, types[0]);
  const std::vector<Tensor> constants(num_inputs);
  const KernelSelection selection = get_device("cpu").catalog().select({op, attributes, types, output, constants});
  const Tensor w = matrix(0.01F);
  const Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(selection.kernel->scratch_bytes())});
  const auto state = selection.kernel->new_state();
  std::vector<Tensor> values{w};
  for (int i = 0; i < kChain; ++i) values.push_back(Tensor::empty(DType::f32, {kSide, kSide}));
  return 1e3 / kChain * best_milliseconds(kRounds, [&] {
           for (size_t i = 0; i < kChain; ++i) {
             const std::array<TensorView, 2> inputs{values[i].view(), w.view()};
             const std::array<TensorView, 1> outputs{values[i + 1].view()};
             selection.kernel->run(
                 {std::span(inputs).first(num_inputs), outputs, scratch.buffer().data(), state.get()});
           }
         });
}

struct Case {
  std::string name;
  const OpDef& op;
  size_t num_inputs;
  std::function<Var(const Var& x, const Var& w)> call;
};

void measure_chain(const Case& test, bool with_lines, std::string& json) {
  const EagerDevice device("cpu", 1);
  const Var w = variable(matrix(0.01F));
  std::optional<SourceLines> lines;
  if (with_lines) lines.emplace();
  Var last;
  const auto forward = [&] {
    last = {};  // as long as one chain lives the other one must lie elsewhere, and both fill the caches
    Var x = w;
    for (int i = 0; i < kChain; ++i) x = test.call(x, w);
    last = x;
  };
  const double op_us = 1e3 / kChain * best_milliseconds(kRounds, forward);
  const Var flows = eager(matrix(1));
  const double backward_us = 1e3 / kChain * best_milliseconds(kRounds, [&] {
                               backward(last, {.gradient = flows});
                               clear_gradient(w);
                             });
  const double alone_us = kernel_us(test.op, test.num_inputs);
  const double chain_us = chained_us(test.op, test.num_inputs);
  json += fmt::format(
      "{}{{\"op\": \"{}\", \"source_lines\": {}, \"op_us\": {:.3f}, \"kernel_us\": {:.3f}, \"overhead_us\": {:.3f}, "
      "\"kernel_in_chain_us\": {:.3f}, \"overhead_in_chain_us\": {:.3f}, \"backward_us\": {:.3f}}}",
      json.empty() ? "" : ", ", test.name, with_lines, op_us, alone_us, op_us - alone_us, chain_us, op_us - chain_us,
      backward_us);
}

// A chain of tanh(x + w), forward and backward, with every result looked at against the same without.
double check_ratio() {
  const EagerDevice device("cpu", 1);
  const Var w = variable(matrix(0.01F)), flows = eager(matrix(1));
  const auto run = [&] {
    Var x = w;
    for (int i = 0; i < kChain; ++i) x = tanh(x + w);
    backward(x, {.gradient = flows});
    clear_gradient(w);
  };
  const double plain = best_milliseconds(kRounds, run);
  const CheckFinite check;
  return best_milliseconds(kRounds, run) / plain;
}

// Half of the rows of a matrix of 4 MB: microseconds of the part, and of a copy of it.
std::string rows_json() {
  const Var x = eager(Tensor::zeros(DType::f32, {1024, 1024}));
  const auto part_of = [&] { return at(x, {{100, 612}}); };
  const double part_us = 1e3 / kChain * best_milliseconds(kRounds, [&] {
                           for (int i = 0; i < kChain; ++i) part_of();
                         });
  const Tensor part = elements(part_of());
  const double copy_us = 1e3 * best_milliseconds(kRounds, [&] { part.clone(); });
  return fmt::format("{{\"part_us\": {:.3f}, \"copy_us\": {:.3f}}}", part_us, copy_us);
}

// Of this process, now.
double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096 / 1e6;
}

// The shape changes with each step, and comes back now and then.
double growth_mb(int64_t steps) {
  const Var w = variable(Tensor::of<float>({8, 8}, std::vector<float>(64, 0.1F)));
  double before = 0;
  for (int64_t step = 0; step < steps; ++step) {
    if (step == steps / 4) before = resident_mb();
    const int64_t rows = 1 + step * 7 % 101;
    const Var x = eager(Tensor::zeros(DType::f32, {rows, 8}));
    backward(reduce_mean(tanh(matmul(x, w) + w[0]), {}, false));
    assign(w, w - 0.1 * gradient(w));
    clear_gradient(w);
  }
  return resident_mb() - before;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t steps = 100'000;
  if (argc == 3 && std::strcmp(argv[1], "--steps") == 0) steps = std::atoll(argv[2]);
  const std::vector<Case> cases{
      {"add", get_op("add"), 2, [](const Var& x, const Var& w) { return x + w; }},
      {"mul", get_op("mul"), 2, [](const Var& x, const Var& w) { return x * w; }},
      {"relu", get_op("relu"), 1, [](const Var& x, const Var&) { return relu(x); }},
      {"tanh", get_op("tanh"), 1, [](const Var& x, const Var&) { return tanh(x); }},
      {"matmul", get_op("matmul"), 2, [](const Var& x, const Var& w) { return matmul(x, w); }},
  };
  std::string chains;
  for (const Case& test : cases) measure_chain(test, false, chains);
  measure_chain(cases[0], true, chains);
  const double grown = growth_mb(steps);
  const bool is_flat = grown < 16;
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"eager\", \"chains\": [{}], \"check_finite_ratio\": {:.2f}, \"rows\": {}, "
      "\"steps\": {}, \"grown_mb\": {:.1f}, "
      "\"flat\": {}}}\n",
      chains, check_ratio(), rows_json(), steps, grown, is_flat);
  return is_flat ? 0 : 1;
}
