// gather: copies the block of bytes behind each index; every index is checked.
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "base/check.h"
#include "ops/defs.h"

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
    const int64_t indices = call.inputs[1].shape().num_elements().value();
    threads_ = useful_threads(call.threads, outer_ * indices * static_cast<int64_t>(block_bytes_) / 4);
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
    // Before any thread starts: an exception must not leave one.
    for (const Index index : indices) {
      AG_CHECK_USER(index >= -extent_ && index < extent_, ValueError, "[gather] indices: expected {}..{}, got {}",
                    -extent_, extent_ - 1, index);
    }
    if (block_bytes_ == 0) return;
    const char* data = static_cast<const char*>(args.inputs[0].raw());
    char* out = static_cast<char*>(args.outputs[0].raw());
    const auto count = static_cast<int64_t>(indices.size());
    for_shares(threads_, outer_ * count, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const auto index = static_cast<int64_t>(indices[static_cast<size_t>(i % count)]);
        const int64_t at = i / count * extent_ + (index < 0 ? index + extent_ : index);
        std::memcpy(out + static_cast<size_t>(i) * block_bytes_, data + static_cast<size_t>(at) * block_bytes_,
                    block_bytes_);
      }
    });
  }

  int64_t outer_ = 1;
  int64_t extent_ = 1;
  size_t block_bytes_ = 1;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() == DType::string) return "strings";
  const DType index = call.inputs[1].dtype();
  return index == DType::i32 || index == DType::i64 ? "" : "indices other than i32 and i64";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<GatherKernel>(call), ""}; }

}  // namespace

KernelDef gather_kernel() {
  return {.name = "cpu.gather", .op = gather_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
