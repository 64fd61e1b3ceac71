#include "autograph/reference_kernel.h"

#include <fmt/core.h>

#include "autograph/device.h"
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
  void run(const KernelArgs& args) const override {
    const Memory* memory = args.stream ? args.stream->memory() : nullptr;
    if (memory) {
      run_on_copies(args, *memory);
    } else {
      call_reference(op_, {attributes_, args.inputs, args.outputs});
    }
  }

 private:
  void run_on_copies(const KernelArgs& args, const Memory& memory) const {
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    for (const TensorView& view : args.inputs) {
      inputs.push_back(copy_of(view));
      if (view.is_present()) memory.read(inputs.back().mutable_raw(), view.raw(), view.size_bytes(), args.stream);
    }
    for (const TensorView& view : args.outputs) outputs.push_back(copy_of(view));
    args.stream->wait();
    call_reference(op_, {attributes_, views_of(inputs), views_of(outputs)});
    for (size_t k = 0; k < outputs.size(); ++k) {
      const TensorView& view = args.outputs[k];
      if (view.is_present()) memory.write(view.raw(), outputs[k].raw(), view.size_bytes(), args.stream);
    }
    args.stream->wait();  // the copies end here
  }

  // On the host, uninitialised.
  static Tensor copy_of(const TensorView& view) {
    if (!view.is_present()) return {};
    return Tensor::empty(view.dtype(), {view.dims().begin(), view.dims().end()});
  }

  static std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
    std::vector<TensorView> views;
    for (const Tensor& tensor : tensors) views.push_back(tensor.is_present() ? tensor.view() : TensorView());
    return views;
  }

  const OpDef& op_;
  const Attributes& attributes_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<ReferenceKernel>(call), ""}; }

}  // namespace

KernelDef reference_kernel() { return {.name = "reference", .op = "", .why_not = why_not, .prepare = prepare}; }

}  // namespace autograph
