// All small graphs over a few ops and fixed small tensors, each with a fingerprint of what it computes modulo a prime.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

constexpr size_t kMaxSteps = 4;

/// An op with its attributes, as the generator uses it.
struct GeneratorOp {
  std::string_view family;  ///< The name under which it is chosen.
  const OpDef* op = nullptr;
  Attributes attributes = {};  ///< Complete.
  std::string text = {};       ///< "concat[axis=1]"
  int num_inputs = 1;
  int num_outputs = 1;
  double factor = 0;  ///< Not 0: a second operand, this number.
};

/// A node of a small graph: an op and the values it reads. Values are numbered: variables, then results in order.
struct SmallStep {
  uint8_t op = 0;
  std::array<int8_t, 2> inputs{-1, -1};
  auto operator<=>(const SmallStep&) const = default;
};

/// A small graph. Its outputs are the results that no step reads.
struct SmallGraph {
  uint64_t fingerprint = 0;
  uint8_t num_steps = 0;
  int8_t alias = -1;  ///< With 0 steps: the variable that it is.
  std::array<SmallStep, kMaxSteps> steps{};
};

/// Variables and ops of an enumeration.
struct Problem {
  std::string name;
  std::vector<std::string> variables;  ///< Names.
  std::vector<Dims> dims;              ///< Of the variables.
  std::vector<int> kinds;              ///< Variables of one kind may be renamed into each other.
  std::vector<GeneratorOp> ops;
};

/// The problems (matrices, images) that have ops of the families, all of them when none is named.
std::vector<Problem> make_problems(const std::vector<std::string>& families);

/// What limits an enumeration.
struct EnumerationLimits {
  int max_steps = 3;
  size_t max_graphs = 2'000'000;
  std::function<bool()> is_over;  ///< Asked often.
  std::function<void(size_t graphs)> on_progress;
};

/// All graphs of 1 to `max_steps` steps whose nodes hang together and that have one or two outputs, without those that
/// make a value twice; graphs that only give back variables stand for themselves. `complete` becomes false when a limit
/// was met.
std::vector<SmallGraph> enumerate_graphs(const Problem& problem, const EnumerationLimits& limits, uint64_t seed,
                                         bool& complete);

/// For each value that a step makes: is it an output?
std::vector<int> outputs_of(const Problem& problem, const SmallGraph& graph);

/// Fingerprints of the outputs, parallel to outputs_of(): which output of one graph is which of another.
std::vector<uint64_t> output_fingerprints(const Problem& problem, const SmallGraph& graph, uint64_t seed);

}  // namespace autograph
