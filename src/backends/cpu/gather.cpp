// gather: copies the block of bytes behind each index; every index is checked.
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "base/check.h"

namespace autograph {
namespace {

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelCall& call) {
    const Dims data = call.input_dims(0);
    int64_t axis = call.attributes.integer("axis");
    if (axis < 0) axis += static_cast<int64_t>(data.size());
    for (size_t a = 0; a < data.size(); ++a) {
      if (static_cast<int64_t>(a) < axis) outer_ *= data[a];
      if (static_cast<int64_t>(a) > axis) block_bytes_ *= static_cast<size_t>(data[a]);
    }
    extent_ = data[static_cast<size_t>(axis)];
    block_bytes_ *= element_size(call.inputs[0].dtype());
  }

  void run(const KernelArgs& args) const override {
    if (args.inputs[1].dtype() == DType::i32)
      copy(args, args.inputs[1].elements<int32_t>());
    else
      copy(args, args.inputs[1].elements<int64_t>());
  }

 private:
  template <class Index>
  void copy(const KernelArgs& args, std::span<const Index> indices) const {
    const char* row = args.inputs[0].data<char>();
    char* out = args.outputs[0].mutable_data<char>();
    for (int64_t r = 0; r < outer_; ++r) {
      for (const Index index : indices) {
        AG_CHECK_USER(index >= -extent_ && index < extent_, ValueError, "[gather] indices: expected {}..{}, got {}",
                      -extent_, extent_ - 1, index);
        const int64_t at = index < 0 ? index + extent_ : index;
        if (block_bytes_ > 0) std::memcpy(out, row + static_cast<size_t>(at) * block_bytes_, block_bytes_);
        out += block_bytes_;
      }
      row += static_cast<size_t>(extent_) * block_bytes_;
    }
  }

  int64_t outer_ = 1;
  int64_t extent_ = 1;
  size_t block_bytes_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() == DType::string) return "strings";
  const DType index = call.inputs[1].dtype();
  return index == DType::i32 || index == DType::i64 ? "" : "indices other than i32 and i64";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<GatherKernel>(call), ""}; }

}  // namespace

KernelDef gather_kernel() { return {.name = "cpu.gather", .op = "gather", .why_not = why_not, .prepare = prepare}; }

}  // namespace autograph
