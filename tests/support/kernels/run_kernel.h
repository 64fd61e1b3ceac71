// Running one kernel of a backend by itself, on tensors, without a plan around it.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "autograph/kernel.h"
#include "support/graphs/sample_graph.h"

namespace autograph {

/// Elements of memory for a tensor in a layout, which may pad channels.
int64_t padded_elements(Layout layout, const Dims& dims);

/// How a kernel is prepared.
struct KernelSetup {
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  int threads = 1;
  bool constant_weights = false;           ///< All inputs but the first are known when it is prepared.
  const KernelVariant* variant = nullptr;  ///< Must outlive the case; inputs are taken to be in its layouts.
  bool exact = false;                      ///< See KernelCall.
  PackedConstants* packed = nullptr;       ///< See KernelCall; must outlive the case.
  size_t first_unknown = kNone;            ///< With constant weights: this input and those behind it are not known.
};

/// A call of one op with everything that a kernel is told about it.
class KernelCase {
 public:
  KernelCase(const OpDef& op, OpSample sample, KernelSetup setup = {});
  KernelCall call() const;
  std::span<const TensorView> inputs() const { return input_views_; }
  /// What the reference computes.
  std::vector<Tensor> reference() const;

 private:
  TestGraph test_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> padded_;  // of variants whose layouts need more room
  std::vector<Tensor> constants_;
  std::vector<TensorView> input_views_;
  std::vector<Type> input_types_, output_types_;
  KernelSetup setup_;
};

/// A kernel prepared for a case, with memory to run it. The case must outlive it.
class KernelRun {
 public:
  KernelRun(const KernelDef& def, const KernelCase& of);
  /// Why there is no kernel; "" when there is one.
  const std::string& refusal() const { return refusal_; }
  /// Runs it, as often as wanted.
  void run();
  /// In one row where the variant's layout pads channels.
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  const KernelCase& case_;
  std::string refusal_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<KernelState> state_;
  std::vector<Tensor> outputs_;
  std::vector<TensorView> output_views_;
  Tensor scratch_;
};

}  // namespace autograph
