// A call of an op made ready: checked, types inferred, kernel chosen and prepared, for inputs of certain types.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/device.h"
#include "autograph/op_def.h"

namespace autograph {

/// What a node on record says of its call.
struct CallInfo {
  const OpDef* op = nullptr;  ///< Null: no op, but a function of the user's.
  std::string_view name;      ///< Of the op, for messages.
  Attributes attributes;      ///< With defaults.
  std::vector<Type> output_types;
};

/// A call that is to be prepared.
struct CallRequest {
  const OpDef& op;
  const Attributes& attributes;  ///< As given: without defaults.
  std::span<const Var> inputs;   ///< Eager, or not given.
  int num_outputs;               ///< As NodeOptions::num_outputs.
  const Device& device;
  int threads;  ///< At most.
};

/// What a call gave: its outputs, and what is to be said of it.
struct CallResult {
  std::shared_ptr<const CallInfo> info;
  std::vector<Datum> outputs;
};

/// For one thread at a time.
class PreparedCall : public CallInfo, public std::enable_shared_from_this<PreparedCall> {
 public:
  /// Throws what Graph::add_node() throws, and UnsupportedError where there is no kernel.
  explicit PreparedCall(const CallRequest& request);
  /// Inputs whose elements the types of the outputs, or the kernel, depend on; further calls must have the same.
  const std::vector<size_t>& value_slots() const { return value_slots_; }
  /// Has the op nothing to compute it by but its body? Then replay_body() does.
  bool needs_body() const { return way_ == Way::body; }
  /// Computes it, unless it needs the body.
  CallResult run(std::span<const Var> inputs);
  /// For replay_body(): the body of an op that has one, once it was asked for.
  std::shared_ptr<const Graph> body;

 private:
  enum class Way : uint8_t {
    view,     // elements of input 0 that lie in a row
    kernel,   // a kernel
    program,  // a graph of one node: sequences, nested graphs, shapes that depend on elements
    body,     // none but by its body in other ops
  };

  std::optional<std::vector<int64_t>> starts_of_views(const CallRequest& request) const;
  std::vector<Datum> views_of(const Tensor& whole) const;
  std::vector<Tensor> constants_of(const CallRequest& request) const;
  void choose_kernel(const CallRequest& request);
  void make_program(const CallRequest& request);
  std::vector<Datum> run_kernel(std::span<const Var> inputs);
  CallResult run_program(std::span<const Var> inputs);

  Way way_ = Way::kernel;
  const Device& device_;
  int threads_;
  std::vector<Type> input_types_;
  std::vector<size_t> value_slots_;
  std::vector<Dims> output_dims_;
  std::vector<int64_t> starts_;  // of views: their first elements
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<KernelState> state_;
  Tensor scratch_;
  std::optional<Executable> program_;
  std::vector<size_t> program_inputs_;  // slots that are inputs of the program; the others are constants there
};

}  // namespace autograph
