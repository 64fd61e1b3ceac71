// concat and split: each operand is a block of bytes in every row of the whole. With a single row the memory plan may
// have put the parts where they belong, and there is nothing to copy.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

struct Blocks {
  int64_t rows = 1;           // product of the dims before the axis
  std::vector<size_t> bytes;  // of each part in one row
  size_t row_bytes = 0;       // of the whole

  // Where each part begins in the whole; empty when it is in several pieces.
  std::vector<size_t> offsets() const {
    if (rows != 1) return {};
    std::vector<size_t> result;
    size_t offset = 0;
    for (const size_t part : bytes) {
      result.push_back(offset);
      offset += part;
    }
    return result;
  }
};

void copy_unless_there(char* to, const char* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

int64_t axis_of(const KernelCall& call, const Dims& dims) {
  const int64_t axis = call.attributes.integer("axis");
  return axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis;
}

// Along the channels of a channels-last tensor every pixel is a row. Whole blocks of channels lie in a blocked tensor
// as the channels themselves do in a row-major one.
Blocks plan_blocks(const KernelCall& call, std::span<const Type> parts) {
  Blocks blocks;
  const Dims first = parts[0].shape().static_dims();
  const int64_t axis = axis_of(call, first);
  if (call.variant && call.variant->output(0) == Layout::channels_last) {
    blocks.rows = first[0];
    for (size_t a = 2; a < first.size(); ++a) blocks.rows *= first[a];
    for (const Type& part : parts) {
      blocks.bytes.push_back(element_size(part.dtype()) * static_cast<size_t>(part.shape()[1].value()));
      blocks.row_bytes += blocks.bytes.back();
    }
    return blocks;
  }
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
  std::vector<size_t> part_offsets() const override { return blocks_.offsets(); }
  void run(const KernelArgs& args) const override {
    char* row = args.outputs[0].mutable_data<char>();
    for (int64_t r = 0; r < blocks_.rows; ++r) {
      for (size_t part = 0; part < blocks_.bytes.size(); ++part) {
        const size_t bytes = blocks_.bytes[part];
        copy_unless_there(row, args.inputs[part].data<char>() + static_cast<size_t>(r) * bytes, bytes);
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
  std::vector<size_t> piece_offsets() const override { return blocks_.offsets(); }
  void run(const KernelArgs& args) const override {
    const char* row = args.inputs[0].data<char>();
    for (int64_t r = 0; r < blocks_.rows; ++r) {
      for (size_t part = 0; part < blocks_.bytes.size(); ++part) {
        const size_t bytes = blocks_.bytes[part];
        copy_unless_there(args.outputs[part].mutable_data<char>() + static_cast<size_t>(r) * bytes, row, bytes);
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

// Row-major always; along the channels also the other layouts, blocked ones where all parts are whole blocks.
std::vector<KernelVariant> variants(const KernelCall& call, const Type& whole, std::span<const Type> parts) {
  const double us = 1 + static_cast<double>(size_of(whole)) / 5e3;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  const Dims dims = whole.shape().static_dims();
  if (whole.dtype() != DType::f32 || axis_of(call, dims) != 1) return result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    if (!fits_rank(layout, dims.size())) continue;
    const bool whole_blocks = std::all_of(parts.begin(), parts.end(), [&](const Type& part) {
      return part.shape()[1].value() % channel_block(layout) == 0;
    });
    if (!whole_blocks) continue;
    // A split's second input, the lengths, has no layout.
    std::vector<Layout> inputs(call.inputs.size(), layout);
    if (&parts[0] == &call.outputs[0] && inputs.size() > 1) inputs[1] = Layout::row_major;
    result.push_back(
        {.name = "", .inputs = inputs, .outputs = std::vector<Layout>(call.outputs.size(), layout), .cost_us = us});
  }
  return result;
}

std::vector<KernelVariant> concat_variants(const KernelCall& call) {
  return variants(call, call.outputs[0], call.inputs);
}

std::vector<KernelVariant> split_variants(const KernelCall& call) {
  return variants(call, call.inputs[0], call.outputs);
}

}  // namespace

KernelDef concat_kernel() {
  return {
      .name = "cpu.concat", .op = "concat", .why_not = why_not, .prepare = prepare_concat, .variants = concat_variants};
}

KernelDef split_kernel() {
  return {.name = "cpu.split", .op = "split", .why_not = why_not, .prepare = prepare_split, .variants = split_variants};
}

}  // namespace autograph
