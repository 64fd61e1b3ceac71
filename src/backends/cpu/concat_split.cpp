// concat and split: each operand is a block of bytes in every row of the whole.
#include <cstring>

#include "backends/cpu/cpu_kernels.h"

namespace autograph {
namespace {

struct Blocks {
  int64_t rows = 1;           // product of the dims before the axis
  std::vector<size_t> bytes;  // of each part in one row
  size_t row_bytes = 0;       // of the whole
};

Blocks plan_blocks(const KernelCall& call, std::span<const Type> parts) {
  Blocks blocks;
  const Dims first = parts[0].shape().static_dims();
  int64_t axis = call.attributes.integer("axis");
  if (axis < 0) axis += static_cast<int64_t>(first.size());
  for (int64_t a = 0; a < axis; ++a) blocks.rows *= first[static_cast<size_t>(a)];
  for (const Type& part : parts) {
    const Dims dims = part.shape().static_dims();
    size_t bytes = element_size(part.dtype());
    for (auto a = static_cast<size_t>(axis); a < dims.size(); ++a) bytes *= static_cast<size_t>(dims[a]);
    blocks.bytes.push_back(bytes);
    blocks.row_bytes += bytes;
  }
  return blocks;
}

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const KernelCall& call) : blocks_(plan_blocks(call, call.inputs)) {}
  void run(const KernelArgs& args) const override {
    char* row = args.outputs[0].mutable_data<char>();
    for (int64_t r = 0; r < blocks_.rows; ++r) {
      for (size_t part = 0; part < blocks_.bytes.size(); ++part) {
        const size_t bytes = blocks_.bytes[part];
        if (bytes > 0) std::memcpy(row, args.inputs[part].data<char>() + static_cast<size_t>(r) * bytes, bytes);
        row += bytes;
      }
    }
  }

 private:
  const Blocks blocks_;
};

class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(const KernelCall& call) : blocks_(plan_blocks(call, call.outputs)) {}
  void run(const KernelArgs& args) const override {
    const char* row = args.inputs[0].data<char>();
    for (int64_t r = 0; r < blocks_.rows; ++r) {
      for (size_t part = 0; part < blocks_.bytes.size(); ++part) {
        const size_t bytes = blocks_.bytes[part];
        if (bytes > 0)
          std::memcpy(args.outputs[part].mutable_data<char>() + static_cast<size_t>(r) * bytes, row, bytes);
        row += bytes;
      }
    }
  }

 private:
  const Blocks blocks_;
};

std::string why_not(const KernelCall& call) { return call.inputs[0].dtype() == DType::string ? "strings" : ""; }

Prepared prepare_concat(const KernelCall& call) { return {std::make_unique<ConcatKernel>(call), ""}; }
Prepared prepare_split(const KernelCall& call) { return {std::make_unique<SplitKernel>(call), ""}; }

}  // namespace

KernelDef concat_kernel() {
  return {.name = "cpu.concat", .op = "concat", .why_not = why_not, .prepare = prepare_concat};
}

KernelDef split_kernel() { return {.name = "cpu.split", .op = "split", .why_not = why_not, .prepare = prepare_split}; }

}  // namespace autograph
