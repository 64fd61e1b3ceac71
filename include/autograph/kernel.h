// Kernels: what runs one node on one device, and the ordered list of kernels for each op (see docs/add_a_kernel.md).
//
// A kernel is prepared once for given types and constants and may then run on any number of threads at once: what
// changes during a run lives in the scratch memory and in a KernelState, of which every run context has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/layout.h"
#include "autograph/op_def.h"

namespace autograph {

/// What a kernel keeps from run to run in one run context, for example argument lists of a library.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

class Stream;

/// One run of a kernel. All addresses are in the memory of the device.
struct KernelArgs {
  std::span<const TensorView> inputs;   ///< Absent views for optional inputs not given.
  std::span<const TensorView> outputs;  ///< Allocated, uninitialised.
  void* scratch = nullptr;              ///< scratch_bytes() bytes, 64-byte aligned.
  KernelState* state = nullptr;         ///< From new_state(); null when that gave none.
  Stream* stream = nullptr;  ///< Where to enqueue; null on the host, whose kernels are over when they return.
  size_t row_stride = 0;     ///< Bytes from one row of output 0 to the next (Kernel::spaced_row_bytes); 0: no gaps.
};

/// Code for one node with known shapes.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Fills the outputs, or enqueues on `args.stream` what does; the spans of `args` themselves end with the call.
  /// Allocates nothing where it can be helped. Thread-safe with distinct scratch and state.
  virtual void run(const KernelArgs& args) const = 0;
  /// Working memory that run() needs.
  virtual size_t scratch_bytes() const { return 0; }
  /// Bytes of prepacked copies of constants.
  virtual size_t weight_bytes() const { return 0; }
  /// Inputs whose memory output 0 may have, best first.
  virtual std::vector<uint32_t> in_place_inputs() const { return {}; }
  /// For kernels that join their inputs: the byte at which each begins in output 0. run() then leaves alone what lies
  /// there already. Empty for all others.
  virtual std::vector<size_t> part_offsets() const { return {}; }
  /// Where each part has a piece in every row of output 0: bytes of such a row, in which pieces begin at
  /// part_offsets(). 0: all parts are in one piece.
  virtual size_t joined_row_bytes() const { return 0; }
  /// Bytes of a row of output 0 where run() can write its rows KernelArgs::row_stride bytes apart, into a row of what
  /// they will be joined to; 0: it cannot.
  virtual size_t spaced_row_bytes() const { return 0; }
  /// As part_offsets() for kernels that take input 0 apart: the byte at which each output begins in it, in one piece.
  virtual std::vector<size_t> piece_offsets() const { return {}; }
  /// Does run() look at the elements of input `slot`? False for constants that the kernel has its own copy of, whose
  /// originals may be released.
  virtual bool reads_input(size_t slot) const {
    static_cast<void>(slot);
    return true;
  }
  /// State for one run context.
  virtual std::unique_ptr<KernelState> new_state() const { return nullptr; }
};

/// One way in which a kernel can serve a call. Layouts beyond the lists are row-major; constants that the kernel packs
/// for itself are asked for row-major.
struct KernelVariant {
  std::string name;             ///< What tells it from the kernel's other variants: "brgconv:avx512_core". May be "".
  std::vector<Layout> inputs;   ///< Layouts in which the inputs are read.
  std::vector<Layout> outputs;  ///< Layouts in which the outputs are written.
  double cost_us = 0;           ///< Estimate by which variants are compared where nothing was measured.
  int tag = 0;                  ///< For the kernel itself.
  bool spaces_rows = false;     ///< Can it write output 0 where its rows will be joined (Kernel::spaced_row_bytes)?
  bool joins_parts = false;     ///< Does it join its inputs, each in one piece (Kernel::part_offsets)?
  bool joins_rows = false;      ///< Does it join rows of its inputs (Kernel::joined_row_bytes)?

  Layout input(size_t slot) const { return slot < inputs.size() ? inputs[slot] : Layout::row_major; }
  Layout output(size_t slot) const { return slot < outputs.size() ? outputs[slot] : Layout::row_major; }
  /// Are all tensors row-major?
  bool is_row_major() const;
};

class PackedConstants;

/// What kernels found out about a call, kept from one that is asked about it to the next. For one thread.
class CallReadings {
 public:
  /// What the first who asks for a T makes by `read()`, which may be null.
  template <class T, class Read>
  std::shared_ptr<const T> get(Read&& read) {
    static const char kType = 0;  // whose address stands for T
    for (const auto& [type, reading] : readings_) {
      if (type == &kType) return std::static_pointer_cast<const T>(reading);
    }
    std::shared_ptr<const T> reading = read();
    readings_.emplace_back(&kType, reading);
    return reading;
  }

 private:
  std::vector<std::pair<const void*, std::shared_ptr<const void>>> readings_;
};

/// What a kernel is asked to do. Op and attributes outlive the kernel that is made for them.
struct KernelCall {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Type> inputs;       ///< Static tensor types; Kind::none where an input is not given.
  std::span<const Type> outputs;      ///< Static tensor types.
  std::span<const Tensor> constants;  ///< Parallel to inputs: elements of those known now, else absent.
  int threads = 1;                    ///< Threads that run() may use.
  bool exact = false;                 ///< No algorithm that sums in another order than the op's definition suggests.
  const KernelVariant* variant = nullptr;  ///< Which variant to prepare; null for kernels without variants.
  PackedConstants* packed = nullptr;       ///< Where packed constants are shared; null: nowhere.
  /// Bytes of all constants of the plan: from run to run they stay in a cache that holds them all. 0: not known.
  size_t plan_constant_bytes = 0;
  CallReadings* readings = nullptr;  ///< Where kernels keep what they read of the call; null: nowhere.

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

/// A kernel for an op.
struct KernelDef {
  std::string_view name;                             ///< For example "cpu.conv_onednn".
  std::string_view op;                               ///< The op it serves; "" = any op.
  std::string (*why_not)(const KernelCall&);         ///< "" when it takes the call, else the reason. Cheap.
  Prepared (*prepare)(const KernelCall&) = nullptr;  ///< Called when why_not gave "".
  /// The ways in which it can serve the call, one with all tensors row-major among them; null: that one alone.
  std::vector<KernelVariant> (*variants)(const KernelCall&) = nullptr;
};

/// A kernel and the variant in which it would serve a call.
struct KernelCandidate {
  const KernelDef* kernel = nullptr;
  KernelVariant variant;

  /// "cpu.conv_onednn jit:avx512_common blocked16".
  std::string name() const;
};

/// Cost of candidates that stand by only.
inline constexpr double kLastResortUs = 1e9;

/// All candidates for a call and the reasons of the kernels that have none, "kernel: reason", best kernel first.
struct KernelCandidates {
  std::vector<KernelCandidate> candidates;
  std::vector<std::string> refusals;
};

/// What was chosen for a call.
struct KernelSelection {
  std::string name;
  std::unique_ptr<Kernel> kernel;     ///< Null when every kernel refused.
  std::vector<std::string> refusals;  ///< "kernel: reason", in order.
};

/// A change of layout.
struct ReorderCall {
  const Type& type;  ///< Static.
  Layout from;
  Layout to;
  int threads = 1;
};

/// How a device changes layouts; null when it knows row-major tensors alone.
using PrepareReorder = std::unique_ptr<Kernel> (*)(const ReorderCall&);

class KernelJudge;

/// May a kernel with operands in other layouts be taken, with reorders around it?
enum class Reorders : uint8_t { none, as_needed };

/// All kernels of a device, best first.
class KernelCatalog {
 public:
  explicit KernelCatalog(std::vector<KernelDef> kernels, PrepareReorder reorder = nullptr);
  /// Asks the kernels for the call's op in order. Those with variants stand with all of them. Of those without, the
  /// first counts; the others follow at kLastResortUs and more, for the case that it cannot be prepared.
  KernelCandidates candidates(const KernelCall& call) const;
  /// Makes the kernel of a candidate.
  Prepared prepare(KernelCall call, const KernelCandidate& candidate) const;
  /// Prepares the cheapest candidate for row-major tensors that `judge` (null: none is asked) has nothing against.
  KernelSelection select(const KernelCall& call, KernelJudge* judge = nullptr,
                         Reorders reorders = Reorders::none) const;
  /// Would a kernel made for this very op take the call?
  bool accepts(const KernelCall& call) const;
  /// Is there a kernel made for this very op?
  bool has_own_kernel(std::string_view op) const { return by_op_.count(op) > 0; }
  /// Does the device know layouts other than row-major?
  bool can_reorder() const { return reorder_ != nullptr; }
  /// The kernel that changes layouts.
  std::unique_ptr<Kernel> prepare_reorder(const ReorderCall& call) const;

 private:
  std::vector<size_t> kernels_for(std::string_view op) const;

  std::vector<KernelDef> kernels_;
  std::unordered_map<std::string_view, std::vector<size_t>> by_op_;
  std::vector<size_t> generic_;
  PrepareReorder reorder_;
};

}  // namespace autograph
