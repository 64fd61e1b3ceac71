#include "prove/generate/enumerate.h"
#include "autograph/random.h"

#include <algorithm>
#include <unordered_set>

#include "graph/schema.h"
#include "ops/defs.h"
#include "prove/verify/exact/exact_interpreter.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace {

constexpr size_t kMaxOutputs = 2;

GeneratorOp make_op(std::string_view family, const OpDef& op, Attributes attributes, std::string_view text,
                    int num_inputs, int num_outputs = 1) {
  GeneratorOp result{family, &op, std::move(attributes), std::string(text), num_inputs, num_outputs, 0};
  complete_attributes(*result.op, result.attributes, "");
  return result;
}

std::vector<GeneratorOp> elementwise_ops() {
  std::vector<GeneratorOp> ops{make_op(add_def().name, add_def(), {}, std::string(add_def().name), 2),
                               make_op(mul_def().name, mul_def(), {}, std::string(mul_def().name), 2),
                               make_op(sub_def().name, sub_def(), {}, std::string(sub_def().name), 2),
                               make_op(neg_def().name, neg_def(), {}, std::string(neg_def().name), 1),
                               make_op(relu_def().name, relu_def(), {}, std::string(relu_def().name), 1),
                               make_op(sigmoid_def().name, sigmoid_def(), {}, std::string(sigmoid_def().name), 1),
                               make_op("scale", mul_def(), {}, std::string(mul_def().name), 1)};
  ops.back().factor = 2;
  return ops;
}

void add_joins(std::vector<GeneratorOp>& ops, int64_t axis) {
  const std::string suffix = "[axis=" + std::to_string(axis) + "]";
  ops.push_back(make_op(concat_def().name, concat_def(), {{"axis", axis}}, std::string(concat_def().name) + suffix, 2));
  ops.push_back(make_op(split_def().name, split_def(), {{"axis", axis}, {"num_outputs", int64_t{2}}},
                        std::string(split_def().name) + suffix, 1, 2));
}

Problem matrices() {
  Problem problem{"matrices", {"a", "b", "c", "d"}, std::vector<Dims>(4, Dims{2, 2}), {0, 0, 0, 0}, elementwise_ops()};
  problem.ops.push_back(make_op(matmul_def().name, matmul_def(), {}, std::string(matmul_def().name), 2));
  problem.ops.push_back(
      make_op(transpose_def().name, transpose_def(), {{"perm", Dims{1, 0}}}, "transpose[perm=[1,0]]", 1));
  add_joins(problem.ops, 0);
  add_joins(problem.ops, 1);
  return problem;
}

Problem images() {
  const Dims image{1, 2, 2, 3};
  const Dims small{2, 2, 1, 1};
  const Dims large{2, 2, 3, 3};
  Problem problem{
      "images", {"x", "y", "v", "w", "t", "u"}, {image, image, large, large, small, small}, {0, 0, 1, 1, 2, 2}, {}};
  for (GeneratorOp& op : elementwise_ops()) {
    if (op.family == add_def().name || op.family == relu_def().name || op.family == "scale")
      problem.ops.push_back(std::move(op));
  }
  problem.ops.push_back(make_op(conv_def().name, conv_def(), {{"pads", Dims{1, 1, 1, 1}}}, "conv[pads=[1,1,1,1]]", 2));
  problem.ops.push_back(make_op(conv_def().name, conv_def(), {}, std::string(conv_def().name), 2));
  add_joins(problem.ops, 0);
  add_joins(problem.ops, 1);
  return problem;
}

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return value ^ (value >> 32);
}

uint64_t fingerprint_of(const Tensor& tensor) { return mix(tensor.content_hash().low); }

std::vector<Tensor> variable_values(const Problem& problem, uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> values;
  for (const Dims& dims : problem.dims) values.push_back(make_exact(dims, [&] { return random() % kPrime; }));
  return values;
}

// The results of a step; empty when the call is not legal.
std::vector<Tensor> run_step(const GeneratorOp& op, const SmallStep& step, const std::vector<Tensor>& values) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < op.num_inputs; ++i)
    inputs.push_back(values[static_cast<size_t>(step.inputs[static_cast<size_t>(i)])]);
  if (op.factor != 0) inputs.push_back(make_exact({}, [&] { return field_of(static_cast<float>(op.factor)); }));
  try {
    return run_exact_call(*op.op, op.attributes, inputs, static_cast<size_t>(op.num_outputs));
  } catch (const UserError&) {
    return {};
  }
}

// Quick looks at shapes before inference is asked: most pairs of values do not fit.
bool may_fit(const GeneratorOp& op, const SmallStep& step, const std::vector<Tensor>& values) {
  const Dims& a = values[static_cast<size_t>(step.inputs[0])].dims();
  if (op.family == split_def().name) {
    // Cut only what was joined: extents that are larger than those of the variables.
    const int64_t axis = op.attributes.integer("axis");
    return a[static_cast<size_t>(axis)] >= 4 && a[static_cast<size_t>(axis)] % 2 == 0;
  }
  if (op.num_inputs == 1) return true;
  const Dims& b = values[static_cast<size_t>(step.inputs[1])].dims();
  if (op.op->traits.elementwise) return a == b;  // broadcasting is left to verification
  if (op.family == matmul_def().name) return a[1] == b[0];
  if (op.family == conv_def().name) {
    const int64_t kernel = op.attributes.contains("pads") ? 3 : 1;
    return a[2] == 2 && a[3] == 3 && b[2] == kernel && b[3] == kernel && a[1] == b[1];
  }
  return true;
}

class Enumerator {
 public:
  Enumerator(const Problem& problem, const EnumerationLimits& limits, uint64_t seed)
      : problem_(problem), limits_(limits), values_(variable_values(problem, seed)) {
    for (size_t i = 0; i < values_.size(); ++i) {
      prints_.push_back(fingerprint_of(values_[i]));
      SmallGraph variable;
      variable.fingerprint = prints_.back();
      variable.alias = static_cast<int8_t>(i);
      graphs_.push_back(variable);
      roots_.push_back(static_cast<int>(i));
    }
    reads_.assign(values_.size(), 0);
  }

  std::vector<SmallGraph> run(bool& complete) {
    extend();
    complete = complete && !stopped_;
    return std::move(graphs_);
  }

 private:
  void extend() {
    for (size_t op = 0; op < problem_.ops.size() && !stopped_; ++op) {
      const GeneratorOp& generator_op = problem_.ops[op];
      const auto count = static_cast<int8_t>(values_.size());
      for (int8_t a = 0; a < count && !stopped_; ++a) {
        const int8_t first = generator_op.op->traits.commutative ? a : int8_t{0};
        for (int8_t b = generator_op.num_inputs == 2 ? first : int8_t{-1}; b < count; ++b) {
          try_step({static_cast<uint8_t>(op), {a, b}});
          if (generator_op.num_inputs == 1) break;
        }
      }
    }
  }

  // Steps that do not depend on each other come in one order only.
  bool is_in_order(const SmallStep& step) const {
    if (steps_.empty()) return true;
    const auto fresh = static_cast<int8_t>(values_.size() - num_last_);
    const bool reads_last = step.inputs[0] >= fresh || step.inputs[1] >= fresh;
    return reads_last || steps_.back() < step;
  }

  void try_step(const SmallStep& step) {
    const GeneratorOp& op = problem_.ops[step.op];
    if (!is_in_order(step) || !may_fit(op, step, values_)) return;
    if (graphs_.size() >= limits_.max_graphs || ((++tried_ & 255) == 0 && limits_.is_over && limits_.is_over())) {
      stopped_ = true;
      return;
    }
    if ((tried_ & 4095) == 0 && limits_.on_progress) limits_.on_progress(graphs_.size());
    const std::vector<Tensor> results = run_step(op, step, values_);
    if (results.empty()) return;
    push(step, results);
    // A value that was there before makes the graph larger than it need be; kept, but not extended.
    const bool repeats =
        std::any_of(prints_.end() - static_cast<ptrdiff_t>(results.size()), prints_.end(),
                    [&](uint64_t print) { return std::count(prints_.begin(), prints_.end(), print) > 1; });
    record();
    if (!repeats && static_cast<int>(steps_.size()) < limits_.max_steps) {
      const size_t last = std::exchange(num_last_, results.size());
      extend();
      num_last_ = last;
    }
    pop(step, results.size());
  }

  void push(const SmallStep& step, const std::vector<Tensor>& results) {
    steps_.push_back(step);
    int root = -1;
    saved_roots_.push_back(roots_);
    for (const int8_t input : step.inputs) {
      if (input < 0) continue;
      ++reads_[static_cast<size_t>(input)];
      const int other = roots_[static_cast<size_t>(input)];
      if (root >= 0) std::replace(roots_.begin(), roots_.end(), other, root);
      if (root < 0) root = other;
    }
    for (const Tensor& result : results) {
      values_.push_back(result);
      prints_.push_back(fingerprint_of(result));
      reads_.push_back(0);
      roots_.push_back(root);
    }
  }

  void pop(const SmallStep& step, size_t num_results) {
    values_.resize(values_.size() - num_results);
    prints_.resize(values_.size());
    reads_.resize(values_.size());
    for (const int8_t input : step.inputs) {
      if (input >= 0) --reads_[static_cast<size_t>(input)];
    }
    roots_ = std::move(saved_roots_.back());
    saved_roots_.pop_back();
    steps_.pop_back();
  }

  void record() {
    SmallGraph graph;
    size_t outputs = 0;
    int root = -1;
    for (size_t i = problem_.variables.size(); i < values_.size(); ++i) {
      if (root >= 0 && roots_[i] != root) return;  // does not hang together
      root = roots_[i];
      if (reads_[i] > 0) continue;
      graph.fingerprint += prints_[i];  // in any order
      ++outputs;
    }
    if (outputs > kMaxOutputs) return;
    graph.num_steps = static_cast<uint8_t>(steps_.size());
    std::copy(steps_.begin(), steps_.end(), graph.steps.begin());
    graphs_.push_back(graph);
  }

  const Problem& problem_;
  const EnumerationLimits& limits_;
  std::vector<Tensor> values_;
  std::vector<uint64_t> prints_;
  std::vector<int> reads_;
  std::vector<int> roots_;  // by value: which values hang together
  std::vector<std::vector<int>> saved_roots_;
  std::vector<SmallStep> steps_;
  std::vector<SmallGraph> graphs_;
  size_t num_last_ = 0;
  size_t tried_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::vector<Problem> make_problems(const std::vector<std::string>& families) {
  std::vector<Problem> problems{matrices(), images()};
  if (families.empty()) return problems;
  for (Problem& problem : problems) {
    std::erase_if(problem.ops, [&](const GeneratorOp& op) {
      return std::find(families.begin(), families.end(), op.family) == families.end();
    });
  }
  // Images are for convolutions: all else is there among matrices.
  std::erase_if(problems, [](const Problem& problem) {
    return problem.ops.empty() ||
           (problem.name == "images" && std::none_of(problem.ops.begin(), problem.ops.end(),
                                                     [](const auto& op) { return op.family == conv_def().name; }));
  });
  return problems;
}

std::vector<SmallGraph> enumerate_graphs(const Problem& problem, const EnumerationLimits& limits, uint64_t seed,
                                         bool& complete) {
  return Enumerator(problem, limits, seed).run(complete);
}

std::vector<int> outputs_of(const Problem& problem, const SmallGraph& graph) {
  if (graph.num_steps == 0) return {graph.alias};
  std::vector<bool> is_read(problem.variables.size(), true);
  for (size_t s = 0; s < graph.num_steps; ++s) {
    for (const int8_t input : graph.steps[s].inputs) {
      if (input >= 0) is_read[static_cast<size_t>(input)] = true;
    }
    is_read.resize(is_read.size() + static_cast<size_t>(problem.ops[graph.steps[s].op].num_outputs), false);
  }
  std::vector<int> outputs;
  for (size_t i = 0; i < is_read.size(); ++i) {
    if (!is_read[i]) outputs.push_back(static_cast<int>(i));
  }
  return outputs;
}

std::vector<uint64_t> output_fingerprints(const Problem& problem, const SmallGraph& graph, uint64_t seed) {
  std::vector<Tensor> values = variable_values(problem, seed);
  for (size_t s = 0; s < graph.num_steps; ++s) {
    for (Tensor& result : run_step(problem.ops[graph.steps[s].op], graph.steps[s], values))
      values.push_back(std::move(result));
  }
  std::vector<uint64_t> prints;
  for (const int output : outputs_of(problem, graph))
    prints.push_back(fingerprint_of(values[static_cast<size_t>(output)]));
  return prints;
}

}  // namespace autograph
