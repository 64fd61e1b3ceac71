// Steps whose shapes are only known while running: infer, allocate, run; and steps with an evaluate function.
#pragma once

#include <memory>
#include <vector>

#include "runtime/run_context.h"

namespace autograph {

/// One execution of such a step.
class DynamicStep {
 public:
  DynamicStep(RunContext& context, size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  /// Fills the step's heap slots and drops those that nothing reads any more.
  void run();

 private:
  struct ByteRange {
    const char* begin;
    const char* end;
  };
  std::vector<Datum> gather_inputs() const;
  std::vector<Datum> evaluate(std::vector<Datum> inputs);
  std::vector<ByteRange> borrowed_ranges(const std::vector<Datum>& inputs) const;
  static Datum owned(const Datum& datum, const std::vector<ByteRange>& borrowed);
  std::vector<Datum> infer_and_run(const std::vector<Datum>& inputs);
  RunContext::CachedKernel& kernel_for(std::vector<Type> inputs, std::vector<Type> outputs);

  RunContext& context_;
  const size_t number_;
  const Step& step_;
  const Node& node_;
  const RunOptions& options_;
  const std::shared_ptr<MemoryMeter>& meter_;
};

}  // namespace autograph
