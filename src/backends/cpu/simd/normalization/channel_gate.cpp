// fused: the gate of a squeeze-and-excite block (Hu et al. 2018), a factor for each channel. The mean of each channel
// over all pixels goes through 1x1 convolutions, which are products of one vector and a matrix here, and their
// activation functions.
//
// What these compute is tiny: as nodes of their own most of their time would be entering and leaving kernels and
// teams. The multiplication of the image by the gate is left to whoever computes what follows it.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/normalization/pixel_sums.h"
#include "backends/cpu/simd/conv/conv_steps.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/normalization/channel_gate.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "backends/cpu/simd/conv/conv_steps-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_CHANNEL_GATE
#define AG_SIMD_CHANNEL_GATE
namespace autograph::simd {

/// A product and what follows it.
struct GateLayer {
  int64_t in = 0, out = 0;
  const PackedWeights& matrix;  // [blocks of outputs, in, outputs of a block]
  const PackedWeights& bias;    // [blocks, outputs of a block]
  std::vector<ConvStep> functions;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

using GateD = hn::ScalableTag<float>;
using GateV = hn::Vec<GateD>;

// Elements ahead of which matrices are fetched: they come from memory or the last cache, and pages end every 1024.
constexpr int64_t kPrefetched = 2048;

int64_t gate_lanes() { return static_cast<int64_t>(hn::Lanes(GateD())); }

// A gate has few vectors: what convolutions save by a less exact swish is nothing here.
HWY_INLINE GateV apply_function(const ConvStep& step, GateV v) {
  const GateD d;
  if (step.kind == ConvStep::Kind::swish) return formulas::fast<formulas::Swish>(Lanes(v), Lanes(step.p)).v;
  const auto none = [&]() HWY_ATTR { return hn::Zero(d); };
  apply_conv_step(d, step, [&](const auto& f) HWY_ATTR { v = f(v, none); });
  return v;
}

// One block of outputs. Four sums, because each addition waits for the one before.
HWY_INLINE GateV product_of_block(const float* x, int64_t in, const float* matrix, GateV bias) {
  const GateD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  GateV s0 = bias, s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t c = 0;
  for (; c + 4 <= in; c += 4, matrix += 4 * lanes) {
    for (int64_t k = 0; k < 4; ++k) hwy::Prefetch(matrix + kPrefetched + k * lanes);
    s0 = hn::MulAdd(hn::Set(d, x[c]), hn::LoadU(d, matrix), s0);
    s1 = hn::MulAdd(hn::Set(d, x[c + 1]), hn::LoadU(d, matrix + lanes), s1);
    s2 = hn::MulAdd(hn::Set(d, x[c + 2]), hn::LoadU(d, matrix + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::Set(d, x[c + 3]), hn::LoadU(d, matrix + 3 * lanes), s3);
  }
  for (; c < in; ++c, matrix += lanes) s0 = hn::MulAdd(hn::Set(d, x[c]), hn::LoadU(d, matrix), s0);
  return hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
}

// Blocks [begin, end) of the outputs of a layer.
void compute_gate_blocks(const GateLayer& layer, const float* x, int64_t begin, int64_t end, float* y) {
  const GateD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block * lanes;
    GateV v =
        product_of_block(x, layer.in, layer.matrix.data() + first * layer.in, hn::LoadU(d, layer.bias.data() + first));
    for (const ConvStep& step : layer.functions) v = apply_function(step, v);
    if (first + lanes <= layer.out) {
      hn::StoreU(v, d, y + first);
    } else {
      store_some(d, v, y + first, static_cast<size_t>(layer.out - first));
    }
  }
}

// Sums of whole planes.
void sum_planes(const float* x, int64_t planes, int64_t pixels, float* sums) {
  const GateD d;
  for (int64_t c = 0; c < planes; ++c) {
    const auto itself = [](GateV v) HWY_ATTR { return v; };
    sums[c] = static_cast<float>(sum_row(d, x + c * pixels, static_cast<size_t>(pixels), hn::Zero(d), itself));
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(gate_lanes);
HWY_EXPORT(compute_gate_blocks);
HWY_EXPORT(sum_planes);

// ---- Reading the body ------------------------------------------------------------------------------------------

// The number in input `slot`: `otherwise` when it is not given, nothing when it is not known.
std::optional<float> number_at(const Graph& body, const Node& node, size_t slot, float otherwise) {
  if (!node.input(slot).is_valid()) return otherwise;
  const Value& value = body.value(node.input(slot));
  if (!value.is_constant() || value.constant().num_elements() != 1) return std::nullopt;
  return value.constant().data<float>()[0];
}

std::optional<ConvStep> function_of(const Graph& body, const Node& node) {
  const auto number = [&](size_t slot, float otherwise) { return number_at(body, node, slot, otherwise); };
  return activation_step(node.op(), node.attributes(), number);
}

// A product of the body, whose constants are inputs of the call or, with one element, constants of the body.
struct GateProduct {
  KnownWeight matrix;  // [out, in, 1, ...]
  KnownWeight bias;    // [out]; absent: none
  std::vector<ConvStep> functions;
};

// A call taken apart.
class GateCall {
 public:
  explicit GateCall(const KernelCall& call) : call_(call), body_(typed_body(call)) { refusal_ = read(); }

  const std::string& refusal() const { return refusal_; }
  const std::vector<GateProduct>& products() const { return products_; }
  /// Multiplications for one image.
  int64_t work() const {
    int64_t total = 0;
    for (const GateProduct& product : products_) total += product.matrix.elements.num_elements();
    return total;
  }

 private:
  std::string read() {
    ValueId chain;
    for (const NodeId id : body_->topological_order()) {
      const Node& node = body_->node(id);
      const bool is_first = !chain.is_valid();
      if (is_first && (&node.op() != &global_average_pool_def() || node.input(0) != body_->inputs()[0])) {
        return "no global average pool of input 0";
      }
      if (!is_first && node.input(0) != chain) return "a body that is not a chain";
      if (!is_first && !append(node)) return "no loop for " + std::string(node.op().name);
      chain = node.output(0);
    }
    if (body_->outputs().size() != 1 || body_->outputs()[0] != chain) return "a result in the middle";
    return products_.empty() ? "no convolution" : "";
  }

  bool append(const Node& node) {
    if (&node.op() == &conv_def()) return append_product(node);
    const auto function = products_.empty() ? std::nullopt : function_of(*body_, node);
    if (function) products_.back().functions.push_back(*function);
    return function.has_value();
  }

  // The image has one pixel, so that neither strides nor dilations matter.
  bool append_product(const Node& node) {
    const bool has_bias = node.input(2).is_valid();
    GateProduct product{known(node.input(1)), has_bias ? known(node.input(2)) : KnownWeight(), {}};
    const Tensor& matrix = product.matrix.elements;
    if (!matrix.is_present() || (has_bias && !product.bias.elements.is_present())) return false;
    const Dims& dims = matrix.dims();
    const Shape& result = body_->type(node.output(0)).shape();
    const bool has_one_tap = std::all_of(dims.begin() + 2, dims.end(), [](int64_t n) { return n == 1; });
    if (!has_one_tap || node.attributes().integer("group") != 1 || !result.is_static()) return false;
    const Dims out = result.static_dims();
    products_.push_back(std::move(product));
    return std::all_of(out.begin() + 2, out.end(), [](int64_t n) { return n == 1; });
  }

  KnownWeight known(ValueId v) const {
    if (body_->value(v).is_constant()) return {.elements = body_->value(v).constant()};
    const auto& inputs = body_->inputs();
    const auto at = std::find(inputs.begin(), inputs.end(), v);
    return at == inputs.end() ? KnownWeight() : KnownWeight::of(call_, static_cast<size_t>(at - inputs.begin()));
  }

  const KernelCall& call_;
  std::shared_ptr<const Graph> body_;
  std::vector<GateProduct> products_;
  std::string refusal_;
};

// ---- The kernel ------------------------------------------------------------------------------------------------

// The outputs of a matrix [out, in, 1, ...], block by block.
void pack_in_blocks(const Tensor& matrix, int64_t lanes, float* blocks) {
  const int64_t out = matrix.dims()[0], in = matrix.dims()[1];
  const float* from = matrix.data<float>();
  if (out % lanes != 0) std::fill_n(blocks + out / lanes * lanes * in, lanes * in, 0.0F);
  for (int64_t o = 0; o < out; ++o) {
    float* to = blocks + o / lanes * lanes * in + o % lanes;
    for (int64_t c = 0; c < in; ++c) to[c * lanes] = from[o * in + c];
  }
}

class ChannelGate : public WeightsKernel {
 public:
  explicit ChannelGate(const KernelCall& call)
      : layout_(call.variant->input(0)), lanes_(HWY_DYNAMIC_DISPATCH(gate_lanes)()) {
    const Dims x = call.input_dims(0);
    batch_ = x[0];
    channels_ = x[1];
    for (size_t a = 2; a < x.size(); ++a) pixels_ *= x[a];
    const GateCall gate(call);
    for (const GateProduct& product : gate.products()) layers_.push_back(layer_of(product, call));
    for (const GateLayer& layer : layers_) width_ = std::max({width_, layer.in, layer.out});
    pool_threads_ = useful_threads(call.threads, batch_ * channels_ * pixels_ / 2);
    for (const GateLayer& layer : layers_) {
      product_threads_.push_back(useful_threads(call.threads, layer.in * layer.out / 4));
    }
  }

  bool reads_input(size_t slot) const override { return slot == 0; }

  // For every thread its share of the means, and sums on the way; then what goes from layer to layer.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(pool_threads_ * (batch_ + 1) * channels_ + 2 * width_) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    float* means = static_cast<float*>(args.scratch);
    float* between = means + pool_threads_ * (batch_ + 1) * channels_;
    layout_ == Layout::row_major ? pool_planes(args, means) : pool_pixels(args, means);
    means_of_pixels(means, args.inputs[0].data<float>(), batch_ * channels_, pixels_, block(), means);
    float* y = args.outputs[0].mutable_data<float>();
    for (int64_t n = 0; n < batch_; ++n) compute_gate(means + n * channels_, between, y + n * layers_.back().out);
  }

 private:
  GateLayer layer_of(const GateProduct& product, const KernelCall& call) {
    const int64_t out = product.matrix.elements.dims()[0], in = product.matrix.elements.dims()[1];
    const int64_t padded_out = (out + lanes_ - 1) / lanes_ * lanes_;
    const auto pack = [lanes = lanes_](const std::vector<Tensor>& matrix, float* to) {
      pack_in_blocks(matrix[0], lanes, to);
    };
    return {in, out, packed(call, {product.matrix}, {"channel_gate_simd", padded_out * in, pack}),
            padded(call, product.bias, padded_out), product.functions};
  }

  // Channels that lie together.
  int64_t block() const { return layout_ == Layout::channels_last ? channels_ : channel_block(layout_); }

  void pool_planes(const KernelArgs& args, float* sums) const {
    const float* x = args.inputs[0].data<float>();
    for_shares(pool_threads_, batch_ * channels_, [&](int64_t begin, int64_t end, int) {
      HWY_DYNAMIC_DISPATCH(sum_planes)(x + begin * pixels_, end - begin, pixels_, sums + begin);
    });
  }

  // The threads share the pixels: those that the kernel before has left in their caches.
  void pool_pixels(const KernelArgs& args, float* sums) const {
    const float* x = args.inputs[0].data<float>();
    const int64_t results = batch_ * channels_;
    std::fill_n(sums, pool_threads_ * results, 0.0F);
    for_fixed_shares(pool_threads_, pixels_, [&](int64_t begin, int64_t end, int thread) {
      float* partial = sums + pool_threads_ * results + thread * channels_;
      for (int64_t i = 0; i < results; i += block()) {
        add_pixels(x + i * pixels_ + begin * block(), end - begin, block(), partial, sums + thread * results + i);
      }
    });
    for (int t = 1; t < pool_threads_; ++t) add_elements(sums + t * results, results, sums);
  }

  void compute_gate(const float* x, float* between, float* y) const {
    for (size_t k = 0; k < layers_.size(); ++k) {
      const GateLayer& layer = layers_[k];
      float* to = k + 1 == layers_.size() ? y : between + static_cast<int64_t>(k % 2) * width_;
      for_shares(product_threads_[k], (layer.out + lanes_ - 1) / lanes_, [&](int64_t begin, int64_t end, int) {
        HWY_DYNAMIC_DISPATCH(compute_gate_blocks)(layer, x, begin, end, to);
      });
      x = to;
    }
  }

  Layout layout_;
  int64_t lanes_;
  int64_t batch_ = 1, channels_ = 1, pixels_ = 1;
  int64_t width_ = 0;  // of the widest vector between layers
  std::vector<GateLayer> layers_;
  int pool_threads_ = 1;
  std::vector<int> product_threads_;  // by layer
};

std::string why_not(const KernelCall& call) {
  if (call.inputs.empty() || !call.inputs[0].is_static()) return "no image";
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  for (const Type& type : call.inputs) {
    if (!type.is_tensor() || type.dtype() != DType::f32) return "an input of another dtype than f32";
  }
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  return GateCall(call).refusal();
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ChannelGate>(call), ""}; }

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 3;
  constexpr double kBytesPerUsAndThread = 30e3;
  constexpr double kProductsPerUs = 20e3;
  const double us = kStartUs + static_cast<double>(size_of(call.inputs[0])) / kBytesPerUsAndThread / call.threads +
                    static_cast<double>(GateCall(call).work()) / kProductsPerUs;
  const Dims x = call.input_dims(0), y = call.output_dims(0);
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8, Layout::row_major}) {
    if (!fits_rank(layout, x.size())) continue;
    // The padding of a gate would not stay zero.
    if (x[1] % channel_block(layout) != 0 || y[1] % channel_block(layout) != 0) continue;
    // Planes are read one after the other, which other kernels do not leave in the cache that way.
    const double factor = layout == Layout::row_major ? 1.2 : 1;
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us * factor});
  }
  return result;
}

}  // namespace

KernelDef channel_gate_kernel() {
  return {.name = "cpu.channel_gate_simd",
          .op = fused_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
