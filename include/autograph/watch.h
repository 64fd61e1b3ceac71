// Looking at the nodes of a compiled graph while it runs: watches, breakpoints, steps.
//
//   NodeWatch watch("layer1.*", [](const NodeRun& run) {
//     std::cout << run.name << ": " << to_string(*statistics_of(run.outputs[0].value.tensor().view())) << "\n";
//     return WatchNext::go_on;
//   });
//   program.run(inputs);
//
// Nodes are those of the graph that runs (Executable::graph()): passes join, move and drop nodes, kernels take several
// as one, and what was computed while compiling, a reshape or another view of the same elements takes no step at all.
// With ExpertOptions::use_passes false they are those of the graph as it was built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// A value that a node read or made.
struct NodeValue {
  /// The user's; where there is none, that of the node that made it (of joined nodes the last), with ":1" and so on for
  /// its further outputs.
  std::string name;
  bool is_constant = false;  ///< A weight, or another value that is the same in each run.
  /// On the host, in row-major order whatever order the kernel works in. Its memory is used for other values when the
  /// callback returns: clone() what is to be kept. Nothing for an input that is not given, an output that nobody wants,
  /// and weights that were released.
  Datum value = {};
};

/// A node that has just run.
struct NodeRun {
  size_t step = 0;     ///< Place among the steps of the plan, with those that are not shown.
  std::string name;    ///< Where it comes from, "a + b" for nodes that are one by now; or the op.
  std::string op;      ///< Op name.
  std::string kernel;  ///< Kernel that ran.
  std::vector<NodeValue> inputs;
  std::vector<NodeValue> outputs;
};

/// How a run goes on behind a node.
enum class WatchNext : uint8_t {
  go_on,  ///< To the next node that fits the pattern.
  step,   ///< To the next node, whatever its name.
  stop,   ///< Not at all: run() throws UserError "[watch] stopped".
};

/// What is called behind nodes, on the thread that runs.
using NodeCallback = std::function<WatchNext(const NodeRun&)>;

/// While it lives, all runs of executables that the calling thread begins call back behind each node that fits one of
/// `patterns`, which commas separate; * stands for anything, ? for one character. What fits is the name of the node,
/// one of the names joined in it, the name of one of its outputs, or its op. Nodes run one after the other meanwhile,
/// in the order of the plan; those of nested graphs come before the node that runs them, unless a kernel takes the
/// whole loop. Of several watches of a thread the innermost counts. Runs that are not watched cost what they cost
/// without.
class NodeWatch {
 public:
  NodeWatch(std::string_view patterns, NodeCallback callback);
  ~NodeWatch();
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  /// How many nodes it has been called for.
  size_t num_shown() const { return num_shown_; }
  /// Did the callback stop a run?
  bool has_stopped() const { return has_stopped_; }

  /// That of the calling thread; null where there is none. For executors, as the two below.
  static NodeWatch* current();
  /// Is a node by one of these names to be shown?
  bool wants(const std::vector<std::string_view>& names) const;
  /// Calls back; throws where the callback wants to stop.
  void show(const NodeRun& run);

 private:
  std::string patterns_;
  NodeCallback callback_;
  NodeWatch* outer_;
  size_t num_shown_ = 0;
  bool steps_ = false;
  bool has_stopped_ = false;
};

}  // namespace autograph
