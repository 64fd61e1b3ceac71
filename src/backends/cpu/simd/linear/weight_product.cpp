// matmul and gemm with a matrix that is known before, with a bias and an epilogue: the loops of 1x1 convolutions
// (pointwise_conv_loops.h), rows in the place of pixels.
//
// Up to some hundred rows the weights of a network take about as long to come as to be multiplied, and what counts is
// that they are on their way while the ones before are multiplied.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/pointwise_conv_loops.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

constexpr size_t kA = 0;
constexpr size_t kB = 1;
constexpr size_t kC = 2;

bool is_gemm(const AnchoredCall& call) { return &call.op() == &gemm_def(); }
bool is_transposed(const AnchoredCall& call) { return is_gemm(call) && call.attributes().flag("transB"); }

struct Extents {
  int64_t rows = 1, depth = 0, columns = 0;

  double flops() const { return 2.0 * static_cast<double>(rows * depth) * static_cast<double>(columns); }
};

Extents extents_of(const AnchoredCall& call) {
  const Dims a = call.dims(kA), b = call.dims(kB);
  Extents extents{.rows = 1, .depth = a.back(), .columns = b[is_transposed(call) ? 0 : 1]};
  for (size_t i = 0; i + 1 < a.size(); ++i) extents.rows *= a[i];
  return extents;
}

// A known row of as many numbers as there are columns.
bool is_known_row(const AnchoredCall& call, const Operand& operand) {
  const Tensor& row = operand.constant;
  return row.is_present() && row.dtype() == DType::f32 && row.num_elements() == extents_of(call).columns &&
         !row.dims().empty() && row.dims().back() == row.num_elements();
}

// What is added to all rows: gemm's third input, or the first op behind a matmul.
const Operand* find_bias(const AnchoredCall& call) {
  if (is_gemm(call)) return call.has(kC) ? &call.operand(kC) : nullptr;
  if (call.epilogue().empty()) return nullptr;
  const EpilogueOp& first = call.epilogue()[0];
  if (first.op != &add_def() || first.operands.size() != 2) return nullptr;
  const Operand& other = other_operand(first);
  return is_known_row(call, other) ? &other : nullptr;
}

ConvSteps steps_of(const AnchoredCall& call) {
  return read_conv_steps(call, !is_gemm(call) && find_bias(call) ? 1 : 0);
}

std::string why_not(const KernelCall& call) {
  const auto product = read_product(call);
  if (!product) return "not a matrix product with a chain of elementwise ops behind it";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  if (product->operand(kA).input < 0) return "a constant inside the body";
  if (!product->operand(kB).constant.is_present()) return "an unknown matrix";
  if (product->dims(kA).size() < 2 || product->dims(kB).size() != 2) return "no product with one matrix";
  if (product->output().shape().num_elements().value_or(0) == 0 || extents_of(*product).depth == 0)
    return "no elements";
  if (is_gemm(*product)) {
    const Attributes& attributes = product->attributes();
    if (attributes.real("alpha") != 1.0F || attributes.flag("transA")) return "a scaled or transposed left side";
    const Operand* bias = find_bias(*product);
    if (bias && (attributes.real("beta") != 1.0F || !is_known_row(*product, *bias))) return "a sum with no known row";
  }
  return steps_of(*product).refusal;
}

// Flops in the time that one element takes (parallel.h).
constexpr double kFlopsOfWork = 16;

// Few rows wait for the weights, which come from a cache of all: two threads get twice as many.
int64_t work_of(const Extents& extents) {
  constexpr int64_t kWeightsOfWork = 4;
  const auto compute = static_cast<int64_t>(std::min(extents.flops() / kFlopsOfWork, 1e15));
  return std::max(compute, extents.depth * extents.columns / kWeightsOfWork);
}

class WeightProduct : public WeightsKernel {
 public:
  WeightProduct(const KernelCall& call, const AnchoredCall& product)
      : extents_(extents_of(product)),
        steps_(steps_of(product)),
        a_slot_(static_cast<size_t>(product.operand(kA).input)),
        threads_(useful_threads(call.threads, work_of(extents_))),
        panels_(pointwise_panels(extents_.columns)),
        packed_(packed(call, {KnownWeight::of(product.operand(kB))}, form_of(product))),
        bias_(padded(call, bias_of(product), panels_ * pointwise_panel_width())) {}

  bool reads_input(size_t slot) const override { return slot == a_slot_ || steps_.reads(slot); }

  size_t spaced_row_bytes() const override { return static_cast<size_t>(extents_.columns) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    const ConvResiduals residuals(steps_, args);
    share_pointwise({.in_channels = extents_.depth,
                     .out_channels = extents_.columns,
                     .panels = packed_.data(),
                     .bias = bias_.data(),
                     .x = args.inputs[a_slot_].data<float>(),
                     .x_stride = extents_.depth,
                     .residuals = residuals,
                     .y = args.outputs[0].mutable_data<float>(),
                     .y_stride = static_cast<int64_t>(args.row_stride / sizeof(float)),
                     .pixels = extents_.rows,
                     .steps = steps_.list},
                    threads_);
  }

 private:
  static KnownWeight bias_of(const AnchoredCall& product) {
    const Operand* bias = find_bias(product);
    return bias ? KnownWeight::of(*bias) : KnownWeight();
  }

  WeightForm form_of(const AnchoredCall& product) const {
    const int64_t size = panels_ * pointwise_panel_width() * extents_.depth;
    if (!is_transposed(product)) {
      return {"weight_product_simd", size,
              [this](const std::vector<Tensor>& b, float* to) { pack(b[0].data<float>(), to); }};
    }
    return {"weight_product_simd transposed", size, [e = extents_](const std::vector<Tensor>& b, float* to) {
              pack_pointwise_weights(b[0].data<float>(), e.columns, e.depth, to);
            }};
  }

  void pack(const float* from, float* to) const {
    const int64_t panel = pointwise_panel_width(), vector = pointwise_vector_width(), columns = extents_.columns;
    for (int64_t first = 0; first < columns; first += panel) {
      const int64_t given = std::min(panel, columns - first);
      const int64_t width = (given + vector - 1) / vector * vector;
      for (int64_t k = 0; k < extents_.depth; ++k, to += width) {
        std::copy_n(from + k * columns + first, given, to);
        std::fill_n(to + given, width - given, 0.0F);
      }
    }
  }

  Extents extents_;
  ConvSteps steps_;
  size_t a_slot_;
  int threads_;
  int64_t panels_;
  const PackedWeights &packed_, &bias_;
};

Prepared prepare(const KernelCall& call) {
  const auto product = read_product(call);
  return {std::make_unique<WeightProduct>(call, *product), ""};
}

// The time that these loops take in that of oneDNN's forms (matmul.cpp), which wait for weights that are not near.
// With AVX2 alone oneDNN's are as fast where there are more rows than that.
double slowdown(const KernelCall& call, const Extents& extents) {
  constexpr int64_t kAvx2Width = 8;
  const bool has_avx2 = pointwise_vector_width() == kAvx2Width;
  constexpr int64_t kFewRows = 96;
  constexpr double kFew = 0.85, kMore = 0.94, kNear = 1.12;
  const int64_t more_rows = has_avx2 ? 144 : 320;
  const double many = has_avx2 ? 1.12 : 1.03;
  const size_t bytes = static_cast<size_t>(extents.depth * extents.columns) * sizeof(float);
  if (are_weights_near(call, bytes)) return kNear;
  return extents.rows <= kFewRows ? kFew : extents.rows <= more_rows ? kMore : many;
}

// A product so small that one thread computes it. oneDNN takes 0.9 us longer to begin, and some 0.1 ms to make code for
// each shape: this is faster by far as long as most columns of its vectors are used, of which one alone is slow.
double small_us(const KernelCall& call, const Extents& extents, double bytes) {
  constexpr double kStartUs = 1.1;
  constexpr double kFlopsPerUsAndThread = 100e3;
  constexpr double kBytesPerUs = 11e3;
  constexpr double kOneVector = 1.5;
  const int64_t width = pointwise_vector_width(), vectors = (extents.columns + width - 1) / width;
  const Extents padded{extents.rows, extents.depth, vectors * width};
  const double slower = vectors == 1 ? kOneVector : 1;
  return kStartUs + slower * padded.flops() / (kFlopsPerUsAndThread * call.threads) + bytes / kBytesPerUs;
}

double cost_us(const KernelCall& call, const AnchoredCall& product) {
  constexpr double kStartUs = 2;
  constexpr double kFlopsPerUsAndThread = 100e3;
  constexpr double kBytesPerUs = 12e3;
  const KernelCall anchor = product.anchor_call(call.threads);
  const OpCost cost = cost_of(product.op(), {product.attributes(), anchor.inputs, anchor.outputs});
  const double compute_us = cost.flops / (kFlopsPerUsAndThread * call.threads);
  const Extents extents = extents_of(product);
  const double us = kStartUs + slowdown(call, extents) * (compute_us + cost.bytes / kBytesPerUs);
  return useful_threads(2, work_of(extents)) == 1 ? std::min(us, small_us(call, extents, cost.bytes)) : us;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = cost_us(call, *read_product(call))}};
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.weight_product_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> weight_product_kernels() {
  return {kernel_for(matmul_def().name), kernel_for(gemm_def().name), kernel_for(fused_def().name)};
}

}  // namespace autograph::simd
