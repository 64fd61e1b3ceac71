// gather_nd: copies the block of bytes that each tuple of indices names; every index is checked.
#include <atomic>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/index/nd_index.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

class GatherNdKernel : public Kernel {
 public:
  explicit GatherNdKernel(const KernelCall& call) : batch_dims_(call.attributes.integer("batch_dims")) {
    const Dims data = call.input_dims(0), indices = call.input_dims(1);
    const std::vector<int64_t> strides = dense_strides(data);
    const auto batch_rank = static_cast<size_t>(batch_dims_);
    const auto depth = static_cast<size_t>(indices.back());
    const auto bytes = static_cast<int64_t>(element_size(call.inputs[0].dtype()));
    for (size_t a = 0; a + 1 < indices.size(); ++a) (a < batch_rank ? batches_ : per_batch_) *= indices[a];
    for (size_t a = batch_rank; a < data.size(); ++a) {
      batch_bytes_ *= data[a];
      if (a < batch_rank + depth) axes_.push_back({data[a], strides[a] * bytes});
      if (a >= batch_rank + depth) block_bytes_ *= data[a];
    }
    batch_bytes_ *= bytes;
    block_bytes_ *= bytes;
    threads_ = useful_threads(call.threads, batches_ * per_batch_ * (block_bytes_ / 4 + indices.back()));
  }

  void run(const KernelArgs& args) const override {
    std::atomic<bool> outside = false;  // an exception must not leave a thread
    for_shares(threads_, batches_ * per_batch_, [&](int64_t begin, int64_t end, int) {
      if (!copy_share(args, begin, end)) outside = true;
    });
    if (outside) resolve_nd(gather_nd_def().name, args.inputs[0], args.inputs[1], batch_dims_);
  }

 private:
  struct IndexedAxis {
    int64_t extent, stride_bytes;
  };

  // False when an index is out of range.
  bool copy_share(const KernelArgs& args, int64_t begin, int64_t end) const {
    const char* data = static_cast<const char*>(args.inputs[0].raw());
    char* out = static_cast<char*>(args.outputs[0].raw()) + begin * block_bytes_;
    const int64_t* index = args.inputs[1].data<int64_t>() + begin * static_cast<int64_t>(axes_.size());
    for (int64_t tuple = begin; tuple < end; ++tuple, out += block_bytes_) {
      int64_t start = tuple / per_batch_ * batch_bytes_;
      for (const IndexedAxis& axis : axes_) {
        if (*index < -axis.extent || *index >= axis.extent) return false;
        start += (*index < 0 ? *index + axis.extent : *index) * axis.stride_bytes;
        ++index;
      }
      std::memcpy(out, data + start, static_cast<size_t>(block_bytes_));
    }
    return true;
  }

  const int64_t batch_dims_;
  std::vector<IndexedAxis> axes_;
  int64_t batches_ = 1;
  int64_t per_batch_ = 1;  // tuples
  int64_t batch_bytes_ = 1;
  int64_t block_bytes_ = 1;
  int threads_ = 1;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<GatherNdKernel>(call), ""}; }

}  // namespace

KernelDef gather_nd_kernel() {
  return {.name = "cpu.gather_nd", .op = gather_nd_def().name, .why_not = why_not_bytes, .prepare = prepare};
}

}  // namespace autograph
