// Define by run: values that are computed where they stand, and gradients from the tape that this leaves behind.
//
//     const Var w = variable(Tensor::zeros(DType::f32, {3, 1}));
//     for (const Batch& batch : batches) {
//       const Var error = matmul(eager(batch.x), w) - eager(batch.y);
//       backward(reduce_mean(error * error, {}, false));
//       assign(w, w - 0.1 * gradient(w));
//       clear_gradient(w);
//     }
//
// All builders (autograph/ops/) and operators work on eager values as they do on values of graphs: the same ops, the
// same kernels, the same gradient rules. Control flow is that of C++. grad(), vjp(), jvp(), hvp() and jacobian() of
// autograph/autodiff.h work as well, and their results have gradients themselves.
//
// A value keeps what its gradient needs alive, and nothing else does: memory goes when the last Var that leads to it
// goes. Elements never change once they are there; assign() gives a variable new ones.
//
// Any number of threads may compute; a variable whose gradient is formed or that is assigned to belongs to one of them
// at a time. Kernels that were made for a kind of call are kept by each thread for the next such call.
//
// Capture (autograph/capture.h) makes a graph of the same function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograph/builder.h"
#include "autograph/source_line.h"
#include "autograph/tensor_io.h"
#include "autograph/train.h"

namespace autograph {

// ---- Values ----------------------------------------------------------------------------------------------------

/// An eager value with these elements. Shares the tensor's buffer.
Var eager(Tensor elements);
/// As above from a sequence or nothing, whose type is `type`.
Var eager(Datum datum, Type type);
/// A value of which gradients are formed: a weight, say. Throws TypeError unless it is a float tensor.
Var variable(Tensor elements);
/// Does `value` depend on a variable, and is that on record?
bool requires_grad(const Var& value);
/// Does what the calling thread computes on eager values now become nodes of a graph? See capture.h.
bool is_capturing();
/// The same elements without a past: no gradient flows through it.
Var detach(const Var& value);

/// The elements of an eager value; `place` is told in messages. Throws ValueError for values of graphs, which have none
/// yet (in a function that is captured: see capture.h), and TypeError for sequences.
const Tensor& elements(const Var& value, SourceLine place = SourceLine::current());
/// As above for any kind of value.
const Datum& datum(const Var& value, SourceLine place = SourceLine::current());
/// The one element of `value`, as a number. Throws as elements() does, and ShapeError where there are more or none.
double item(const Var& value, SourceLine place = SourceLine::current());
/// The one element of a bool tensor; throws as item() does.
bool is_true(const Var& value, SourceLine place = SourceLine::current());
/// The elements as to_string(Tensor) has them; for a value of a graph its type and name.
std::string to_string(const Var& value);
std::ostream& operator<<(std::ostream& stream, const Var& value);

/// A position, a range with a step, or all of an axis; negative positions count from the end.
struct Index {
  Index(int64_t at) : start(at), is_position(true) {}  // NOLINT: numbers are positions
  /// Positions from, from + step, ... up to but without to.
  Index(int64_t from, int64_t to, int64_t step_by = 1) : start(from), stop(to), step(step_by) {}
  /// The whole axis.
  static Index all();
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  bool is_position = false;
};

/// `x` at these places of its first axes: at(x, {2, {0, 3}}) is row 2, columns 0 to 2. Axes with a position go away.
/// Works on values of graphs, too. Elements that lie in a row (ranges of rows) are not copied, and keep all of `x`
/// alive.
Var at(const Var& x, const std::vector<Index>& places);

// ---- Gradients -------------------------------------------------------------------------------------------------

/// How backward() works.
struct BackwardOptions {
  /// What flows into the value; not given: 1, for values of one element.
  Var gradient = {};
  /// Put the gradients on record, too, so that they have gradients. What gradient() gives then depends on the variable
  /// that holds it: neither is freed before clear_gradient(). grad() has no such ring.
  bool differentiable = false;
};

/// Adds d value / d variable to gradient(variable), for all variables that `value` depends on. In a function that is
/// captured, the same happens whenever the captured graph has run. Throws ValueError where `value` depends on none, and
/// UnsupportedError, with the place in the forward pass, where a gradient has to pass an op without a rule.
void backward(const Var& value, const BackwardOptions& options = {});
/// What backward() has added up for a variable; not valid (is_valid()) where that is nothing.
Var gradient(const Var& variable);
/// Forgets it.
void clear_gradient(const Var& variable);
/// Sets it.
void set_gradient(const Var& variable, const Var& gradient);
/// Gives a variable the elements of `value`, whose dtype and shape must be its own. What was computed with the old ones
/// keeps them, and its gradients are those at the old ones. No gradient flows from one to the other.
void assign(const Var& variable, const Var& value);

/// Called with the gradient of a value; gives what takes its place, or nothing.
using GradientHook = std::function<Var(const Var& gradient)>;
/// Takes a hook away again; a copy does the same.
class GradientHookHandle {
 public:
  /// Of no hook.
  GradientHookHandle() = default;
  explicit GradientHookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  /// From the next backward pass on, also called by the hook itself, it is not called any more. Does nothing where it
  /// is gone already, or the value is. Throws UnsupportedError for a hook of what a captured function computes, which
  /// is part of the graph.
  void remove() const {
    if (remove_) remove_();
  }

 private:
  std::function<void()> remove_;
};
/// Has `hook` called whenever the whole gradient of `value`, which must require one, is there; several in the order in
/// which they were given. In a function that is captured, a hook of what the function computes is called once, and what
/// it computes is done wherever that gradient flows; of an input, to what flows out of the function. Inside cond(),
/// while_loop() and scan() of a captured function, in gradients of gradients, it is given the two parts of a gradient
/// one by one: right for hooks that are linear (scaling), wrong for others (clipping), which belong outside.
GradientHookHandle on_gradient(const Var& value, GradientHook hook);

/// From what flows into the results to the gradients of the inputs, one each (not given: none).
using GradientFunction = std::function<std::vector<Var>(const std::vector<Var>& output_gradients)>;
/// `results`, which were computed from `inputs`, with a gradient of their own instead of that of the ops they were
/// computed with. On values of graphs, and in a function that is captured, `gradient` is called at once, with gradients
/// of all results: zeros where none flows.
std::vector<Var> with_gradient(const std::vector<Var>& results, const std::vector<Var>& inputs,
                               GradientFunction gradient);

/// Nothing that the calling thread computes while it lives is put on record: for evaluation and for updates.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

// ---- Updates ---------------------------------------------------------------------------------------------------

/// Variables by name: nn::Module::named_weights().
using NamedVars = std::vector<std::pair<std::string, Var>>;

/// Updates variables by their gradients, with the formulas and options of autograph/train.h. What it remembers are
/// variables, too, so that a function that calls step() can be captured:
///
///     EagerOptimizer optimizer(net.named_weights(x), AdamW{}, {.loss_scale = LossScale{},
///                              .groups = {{.weights = "*bias", .weight_decay = 0}}});
///     backward(optimizer.scaled(loss));
///     optimizer.step();
class EagerOptimizer {
 public:
  /// Throws ValueError where `variables` are none at all, or one of them is no variable, where a number of `optimizer`
  /// or `options` is out of its range, and where a group fits no name.
  EagerOptimizer(NamedVars variables, const Optimizer& optimizer, const UpdateOptions& options = {});
  /// The same for variables that are called "0", "1"...
  EagerOptimizer(const std::vector<Var>& variables, const Optimizer& optimizer, const UpdateOptions& options = {});
  ~EagerOptimizer();
  EagerOptimizer(EagerOptimizer&&) noexcept;
  EagerOptimizer& operator=(EagerOptimizer&&) noexcept;

  /// What backward() is to form gradients of: the loss times the factor of `loss_scale`; without, the loss itself.
  Var scaled(const Var& loss);
  /// Assigns new elements to each variable that has a gradient. With `accumulate` each call is a run.
  void step();
  /// Forgets all gradients.
  void clear_gradients();
  /// f64 [], of the steps to come.
  Var learning_rate() const;
  /// Changes it: schedules (autograph/nn/schedules.h) are functions of the step.
  void set_learning_rate(double rate);
  /// i64 []: updates done.
  Var count() const;
  /// What it remembers of variable `index`, by kind ("momentum", "exp_avg"...): for checkpoints.
  NamedVars remembered(size_t index) const;
  /// All that it keeps so far, called as states of training graphs are: "optimizer/step", "optimizer/exp_avg/NAME",
  /// "ema/NAME"...
  NamedVars states() const;
  /// Goes on from what states() gave in another run, whose elements a checkpoint has kept; tensors of other names are
  /// passed over. Throws ValueError where "optimizer/step" is missing; TypeError or ShapeError, naming the state, where
  /// dtype or shape is another: here, or in the step that first asks for the state.
  void restore(const NamedTensors& tensors);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Scales the gradients of `variables` down so that all of them together, as one vector, are at most `limit` long, as
/// torch.nn.utils.clip_grad_norm_ does. Gives their length before.
Var clip_gradients(const std::vector<Var>& variables, double limit);
/// Brings each element of the gradients of `variables` into [-limit, limit], as torch.nn.utils.clip_grad_value_ does.
void clip_gradient_values(const std::vector<Var>& variables, double limit);

// ---- Where and how ---------------------------------------------------------------------------------------------

/// What the calling thread computes while it lives runs on `device` (one that computes in the host's memory) with so
/// many threads at most; 0: as many as this process may use. Small calls use one.
class EagerDevice {
 public:
  explicit EagerDevice(const std::string& device, int threads = 0);
  ~EagerDevice();
  EagerDevice(const EagerDevice&) = delete;
  EagerDevice& operator=(const EagerDevice&) = delete;

 private:
  struct Settings;
  std::unique_ptr<Settings> previous_;
};

/// What the calling thread computes while it lives was made at this place, as messages tell it; the innermost counts.
/// Nodes of a graph that is captured meanwhile carry the place in their provenance.
class SourceScope {
 public:
  explicit SourceScope(SourceLine place = SourceLine::current());
  ~SourceScope();
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

 private:
  const SourceLine* previous_;
  SourceLine place_;
};

/// Every node on record made by the calling thread while it lives remembers the line of the program that called the
/// builder, as far as the program was compiled with debug information; otherwise the function. Costs several
/// microseconds a call, so that it is not always on. So do nodes of a graph that is captured meanwhile, and those of
/// its gradients: messages about runs of it (CompileOptions::check_nan) name the line.
class SourceLines {
 public:
  SourceLines();
  ~SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

 private:
  bool previous_;
};

/// The first op or gradient that makes a NaN or infinity from finite numbers throws ValueError with its inputs and
/// the line of the program that called it, while it lives, on the calling thread. The line of the forward pass that a
/// gradient is of is told where that ran inside SourceLines or a SourceScope.
class CheckFinite {
 public:
  CheckFinite();
  ~CheckFinite();
  CheckFinite(const CheckFinite&) = delete;
  CheckFinite& operator=(const CheckFinite&) = delete;

 private:
  bool previous_;
};

/// What define by run has done so far.
struct EagerStatistics {
  int64_t live_nodes = 0;      ///< Nodes on record, of all threads, that something still leads to.
  int64_t prepared_calls = 0;  ///< Calls that the calling thread keeps kernels for.
  int64_t calls = 0;           ///< Ops that the calling thread has computed.
  int64_t new_calls = 0;       ///< Those among them for which kernels had to be chosen and made.
};
EagerStatistics eager_statistics();

}  // namespace autograph
