// What is computed of one byte for one byte, element by element, is a table of 256 entries: dequantize_linear, an
// activation that a model spells out, quantize_linear. The table is what the definition says for every byte there is.
#include <array>
#include <cstring>

#include "autograph/op_def.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/parallel.h"
#include "graph/run_reference.h"
#include "schedule/plan.h"

namespace autograph {

const OpDef& dequantize_linear_def();
const OpDef& quantize_linear_def();

namespace {

constexpr int64_t kBytes = 256;

bool is_byte(const Type& type) { return type.dtype() == DType::u8 || type.dtype() == DType::i8; }

// Every node works element by element, with nothing but known numbers beside what comes from the input.
std::string why_not_body(const Graph& body) {
  for (const ValueId v : body.constants()) {
    if (body.value(v).constant().num_elements() != 1) return "a tensor of constants in the body";
  }
  for (const NodeId id : body.nodes()) {
    const Node& node = body.node(id);
    const bool quantizes = &node.op() == &quantize_linear_def() || &node.op() == &dequantize_linear_def();
    if (quantizes || (node.op().traits.elementwise && node.op().scalar)) continue;
    return std::string(node.op().name) + " in the body";
  }
  return "";
}

std::string why_not(const KernelCall& call) {
  if (call.inputs.size() != 1 || call.outputs.size() != 1) return "more than one input or output";
  if (!is_byte(call.inputs[0]) || !is_byte(call.outputs[0])) return "an input or output of other than 8 bits";
  if (call.inputs[0].shape() != call.outputs[0].shape()) return "an output of other dims";
  return why_not_body(*call.attributes.get<GraphRef>("body"));
}

// One byte is read and one written for each element, through a table that stays in the first cache.
class ByteTable : public Kernel {
 public:
  explicit ByteTable(const KernelCall& call)
      : count_(*call.outputs[0].shape().num_elements()), threads_(useful_threads(call.threads, count_)) {
    std::array<uint8_t, kBytes> all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    const Tensor input = Tensor::wrap(call.inputs[0].dtype(), {kBytes}, all.data(), nullptr);
    const Type output(call.outputs[0].dtype(), {kBytes});
    const std::vector<Tensor> results = run_reference(call.op, call.attributes, {&input, 1}, {&output, 1});
    std::memcpy(table_.data(), results[0].raw(), table_.size());
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const auto* from = static_cast<const uint8_t*>(args.inputs[0].raw());
    auto* to = static_cast<uint8_t*>(args.outputs[0].raw());
    for_shares(threads_, count_, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) to[i] = table_[from[i]];
    });
  }

 private:
  int64_t count_;
  int threads_;
  std::array<uint8_t, kBytes> table_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<ByteTable>(call), ""}; }

// Elements may lie in any order, as long as there is no padding.
std::vector<KernelVariant> variants(const KernelCall& call) {
  // By the scale of tile_variants(), whose programs a table always beats.
  constexpr double kBytesPerUs = 4e4;
  const double us = 0.25 + static_cast<double>(size_of(call.outputs[0])) / kBytesPerUs;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  if (fits_rank(Layout::channels_last, call.outputs[0].shape().dims().size())) {
    result.push_back(
        {.name = "", .inputs = {Layout::channels_last}, .outputs = {Layout::channels_last}, .cost_us = us});
  }
  return result;
}

}  // namespace

KernelDef byte_table_kernel() {
  return {.name = "cpu.byte_table", .op = "fused", .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace autograph
