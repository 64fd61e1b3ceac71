// trilu: of every row of a matrix one stretch is copied, and the rest becomes 0.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph {
namespace {

class TriluKernel : public Kernel {
 public:
  explicit TriluKernel(const KernelCall& call)
      : upper_(call.attributes.flag("upper")), element_bytes_(element_size(call.inputs[0].dtype())) {
    const Dims dims = call.input_dims(0);
    columns_ = dims[dims.size() - 1];
    rows_ = dims[dims.size() - 2];
    const int64_t elements = call.inputs[0].shape().num_elements().value();
    lines_ = columns_ == 0 ? 0 : elements / columns_;
    threads_ = useful_threads(call.threads, elements * static_cast<int64_t>(element_bytes_) / 4);
  }

  void run(const KernelArgs& args) const override {
    const bool has_diagonal = args.inputs.size() > 1 && args.inputs[1].is_present();
    // Diagonals beyond the corners are all the same.
    const int64_t diagonal = has_diagonal ? std::clamp(*args.inputs[1].data<int64_t>(), -rows_, columns_) : 0;
    const char* in = static_cast<const char*>(args.inputs[0].raw());
    char* out = static_cast<char*>(args.outputs[0].raw());
    for_shares(threads_, lines_, [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t middle = std::clamp<int64_t>(line % rows_ + diagonal + (upper_ ? 0 : 1), 0, columns_);
        const size_t start = static_cast<size_t>(line * columns_) * element_bytes_;
        const size_t left = static_cast<size_t>(middle) * element_bytes_;
        const size_t right = static_cast<size_t>(columns_ - middle) * element_bytes_;
        const size_t kept = upper_ ? start + left : start;
        if (in != out) std::memcpy(out + kept, in + kept, upper_ ? right : left);
        std::memset(out + (upper_ ? start : start + left), 0, upper_ ? left : right);
      }
    });
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

 private:
  const bool upper_;
  const size_t element_bytes_;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  int64_t lines_ = 0;  // rows of all matrices
  int threads_ = 1;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<TriluKernel>(call), ""}; }

}  // namespace

KernelDef trilu_kernel() {
  return {.name = "cpu.trilu", .op = trilu_def().name, .why_not = why_not_bytes, .prepare = prepare};
}

}  // namespace autograph
