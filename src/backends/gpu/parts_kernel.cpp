#include "backends/gpu/parts_kernel.h"

#include "autograph/buffer.h"
#include "autograph/device.h"
#include "ops/defs.h"
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

void copy_unless_there(const KernelArgs& args, const TensorView& to, size_t to_offset, const TensorView& from,
                       size_t from_offset, size_t bytes) {
  char* target = static_cast<char*>(to.raw()) + to_offset;
  const char* source = static_cast<const char*>(from.raw()) + from_offset;
  if (target != source && bytes > 0) args.stream->memory()->copy(target, source, bytes, args.stream);
}

class ConcatParts : public Kernel {
 public:
  explicit ConcatParts(const KernelCall& call) : offsets_(offsets_of(call)) {}
  std::vector<size_t> part_offsets() const override { return offsets_; }
  void run(const KernelArgs& args) const override {
    for (size_t k = 0; k < offsets_.size(); ++k) {
      const TensorView& part = args.inputs[k];
      copy_unless_there(args, args.outputs[0], offsets_[k], part, 0, part.size_bytes());
    }
  }

 private:
  std::vector<size_t> offsets_;
};

class SplitParts : public Kernel {
 public:
  explicit SplitParts(const KernelCall& call) : offsets_(offsets_of(call)) {}
  std::vector<size_t> piece_offsets() const override { return offsets_; }
  void run(const KernelArgs& args) const override {
    for (size_t k = 0; k < offsets_.size(); ++k) {
      const TensorView& part = args.outputs[k];
      copy_unless_there(args, part, 0, args.inputs[0], offsets_[k], part.size_bytes());
    }
  }

 private:
  std::vector<size_t> offsets_;
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
  const auto end = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
  for (size_t a = 0; a < end; ++a) {
    if (dims[a] != 1) return "parts in several pieces";
  }
  return "";
}

KernelDef concat_parts_kernel() {
  return {
      .name = "gpu.parts", .op = concat_def().name, .why_not = why_not_parts, .prepare = [](const KernelCall& call) {
        return Prepared{std::make_unique<ConcatParts>(call), ""};
      }};
}

KernelDef split_parts_kernel() {
  return {.name = "gpu.parts", .op = split_def().name, .why_not = why_not_parts, .prepare = [](const KernelCall& call) {
            return Prepared{std::make_unique<SplitParts>(call), ""};
          }};
}

}  // namespace autograph::gpu
