// qlinear_conv: the convolution of quantized numbers, quantized again. With s = x_scale * w_scale / y_scale,
//   y = saturate(round((sum of (x - x_zero) * (w - w_zero) + b) * s) + y_zero).
// The bias is i32 at scale x_scale * w_scale. Padding stands for x_zero, so it adds nothing.
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/quantize.h"
#include "ops/defs.h"
#include "ops/quantize/granularity.h"
#include "ops/sample.h"
#include "ops/window/conv_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using ByteTypes = TypeList<int8_t, uint8_t>;
constexpr DTypeSet kBytes{DType::i8, DType::u8};

// Slots: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b.
constexpr size_t kW = 3;
constexpr size_t kBias = 8;

void infer(InferContext& context) {
  const Shape& w = context.shape(kW);
  const Dim channels = w.has_rank() && w.rank() > 0 ? w[0] : Dim::unknown();
  for (const size_t slot : {1, 2, 6, 7}) check_zero_point(context, slot, Dim(1));
  for (const size_t slot : {4, 5}) check_zero_point(context, slot, channels);
  context.set_output(0, context.dtype(7), infer_conv_shape(context, 0, kW, kBias));
}

// The one value, or that of channel m.
template <class T>
T at_channel(const TensorView& view, int64_t m) {
  return view.data<T>()[view.num_elements() > 1 ? m : 0];
}

template <class X, class W, class Y>
void convolve_quantized(const OpCall& call) {
  const ConvSizes sizes = conv_sizes(call.attributes, call.input(0), call.input(kW));
  const X* x = call.input(0).data<X>();
  const W* w = call.input(kW).data<W>();
  const int64_t x_zero = call.input(2).data<X>()[0];
  const int64_t y_zero = call.input(7).data<Y>()[0];
  const int32_t* bias = call.input(kBias).is_present() ? call.input(kBias).data<int32_t>() : nullptr;
  const double x_scale = call.input(1).data<float>()[0];
  const double y_scale = call.input(6).data<float>()[0];
  Y* out = call.output(0).mutable_data<Y>();
  convolve<int64_t>(
      sizes,
      [&](int64_t xi, int64_t wi, int64_t m) {
        return (x[xi] - x_zero) * (w[wi] - static_cast<int64_t>(at_channel<W>(call.input(5), m)));
      },
      [&](int64_t i, int64_t m, int64_t sum) {
        const double scale = x_scale * static_cast<double>(at_channel<float>(call.input(4), m)) / y_scale;
        const double value = static_cast<double>(sum + (bias ? bias[m] : 0)) * scale;
        out[i] =
            static_cast<Y>(quantize_value(value, y_zero, std::numeric_limits<Y>::min(), std::numeric_limits<Y>::max()));
      });
}

void reference(const OpCall& call) {
  dispatch<ByteTypes>(call.input(0).dtype(), [&]<class X>(TypeTag<X>) {
    dispatch<ByteTypes>(call.input(kW).dtype(), [&]<class W>(TypeTag<W>) {
      dispatch<ByteTypes>(call.output(0).dtype(), [&]<class Y>(TypeTag<Y>) { convolve_quantized<X, W, Y>(call); });
    });
  });
}

OpCost cost(const CostContext& context) { return conv_cost(context, 0, kW); }

OpSample sample(Random& random) {
  OpSample result = sample_conv(random);
  const Dims x = result.inputs[0].tensor().dims();
  const Dims w = result.inputs[1].tensor().dims();
  const bool has_bias = result.inputs.size() > 2;
  const DType x_dtype = draw_one_of(random, {DType::i8, DType::u8});
  const DType y_dtype = draw_one_of(random, {DType::i8, DType::u8});
  const Dims per_channel = draw_bool(random) ? Dims{w[0]} : Dims{};
  result.inputs = {draw_tensor(random, x_dtype, x, -100, 100),
                   draw_tensor(random, DType::f32, {}, 0.01, 0.1),
                   draw_tensor(random, x_dtype, {}, 0, 9),
                   draw_tensor(random, DType::i8, w, -100, 100),
                   draw_tensor(random, DType::f32, per_channel, 0.01, 0.1),
                   draw_tensor(random, DType::i8, per_channel, 0, 9),
                   draw_tensor(random, DType::f32, {}, 0.1, 1),
                   draw_tensor(random, y_dtype, {}, 0, 9)};
  if (has_bias) result.inputs.emplace_back(draw_tensor(random, DType::i32, {w[0]}, -100, 100));
  return result;
}

}  // namespace

Var qlinear_conv(const Quantized& x, const Quantized& w, Var y_scale, Var y_zero, Var b, const ConvOptions& options) {
  return apply(qlinear_conv_def(), {x.value, x.scale, x.zero_point, w.value, w.scale, w.zero_point, y_scale, y_zero, b},
               conv_options_attributes(options));
}

const OpDef& qlinear_conv_def() {
  static const OpDef def{
      .name = "qlinear_conv",
      .doc = "Convolution of quantized numbers, quantized again.",
      .inputs = {{"x", "T1", "[N, C, spatial...]."},
                 {"x_scale", "S", "Scalar."},
                 {"x_zero_point", "T1", "Scalar."},
                 {"w", "T2", "[M, C / group, kernel...]."},
                 {"w_scale", "S", "Scalar or [M]."},
                 {"w_zero_point", "T2", "Scalar or [M]."},
                 {"y_scale", "S", "Scalar."},
                 {"y_zero_point", "T3", "Scalar."},
                 {"b", "T4", "[M], at scale x_scale * w_scale.", Arity::optional}},
      .outputs = {{"y", "T3", "[N, M, spatial...]."}},
      .types = {{"T1", kBytes}, {"T2", kBytes}, {"T3", kBytes}, {"T4", {DType::i32}}, {"S", dtypes::kF32}},
      .attributes = conv_attributes(),
      .infer = infer,
      .reference = reference,
      .no_grad = "integers have no gradient",
      .cost = cost,
      .onnx = {{.name = "QLinearConv", .since = 10}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
