// Kernels: what runs one node on one device, and the ordered list of candidates for each op.
//
// A kernel is prepared once for given types and constants and may then run on any number of threads at once: what
// changes during a run lives in the scratch memory and in a KernelState, of which every run context has its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// What a kernel keeps from run to run in one run context, for example argument lists of a library.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

/// One run of a kernel.
struct KernelArgs {
  std::span<const TensorView> inputs;   ///< Absent views for optional inputs not given.
  std::span<const TensorView> outputs;  ///< Allocated, uninitialised.
  void* scratch = nullptr;              ///< scratch_bytes() bytes, 64-byte aligned.
  KernelState* state = nullptr;         ///< From new_state(); null when that gave none.
};

/// Code for one node with known shapes.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Fills the outputs. Allocates nothing where it can be helped. Thread-safe with distinct scratch and state.
  virtual void run(const KernelArgs& args) const = 0;
  /// Working memory that run() needs.
  virtual size_t scratch_bytes() const { return 0; }
  /// Bytes of prepacked copies of constants.
  virtual size_t weight_bytes() const { return 0; }
  /// May output 0 have the memory of input 0?
  virtual bool in_place_ok() const { return false; }
  /// State for one run context.
  virtual std::unique_ptr<KernelState> new_state() const { return nullptr; }
};

/// What a kernel is asked to do. Op and attributes outlive the kernel that is made for them.
struct KernelCall {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Type> inputs;       ///< Static tensor types; Kind::none where an input is not given.
  std::span<const Type> outputs;      ///< Static tensor types.
  std::span<const Tensor> constants;  ///< Parallel to inputs: elements of those known now, else absent.
  int threads = 1;                    ///< Threads that run() may use.

  bool has_input(size_t slot) const { return slot < inputs.size() && inputs[slot].is_tensor(); }
  /// Dims of input `slot`.
  Dims input_dims(size_t slot) const { return inputs[slot].shape().static_dims(); }
  Dims output_dims(size_t slot) const { return outputs[slot].shape().static_dims(); }
  /// Elements of input `slot` when they are known now, else null.
  const Tensor* constant(size_t slot) const {
    return slot < constants.size() && constants[slot].is_present() ? &constants[slot] : nullptr;
  }
};

/// A kernel, or the reason why there is none.
struct Prepared {
  std::unique_ptr<Kernel> kernel;
  std::string refusal;  ///< Set when kernel is null.
};

/// A candidate for an op.
struct KernelDef {
  std::string_view name;                             ///< For example "cpu.conv_onednn".
  std::string_view op;                               ///< The op it serves; "" = any op.
  std::string (*why_not)(const KernelCall&);         ///< "" when it takes the call, else the reason.
  Prepared (*prepare)(const KernelCall&) = nullptr;  ///< Called when why_not gave "".
};

/// What was chosen for a call.
struct KernelSelection {
  std::string name;
  std::unique_ptr<Kernel> kernel;     ///< Null when every candidate refused.
  std::vector<std::string> refusals;  ///< "candidate: reason", in order.
};

/// All candidates of a device, best first.
class KernelCatalog {
 public:
  explicit KernelCatalog(std::vector<KernelDef> kernels);
  /// Asks the candidates for the call's op in order and prepares the first that takes it.
  KernelSelection select(const KernelCall& call) const;
  /// Is there a candidate made for this very op?
  bool has_own_kernel(std::string_view op) const { return by_op_.count(op) > 0; }

 private:
  std::vector<KernelDef> kernels_;
  std::unordered_map<std::string_view, std::vector<size_t>> by_op_;
  std::vector<size_t> generic_;
};

}  // namespace autograph
