// Sums, differences and products of two dequantized tensors, perhaps with bounds, quantized again: `fused` bodies of
//
//   dequantize_linear, dequantize_linear -> add, sub or mul -> relu or clip -> quantize_linear -> dequantize_linear
//
// whichever of the later parts behind the quantization and in front of it are there. The second tensor may be one
// number for each image and channel, and may be floats that nothing dequantizes. With scales in units of the output
// nothing is divided: where the definition has a value in the middle between two steps, or next to it, the other one
// may come out.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "autograph/graph.h"
#include "backends/cpu/quantize/is_byte.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/unpadded_layouts.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/elementwise/quantized_pair.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/bytes-inl.h"

#ifndef AG_SIMD_QUANTIZED_PAIR_ONCE
#define AG_SIMD_QUANTIZED_PAIR_ONCE
namespace autograph::simd {
namespace {

// In units of the output: a * x + b * z + c, or (x - a) * c * (z - b) of a product.
struct PairFormula {
  bool is_product;
  float a, b, c;
  float low, high;         // bounds, those of the bytes among them
  int32_t zero;            // of the output
  float scale;             // of the output as floats
  DType first, second, y;  // u8 or i8; second and y may be f32
};

// Elements that lie one behind the other. The second tensor has as many, or one.
struct PairRow {
  const void* first;
  const void* second;
  void* y;
  int64_t count;
  bool is_one;
};

}  // namespace
}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

constexpr int64_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

template <class Byte, class Vectors>
HWY_INLINE void store(const PairFormula& formula, const Vectors& values, Byte* to) {
  store_bytes(values, formula.zero, to);
}

HWY_INLINE void store(const PairFormula& formula, ByteFloats value, float* to) {
  const ByteFloatD d;
  hn::StoreU(hn::Mul(hn::Round(value), hn::Set(d, formula.scale)), d, to);
}

HWY_INLINE void store(const PairFormula& formula, const std::array<ByteFloats, kByteVectors>& values, float* to) {
  for (size_t i = 0; i < values.size(); ++i) store(formula, values[i], to + i * hn::Lanes(ByteFloatD()));
}

template <bool kProduct, bool kOne, class First, class Second, class Y>
void compute_row(const PairFormula& formula, const PairRow& row) {
  const ByteFloatD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* first = static_cast<const First*>(row.first);
  const auto* second = static_cast<const Second*>(row.second);
  auto* y = static_cast<Y*>(row.y);
  const ByteFloats a = hn::Set(d, formula.a), b = hn::Set(d, formula.b), c = hn::Set(d, formula.c);
  const ByteFloats low = hn::Set(d, formula.low), high = hn::Set(d, formula.high);
  const ByteFloats one = hn::Set(d, static_cast<float>(*second));
  const auto compute = [&](const First* x, const Second* z) HWY_ATTR {
    const ByteFloats left = load_bytes(x);
    ByteFloats right = one;
    if constexpr (!kOne) right = load_bytes(z);
    const ByteFloats v = kProduct ? hn::Mul(hn::Mul(hn::Sub(left, a), c), hn::Sub(right, b))
                                  : hn::MulAdd(left, a, hn::MulAdd(right, b, c));
    return hn::Min(hn::Max(v, low), high);
  };
  const auto at = [&](int64_t i) HWY_ATTR { return compute(first + i, kOne ? second : second + i); };
  int64_t i = 0;
  for (; i + kByteVectors * lanes <= row.count; i += kByteVectors * lanes) {
    const std::array<ByteFloats, kByteVectors> values{at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes)};
    store(formula, values, y + i);
  }
  for (; i + lanes <= row.count; i += lanes) store(formula, at(i), y + i);
  if (i == row.count) return;
  const int64_t rest = std::min(row.count - i, kMaxLanes);
  First x[kMaxLanes] = {};
  Second z[kMaxLanes] = {};
  Y last[kMaxLanes] = {};
  std::copy_n(first + i, rest, x);
  if (!kOne) std::copy_n(second + i, rest, z);
  store(formula, compute(x, z), last);
  std::copy_n(last, rest, y + i);
}

template <bool kProduct, class First, class Second, class Y>
void compute_rows(const PairFormula& formula, const PairRow& row) {
  row.is_one ? compute_row<kProduct, true, First, Second, Y>(formula, row)
             : compute_row<kProduct, false, First, Second, Y>(formula, row);
}

template <bool kProduct, class First, class Second>
void compute_as(const PairFormula& formula, const PairRow& row) {
  if (formula.y == DType::u8) return compute_rows<kProduct, First, Second, uint8_t>(formula, row);
  if (formula.y == DType::i8) return compute_rows<kProduct, First, Second, int8_t>(formula, row);
  compute_rows<kProduct, First, Second, float>(formula, row);
}

template <bool kProduct, class First>
void compute_with(const PairFormula& formula, const PairRow& row) {
  if (formula.second == DType::u8) return compute_as<kProduct, First, uint8_t>(formula, row);
  if (formula.second == DType::i8) return compute_as<kProduct, First, int8_t>(formula, row);
  compute_as<kProduct, First, float>(formula, row);
}

template <bool kProduct>
void compute_of(const PairFormula& formula, const PairRow& row) {
  formula.first == DType::u8 ? compute_with<kProduct, uint8_t>(formula, row)
                             : compute_with<kProduct, int8_t>(formula, row);
}

void compute_any(const PairFormula& formula, const PairRow& row) {
  formula.is_product ? compute_of<true>(formula, row) : compute_of<false>(formula, row);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(compute_any);

struct Operand {
  size_t input = 0;
  double scale = 1, zero = 0;
};

// The body of a call, read from its output backwards.
struct Pair {
  const OpDef* op = nullptr;
  Operand first, second;   // the second one may be smaller
  bool is_turned = false;  // the second stands in front
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  double scale = 1, zero = 0;              // of the quantization
  DType bytes = DType::undefined;          // that it gives
  double float_scale = 1, float_zero = 0;  // of a dequantization behind it
};

class PairReader {
 public:
  explicit PairReader(const KernelCall& call) : call_(call), body_(*call.attributes.get<GraphRef>("body")) {}

  // Nothing where the body is something else.
  std::optional<Pair> read() {
    if (body_.outputs().size() != 1 || body_.inputs().size() != 2) return std::nullopt;
    const Node* node = take(body_.outputs()[0]);
    if (node && is(*node, dequantize_linear_def()) && !parameters(*node, pair_.float_scale, pair_.float_zero))
      return {};
    if (node && is(*node, dequantize_linear_def())) node = take(node->inputs()[0]);
    if (!node || !is(*node, quantize_linear_def()) || !read_quantization(*node)) return std::nullopt;
    node = take(node->inputs()[0]);
    if (node && (is(*node, relu_def()) || is(*node, clip_def()))) {
      if (!read_bounds(*node)) return std::nullopt;
      node = take(node->inputs()[0]);
    }
    if (!node || !(is(*node, add_def()) || is(*node, sub_def()) || is(*node, mul_def()))) return std::nullopt;
    pair_.op = &node->op();
    if (!read_operand(node->inputs()[0], pair_.first) || !read_operand(node->inputs()[1], pair_.second)) return {};
    if (taken_ != body_.num_nodes()) return std::nullopt;
    if (!can_be_first(pair_.first)) {
      std::swap(pair_.first, pair_.second);
      pair_.is_turned = true;
    }
    return can_be_first(pair_.first) ? std::optional(pair_) : std::nullopt;
  }

 private:
  static bool is(const Node& node, const OpDef& op) { return &node.op() == &op; }

  const Node* take(ValueId v) {
    const NodeId id = v.is_valid() ? body_.value(v).producer() : NodeId();
    if (!id.is_valid() || body_.node(id).outputs().size() != 1) return nullptr;
    ++taken_;
    return &body_.node(id);
  }

  // A known number; `missing` where there is none.
  std::optional<double> number(const Node& node, size_t slot, double missing) const {
    if (slot >= node.inputs().size() || !node.inputs()[slot].is_valid()) return missing;
    const Value& value = body_.value(node.inputs()[slot]);
    if (!value.is_constant() || value.constant().num_elements() != 1) return std::nullopt;
    return value.constant().to_f64()[0];
  }

  bool parameters(const Node& node, double& scale, double& zero) const {
    const auto s = number(node, 1, 1), z = number(node, 2, 0);
    if (!s || !z || body_.type(node.inputs()[1]).dtype() != DType::f32) return false;
    scale = *s;
    zero = *z;
    return scale > 0;
  }

  bool read_quantization(const Node& node) {
    pair_.bytes = body_.type(node.output(0)).dtype();
    const DType precision = node.attributes().get_or("precision", DType::undefined);
    return is_byte(pair_.bytes) && (precision == DType::undefined || precision == DType::f32) &&
           parameters(node, pair_.scale, pair_.zero);
  }

  bool read_bounds(const Node& node) {
    if (is(node, relu_def())) pair_.low = 0;
    if (is(node, relu_def())) return true;
    const auto low = number(node, 1, pair_.low), high = number(node, 2, pair_.high);
    if (!low || !high) return false;
    pair_.low = *low;
    pair_.high = *high;
    return pair_.low <= pair_.high;
  }

  // Of a dequantization, or floats.
  bool read_operand(ValueId v, Operand& operand) {
    if (v.is_valid() && body_.value(v).is_input() && body_.type(v).dtype() == DType::f32) {
      operand.input = body_.value(v).slot();
      return true;
    }
    const Node* node = take(v);
    if (!node || !is(*node, dequantize_linear_def()) || !parameters(*node, operand.scale, operand.zero)) return false;
    const Value& value = body_.value(node->inputs()[0]);
    operand.input = value.is_input() ? value.slot() : 0;
    return value.is_input() && is_byte(value.type().dtype());
  }

  bool can_be_first(const Operand& operand) const {
    return is_byte(call_.inputs[operand.input].dtype()) && call_.input_dims(operand.input) == call_.output_dims(0);
  }

  const KernelCall& call_;
  const Graph& body_;
  Pair pair_;
  size_t taken_ = 0;
};

// Coefficients in units of the output.
PairFormula formula_of(const KernelCall& call, const Pair& pair) {
  const bool is_signed = pair.bytes == DType::i8;
  const double lowest = is_signed ? -128 : 0, highest = is_signed ? 127 : 255;
  PairFormula formula{.is_product = pair.op == &mul_def(),
                      .a = 0,
                      .b = 0,
                      .c = 0,
                      .low = static_cast<float>(
                          std::clamp(std::nearbyint(pair.low / pair.scale), lowest - pair.zero, highest - pair.zero)),
                      .high = static_cast<float>(
                          std::clamp(std::nearbyint(pair.high / pair.scale), lowest - pair.zero, highest - pair.zero)),
                      .zero = static_cast<int32_t>(pair.zero),
                      .scale = static_cast<float>(pair.float_scale),
                      .first = call.inputs[pair.first.input].dtype(),
                      .second = call.inputs[pair.second.input].dtype(),
                      .y = call.outputs[0].dtype()};
  if (formula.is_product) {
    formula.a = static_cast<float>(pair.first.zero);
    formula.b = static_cast<float>(pair.second.zero);
    formula.c = static_cast<float>(pair.first.scale * pair.second.scale / pair.scale);
    return formula;
  }
  const bool subtracts = pair.op == &sub_def();
  const double a = (subtracts && pair.is_turned ? -1 : 1) * pair.first.scale / pair.scale;
  const double b = (subtracts && !pair.is_turned ? -1 : 1) * pair.second.scale / pair.scale;
  formula.a = static_cast<float>(a);
  formula.b = static_cast<float>(b);
  formula.c = static_cast<float>(-a * pair.first.zero - b * pair.second.zero);
  return formula;
}

// Numbers of the second tensor: as many as of the first one, one for each image and channel, or each channel, or one.
struct Spread {
  int64_t images = 1, channels = 1, pixels = 1;  // of the first tensor
  bool is_full = false;
  bool by_image = false;
};

std::optional<Spread> spread_of(const KernelCall& call, const Pair& pair) {
  const Dims y = call.output_dims(0);
  Dims z = call.input_dims(pair.second.input);
  Spread spread;
  if (z == y) {
    for (const int64_t extent : y) spread.pixels *= extent;
    spread.is_full = true;
    return spread;
  }
  z.insert(z.begin(), y.size() - std::min(z.size(), y.size()), 1);
  if (y.size() < 3 || z.size() != y.size() || z[1] != y[1] || (z[0] != y[0] && z[0] != 1)) return std::nullopt;
  for (size_t a = 2; a < y.size(); ++a) {
    if (z[a] != 1) return std::nullopt;
    spread.pixels *= y[a];
  }
  spread.images = y[0];
  spread.channels = y[1];
  spread.by_image = z[0] == y[0];
  return spread;
}

class QuantizedPair : public Kernel {
 public:
  QuantizedPair(const KernelCall& call, const Pair& pair, const Spread& spread)
      : formula_(formula_of(call, pair)),
        first_(pair.first.input),
        second_(pair.second.input),
        spread_(spread),
        is_channels_last_(call.variant->output(0) == Layout::channels_last),
        second_bytes_(static_cast<int64_t>(element_size(formula_.second))),
        y_bytes_(static_cast<int64_t>(element_size(formula_.y))) {
    threads_ = useful_threads(call.threads, spread.images * spread.channels * spread.pixels);
  }

  void run(const KernelArgs& args) const override {
    const auto* first = static_cast<const char*>(args.inputs[first_].raw());
    const auto* second = static_cast<const char*>(args.inputs[second_].raw());
    auto* const y = static_cast<char*>(args.outputs[0].raw());
    const auto compute = [&](int64_t at, int64_t second_at, int64_t count, bool is_one) {
      HWY_DYNAMIC_DISPATCH(compute_any)
      (formula_, {first + at, second + second_at * second_bytes_, y + at * y_bytes_, count, is_one});
    };
    if (spread_.is_full) {
      return for_shares(threads_, spread_.pixels,
                        [&](int64_t begin, int64_t end, int) { compute(begin, begin, end - begin, false); });
    }
    // Rows of channels, or of pixels.
    const int64_t rows_of_image = is_channels_last_ ? spread_.pixels : spread_.channels;
    const int64_t step = is_channels_last_ ? spread_.channels : spread_.pixels;
    for_shares(threads_, spread_.images * rows_of_image, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t image = spread_.by_image ? row / rows_of_image : 0;
        const int64_t channel = is_channels_last_ ? 0 : row % spread_.channels;
        compute(row * step, image * spread_.channels + channel, step, !is_channels_last_);
      }
    });
  }

 private:
  const PairFormula formula_;
  const size_t first_, second_;
  const Spread spread_;
  const bool is_channels_last_;
  const int64_t second_bytes_, y_bytes_;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  const auto pair = PairReader(call).read();
  if (!pair) return "not a quantized sum or product of two dequantized tensors";
  // Of a NaN, which they let through.
  const bool has_bounds = std::isfinite(pair->low) || std::isfinite(pair->high);
  if (has_bounds && call.inputs[pair->second.input].dtype() == DType::f32) return "bounds of what may be NaN";
  if (!spread_of(call, *pair)) return "a tensor that is broadcast along other axes than the pixels";
  if (call.outputs[0].shape().num_elements() == 0) return "a tensor without elements";
  if (call.outputs[0].dtype() == DType::f32 && pair->float_zero != pair->zero) return "another zero point behind it";
  const PairFormula formula = formula_of(call, *pair);
  const bool is_tame =
      std::isfinite(formula.a) && std::isfinite(formula.b) && std::isfinite(formula.c) &&
      (formula.is_product ? std::isnormal(formula.c) : std::isnormal(formula.a) && std::isnormal(formula.b));
  return is_tame ? "" : "scales whose quotients leave the normal numbers";
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  // By the scale of tile_variants(), whose programs take longer.
  double bytes = static_cast<double>(size_of(call.outputs[0]));
  for (const Type& type : call.inputs) bytes += static_cast<double>(size_of(type));
  const double us = 0.4 + bytes / 4e4;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  const Dims y = call.output_dims(0);
  const bool is_spread = call.input_dims(0) != call.input_dims(1);
  for (const Layout layout : unpadded_layouts(y)) {
    if (is_spread && layout != Layout::channels_last) continue;
    KernelVariant variant{.name = "", .inputs = {}, .outputs = {layout}, .cost_us = us};
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      variant.inputs.push_back(call.input_dims(k) == y ? layout : Layout::row_major);
    }
    result.push_back(std::move(variant));
  }
  return result;
}

Prepared prepare(const KernelCall& call) {
  const auto pair = PairReader(call).read();
  return {std::make_unique<QuantizedPair>(call, *pair, *spread_of(call, *pair)), ""};
}

}  // namespace

KernelDef quantized_pair_kernel() {
  return {.name = "cpu.quantized_pair_simd",
          .op = fused_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
