#include "backends/gpu/parts_kernel.h"

#include <utility>

#include "autograph/buffer.h"
#include "autograph/device.h"
#include "ops/defs.h"
#include "tensor/front_axis.h"
#include "tensor/size_of.h"

namespace autograph::gpu {
namespace {

bool is_concat(const KernelCall& call) { return &call.op == &concat_def(); }

std::span<const Type> parts_of(const KernelCall& call) { return is_concat(call) ? call.inputs : call.outputs; }

std::vector<size_t> offsets_of(const KernelCall& call) {
  std::vector<size_t> offsets;
  size_t at = 0;
  for (const Type& part : parts_of(call)) {
    offsets.push_back(at);
    at += size_of(part);
  }
  return offsets;
}

class PartsKernel : public Kernel {
 public:
  explicit PartsKernel(const KernelCall& call) : joins_(is_concat(call)), offsets_(offsets_of(call)) {}

  std::vector<size_t> part_offsets() const override { return joins_ ? offsets_ : std::vector<size_t>(); }
  std::vector<size_t> piece_offsets() const override { return joins_ ? std::vector<size_t>() : offsets_; }
  void run(const KernelArgs& args) const override {
    char* whole = static_cast<char*>((joins_ ? args.outputs : args.inputs)[0].raw());
    for (size_t k = 0; k < offsets_.size(); ++k) {
      const TensorView& part = (joins_ ? args.inputs : args.outputs)[k];
      void* to = whole + offsets_[k];
      void* from = part.raw();
      if (to == from || part.size_bytes() == 0) continue;
      if (!joins_) std::swap(to, from);
      args.stream->memory()->copy(to, from, part.size_bytes(), args.stream);
    }
  }

 private:
  bool joins_;
  std::vector<size_t> offsets_;  // in the whole
};

}  // namespace

std::string why_not_parts(const KernelCall& call) {
  if (&call.op != &concat_def() && &call.op != &split_def()) return "no parts of a whole";
  const Type& whole = is_concat(call) ? call.outputs[0] : call.inputs[0];
  if (!whole.is_tensor() || whole.dtype() == DType::string) return "strings";
  for (const Type& part : parts_of(call)) {
    if (!part.is_tensor()) return "a part that is not there";
  }
  const Dims dims = whole.shape().static_dims();
  const int64_t axis = call.attributes.integer("axis");
  const auto end = static_cast<size_t>(front_axis(axis, std::ssize(dims)));
  for (size_t a = 0; a < end; ++a) {
    if (dims[a] != 1) return "parts in several pieces";
  }
  return "";
}

std::vector<KernelDef> parts_kernels() {
  std::vector<KernelDef> kernels;
  for (const OpDef* op : {&concat_def(), &split_def()}) {
    kernels.push_back(
        {.name = "gpu.parts", .op = op->name, .why_not = why_not_parts, .prepare = [](const KernelCall& call) {
           return Prepared{std::make_unique<PartsKernel>(call), ""};
         }});
  }
  return kernels;
}

}  // namespace autograph::gpu
