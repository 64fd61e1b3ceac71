// tensor_scatter: a copy of the cache, unless the result has its memory, and then the update, which lies in one piece,
// or two around the end, for each entry of the axes before that of positions.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/index/first_position.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

class TensorScatterKernel : public Kernel {
 public:
  explicit TensorScatterKernel(const KernelCall& call) : is_circular_(call.attributes.text("mode") == "circular") {
    const Dims cache = call.input_dims(0);
    const auto axis =
        static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(cache.size())));
    batch_ = cache[0], capacity_ = cache[axis], length_ = call.input_dims(1)[axis];
    for (size_t a = 0; a < axis; ++a) entries_ *= cache[a];
    position_bytes_ = static_cast<int64_t>(element_size(call.inputs[0].dtype()));
    for (size_t a = axis + 1; a < cache.size(); ++a) position_bytes_ *= cache[a];
    constexpr int64_t kWorkBytes = sizeof(float);
    threads_ = useful_threads(call.threads, cache_bytes() / kWorkBytes);
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const auto* const cache = static_cast<const char*>(args.inputs[0].raw());
    auto* const to = static_cast<char*>(args.outputs[0].raw());
    const TensorView indices = args.inputs.size() > 2 ? args.inputs[2] : TensorView();
    const int64_t last = is_circular_ ? capacity_ - 1 : capacity_ - length_;
    for (int64_t b = 0; b < batch_; ++b) first_position(indices, b, length_, last);
    if (to != cache) {
      for_shares(threads_, cache_bytes(), [&](int64_t begin, int64_t end, int /*thread*/) {
        std::memcpy(to + begin, cache + begin, static_cast<size_t>(end - begin));
      });
    }
    const auto* update = static_cast<const char*>(args.inputs[1].raw());
    const int64_t of_batch = entries_ / batch_;
    for (int64_t entry = 0; entry < entries_; ++entry, update += length_ * position_bytes_) {
      const int64_t first = first_position(indices, entry / of_batch, length_, last);
      const int64_t before = std::min(length_, capacity_ - first);  // the end of the cache
      char* const at = to + entry * capacity_ * position_bytes_;
      std::memcpy(at + first * position_bytes_, update, static_cast<size_t>(before * position_bytes_));
      std::memcpy(at, update + before * position_bytes_, static_cast<size_t>((length_ - before) * position_bytes_));
    }
  }

 private:
  int64_t cache_bytes() const { return entries_ * capacity_ * position_bytes_; }

  const bool is_circular_;
  int64_t batch_ = 0, entries_ = 1, capacity_ = 0, length_ = 0, position_bytes_ = 0;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() == DType::string) return "strings";
  for (const size_t slot : {0, 1}) {
    if (call.inputs[slot].shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<TensorScatterKernel>(call), ""}; }

}  // namespace

KernelDef tensor_scatter_kernel() {
  return {.name = "cpu.tensor_scatter", .op = tensor_scatter_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
