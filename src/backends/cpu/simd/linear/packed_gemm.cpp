// matmul and gemm of two matrices that are only known while running, with an epilogue of sums, products and relu:
// packed_gemm_loops.h. Weights that are known before are better off where they are packed once.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/packed_gemm_loops.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

using Kind = GemmStep::Kind;
constexpr size_t kMostSteps = 8;

struct StepInput {
  Kind kind;
  int input = -1;  // of the call; -1: the step reads nothing
};

struct Product {
  int64_t rows = 0, depth = 0, columns = 0;
  size_t a = 0, b = 0;  // inputs of the call
  bool a_transposed = false, b_transposed = false;
  float alpha = 1;
  std::vector<StepInput> steps;
  std::string refusal;
};

enum class Form : uint8_t { other, row, tensor };

// Is it a row of as many numbers as there are columns, or a tensor like the output?
Form form_of(const Operand& operand, const Product& product, const Type& output) {
  if (operand.input < 0 || !operand.type.is_tensor()) return Form::other;
  const Dims dims = operand.type.shape().static_dims(), out = output.shape().static_dims();
  if (dims == out) return Form::tensor;
  const bool is_row = !dims.empty() && dims.size() <= out.size() && dims.back() == product.columns &&
                      operand.type.shape().num_elements() == product.columns;
  return is_row ? Form::row : Form::other;
}

// Appends the op; false where there is no loop for it.
bool add_step(const EpilogueOp& op, const Type& output, Product& product) {
  if (op.op == &relu_def()) {
    product.steps.push_back({Kind::relu});
    return true;
  }
  if (op.operands.size() != 2 || other_operand(op).is_chain) return false;
  const Operand& other = other_operand(op);
  const Form form = form_of(other, product, output);
  const bool adds = op.op == &add_def() && form != Form::other;
  if (!adds && !(op.op == &mul_def() && form == Form::tensor)) return false;
  product.steps.push_back({!adds ? Kind::multiply : form == Form::row ? Kind::add_row : Kind::add, other.input});
  return true;
}

void read_gemm(const AnchoredCall& call, Product& product) {
  const Dims a = call.dims(0), b = call.dims(1);
  product.a_transposed = call.attributes().flag("transA");
  product.b_transposed = call.attributes().flag("transB");
  product.alpha = call.attributes().real("alpha");
  product.rows = a[product.a_transposed ? 1 : 0], product.depth = a[product.a_transposed ? 0 : 1];
  product.columns = b[product.b_transposed ? 0 : 1];
  if (!call.has(2)) return;
  const Form form = form_of(call.operand(2), product, call.output());
  if (call.attributes().real("beta") != 1.0F || form == Form::other) {
    product.refusal = "a sum with other than a row or a tensor";
  }
  product.steps.push_back({form == Form::row ? Kind::add_row : Kind::add, call.operand(2).input});
}

void read_matmul(const AnchoredCall& call, Product& product) {
  const Dims a = call.dims(0), b = call.dims(1);
  if (a.size() < 2 || b.size() != 2) {
    product.refusal = "no product with one matrix";
    return;
  }
  product.depth = b[0], product.columns = b[1];
  product.rows = 1;
  for (size_t i = 0; i + 1 < a.size(); ++i) product.rows *= a[i];
}

Product read(const KernelCall& call) {
  Product product;
  const auto anchored = read_product(call);
  if (!anchored) {
    product.refusal = "not a matrix product with a chain of elementwise ops behind it";
    return product;
  }
  if (anchored->operand(0).input < 0 || anchored->operand(1).input < 0) {
    product.refusal = "a constant inside the body";
    return product;
  }
  product.a = static_cast<size_t>(anchored->operand(0).input);
  product.b = static_cast<size_t>(anchored->operand(1).input);
  &anchored->op() == &gemm_def() ? read_gemm(*anchored, product) : read_matmul(*anchored, product);
  for (const EpilogueOp& op : anchored->epilogue()) {
    if (!product.refusal.empty()) return product;
    if (!add_step(op, anchored->output(), product)) {
      product.refusal = "no loop for " + std::string(op.op->name) + " behind it";
    }
  }
  if (product.steps.size() > kMostSteps) product.refusal = "a long chain of elementwise ops behind it";
  return product;
}

std::string why_not(const KernelCall& call) {
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  const Product product = read(call);
  if (!product.refusal.empty()) return product.refusal;
  return call.constant(product.a) || call.constant(product.b) ? "known weights" : "";
}

GemmOperand left_of(const Product& p, const float* data) {
  return {data, p.a_transposed ? p.rows : p.depth, p.a_transposed};
}

GemmOperand right_of(const Product& p, const float* data) {
  return {data, p.b_transposed ? p.depth : p.columns, p.b_transposed};
}

bool is_in_place(const Product& p) {
  return is_better_in_place(left_of(p, nullptr), right_of(p, nullptr), p.depth, p.columns);
}

class PackedGemm : public Kernel {
 public:
  explicit PackedGemm(const KernelCall& call) : product_(read(call)) {
    constexpr int64_t kFlopsOfWork = 16;  // in the time that one element takes (parallel.h)
    const double flops =
        2.0 * static_cast<double>(product_.rows * product_.depth) * static_cast<double>(product_.columns);
    threads_ = useful_threads(call.threads, static_cast<int64_t>(std::min(flops / kFlopsOfWork, 1e15)));
    in_place_ = is_in_place(product_);
    // Of a thread, in whole lines.
    scratch_size_ =
        in_place_ ? (in_place_gemm_scratch_size(product_.depth, product_.columns) + 15) / 16 * 16 : gemm_scratch_size();
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * scratch_size_) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    auto* const scratch = static_cast<float*>(args.scratch);
    // What each thread packs for itself is the smaller factor.
    const bool shares_rows = product_.rows >= product_.columns;
    const int64_t step = shares_rows ? gemm_tile_rows() : gemm_tile_columns();
    const int64_t extent = shares_rows ? product_.rows : product_.columns;
    for_shares(threads_, (extent + step - 1) / step, [&](int64_t begin, int64_t end, int thread) {
      const Box box = shares_rows ? Box{begin * step, std::min(end * step, extent), 0, product_.columns}
                                  : Box{0, product_.rows, begin * step, std::min(end * step, extent)};
      run_box(args, box, scratch + thread * scratch_size_);
    });
  }

 private:
  // A part of the output.
  struct Box {
    int64_t row, end_row, column, end_column;
  };

  static GemmOperand part(GemmOperand whole, int64_t row, int64_t column) {
    whole.data += whole.transposed ? column * whole.stride + row : row * whole.stride + column;
    return whole;
  }

  void run_box(const KernelArgs& args, const Box& box, float* scratch) const {
    const Product& p = product_;
    std::array<GemmStep, kMostSteps> steps;
    for (size_t i = 0; i < p.steps.size(); ++i) {
      const StepInput& step = p.steps[i];
      steps[i].kind = step.kind;
      if (step.input < 0) continue;
      const float* from = args.inputs[static_cast<size_t>(step.input)].data<float>();
      steps[i].from = from + box.column + (step.kind == Kind::add_row ? 0 : box.row * p.columns);
    }
    run_gemm({.a = part(left_of(p, args.inputs[p.a].data<float>()), box.row, 0),
              .b = part(right_of(p, args.inputs[p.b].data<float>()), 0, box.column),
              .rows = box.end_row - box.row,
              .depth = p.depth,
              .columns = box.end_column - box.column,
              .alpha = p.alpha,
              .in_place = in_place_,
              .y = args.outputs[0].mutable_data<float>() + box.row * p.columns + box.column,
              .y_stride = p.columns,
              .steps = std::span(steps).first(p.steps.size())},
             scratch);
  }

  const Product product_;
  int threads_ = 1;
  bool in_place_ = false;
  int64_t scratch_size_ = 0;
};

// A little behind what oneDNN reaches where nothing stands in its way (matmul.cpp).
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 4, kStartInPlaceUs = 0.3, kFlopsPerUsAndThread = 85e3, kBytesPerUs = 12e3;
  const Product p = read(call);
  const double rows = static_cast<double>(p.rows), depth = static_cast<double>(p.depth);
  const double columns = static_cast<double>(p.columns);
  const double bytes =
      sizeof(float) * (rows * depth + depth * columns + static_cast<double>(1 + p.steps.size()) * rows * columns);
  const double start_us = is_in_place(p) ? kStartInPlaceUs : kStartUs;
  const double us = start_us + 2 * rows * depth * columns / (kFlopsPerUsAndThread * call.threads) + bytes / kBytesPerUs;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<PackedGemm>(call), ""}; }

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.packed_gemm_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> packed_gemm_kernels() {
  return {kernel_for(matmul_def().name), kernel_for(gemm_def().name), kernel_for(fused_def().name)};
}

}  // namespace autograph::simd
