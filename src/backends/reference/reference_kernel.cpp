#include "backends/reference/reference_kernel.h"

#include <fmt/core.h>

#include "graph/run_reference.h"

namespace autograph {
namespace {

std::string why_not(const KernelCall& call) {
  if (!call.op.scalar) {
    return call.op.reference || call.op.decompose ? "" : "the op has no reference implementation";
  }
  std::vector<DType> dtypes;
  for (const Type& type : call.inputs) dtypes.push_back(type.dtype());
  if (call.op.scalar(dtypes, call.outputs[0].dtype())) return "";
  std::string list;
  for (const DType dtype : dtypes) list += (list.empty() ? "" : ", ") + std::string(to_string(dtype));
  return fmt::format("no formula from ({}) to {}", list, to_string(call.outputs[0].dtype()));
}

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(const KernelCall& call) : op_(call.op), attributes_(call.attributes) {}
  void run(const KernelArgs& args) const override { call_reference(op_, {attributes_, args.inputs, args.outputs}); }

 private:
  const OpDef& op_;
  const Attributes& attributes_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<ReferenceKernel>(call), ""}; }

}  // namespace

KernelDef reference_kernel() { return {.name = "reference", .op = "", .why_not = why_not, .prepare = prepare}; }

}  // namespace autograph
