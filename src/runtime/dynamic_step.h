// Steps whose shapes are only known while running: infer, allocate, run; and steps with an evaluate function.
#pragma once

#include <memory>
#include <vector>

#include "autograph/device.h"
#include "runtime/launchable.h"

namespace autograph {

/// One execution of such a step. On a device with memory of its own, kernels work there, on `stream`; evaluate
/// functions, ops on strings and inference read copies on the host, for which they wait.
class DynamicStep {
 public:
  DynamicStep(Launchable& launchable, size_t number, const RunOptions& options,
              const std::shared_ptr<MemoryMeter>& meter, Stream* stream = nullptr);
  /// Fills the step's heap slots and drops those that nothing reads any more.
  void run();

 private:
  struct ByteRange {
    const char* begin;
    const char* end;
  };
  using CachedKernel = Launchable::CachedKernel;

  std::vector<Datum> gather_inputs() const;
  std::vector<Datum> evaluate(std::vector<Datum> inputs);
  std::vector<ByteRange> borrowed_ranges(const std::vector<Datum>& inputs) const;
  static Datum owned(Datum datum, const std::vector<ByteRange>& borrowed);
  std::vector<Datum> infer_and_run(const std::vector<Datum>& inputs);
  std::vector<Type> infer(const std::vector<Type>& input_types, const std::vector<Tensor>& inputs) const;
  bool is_view(const std::vector<Tensor>& inputs, const std::vector<Type>& output_types) const;
  std::vector<Datum> run_on_host(const std::vector<Tensor>& inputs, const std::vector<Type>& output_types) const;
  std::vector<Datum> run_kernel(const std::vector<Tensor>& inputs, std::vector<Type> input_types,
                                std::vector<Type> output_types);
  CachedKernel& kernel_for(std::vector<Type> inputs, std::vector<Type> outputs);

  Tensor on_host(const Tensor& tensor) const;
  Datum on_host(const Datum& datum) const;
  Tensor on_device(SlotIndex slot, const Tensor& tensor) const;
  void retire(Tensor tensor) const;

  Launchable& launchable_;
  const size_t number_;
  const Step& step_;
  const Node& node_;
  const RunOptions& options_;
  const std::shared_ptr<MemoryMeter>& meter_;
  Stream* const stream_;        // null on the host
  const Memory* const memory_;  // of the stream; null: the host's
};

}  // namespace autograph
