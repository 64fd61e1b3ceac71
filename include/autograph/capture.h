// Capture: the graph of a function that was written for eager values, compiled, and captured again where it must.
//
//     Captured step = capture([&](const std::vector<Var>& batch) -> std::vector<Var> {
//       const Var loss = model(batch[0], batch[1]);
//       backward(loss);
//       optimizer.step();
//       return {loss};
//     });
//     for (const Batch& batch : batches) std::cout << step({eager(batch.x), eager(batch.y)})[0];
//
// The first call runs the function on values of a graph. Eager values from around it that are variables, or depend on
// one, become inputs that are read anew in every call. All others are constants of the graph: that a Var is given
// another value later is not seen, and elements of a tensor must not be written in place. What changes between calls is
// an input of the function, or a variable() that assign() changes. What the function assigns to variables and does to
// their gradients happens after every run; what else it does (a counter, a line of output) only while it is captured.
//
// Captured again is what is called with inputs of other dtypes, ranks or extents, and what finds a variable with a
// gradient where there was none or with further hooks, a module in another mode (train(), eval()), a parameter frozen
// or not any more, or another setting (autograph/setting.h); explain() says which. An extent that has had three values
// is made symbolic, if the function can be captured so. What C++ decides otherwise while capturing is decided for all
// calls of that graph: a function that looks at elements (item(), elements()) gets an error with the line; cond(),
// while_loop() and scan() decide while running.
//
// NoGrad around a call means that its results have no past; what the function itself does with gradients is done.
// Graphs run where CaptureOptions::compile says: EagerDevice and CheckFinite have no effect on them.
//
// Gradients flow through calls as they do through ops, with gradients of gradients. with_gradient() and on_gradient()
// inside hold for both: gradients formed there, and those that flow through.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograph/compile.h"
#include "autograph/eager.h"

namespace autograph {

/// A function that can be captured.
using EagerFunction = std::function<std::vector<Var>(const std::vector<Var>&)>;

/// How to capture.
struct CaptureOptions {
  CompileOptions compile = {};  ///< How graphs are compiled; `states` and `donations` are not looked at.
  bool symbolic = true;         ///< May extents become symbolic?
  size_t max_graphs = 8;        ///< Graphs kept; beyond that the one goes that was used longest ago.
};

/// A captured function. For one thread at a time.
class Captured {
 public:
  Captured(EagerFunction function, CaptureOptions options);
  Captured(Captured&&) noexcept;
  Captured& operator=(Captured&&) noexcept;
  ~Captured();

  /// The results of the function for these inputs, which are eager. Inside another function that is captured, calls the
  /// function itself.
  std::vector<Var> operator()(const std::vector<Var>& inputs);
  /// What was captured and why again, a line for each graph.
  std::string explain() const;
  /// How many times the function was captured.
  int num_captures() const;
  /// The graph of the last call, with what it reads from outside as constants: a model to save or to optimise. Throws
  /// ValueError before the first call.
  Graph graph() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Captures `function` when it is first called.
Captured capture(EagerFunction function, CaptureOptions options = {});

// ---- Control flow that works in both modes ---------------------------------------------------------------------
// On eager values these are what C++ has; on values of graphs, and while a function is captured, nodes with nested
// graphs. The functions may use values from around them.

/// The results of one of two functions, equally many of equal dtypes: of `then` where `condition` (one bool) holds.
std::vector<Var> cond(const Var& condition, const std::function<std::vector<Var>()>& then,
                      const std::function<std::vector<Var>()>& otherwise);
/// Makes states of states while `goes_on` gives true (one bool), `max_turns` times at most (-1: no limit). States keep
/// their dtypes.
std::vector<Var> while_loop(const std::vector<Var>& states, const std::function<Var(const std::vector<Var>&)>& goes_on,
                            const std::function<std::vector<Var>(const std::vector<Var>&)>& body,
                            int64_t max_turns = -1);
/// From states and a slice of each of `scanned` to the next states, and then whatever shall be kept of the step.
using ScanStep = std::function<std::vector<Var>(const std::vector<Var>& states, const std::vector<Var>& slices)>;
/// Calls `step` for each slice along the first axis of `scanned`, which have equal extents there. Gives the last
/// states, then what was kept, stacked along a new first axis.
std::vector<Var> scan(const std::vector<Var>& states, const std::vector<Var>& scanned, const ScanStep& step);

}  // namespace autograph
