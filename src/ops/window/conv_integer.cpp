// conv_integer: the convolution of (x - x_zero_point) with (w - w_zero_point), accumulated in 32 bits (wrapping).
// Padding stands for x_zero_point, so it adds nothing.
#include "autograph/op_def.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/window/conv_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using ByteTypes = TypeList<int8_t, uint8_t>;
constexpr DTypeSet kBytes{DType::i8, DType::u8};

void infer(InferContext& context) {
  check_zero_point(context, 2, Dim(1));
  const Shape& w = context.shape(1);
  check_zero_point(context, 3, w.has_rank() && w.rank() > 0 ? w[0] : Dim::unknown());
  context.set_output(0, DType::i32, infer_conv_shape(context, 0, 1, context.num_inputs()));
}

void reference(const OpCall& call) {
  const ConvSizes sizes = conv_sizes(call.attributes, call.input(0), call.input(1));
  int32_t* out = call.output(0).mutable_data<int32_t>();
  dispatch<ByteTypes>(call.input(0).dtype(), [&]<class X>(TypeTag<X>) {
    dispatch<ByteTypes>(call.input(1).dtype(), [&]<class W>(TypeTag<W>) {
      const X* x = call.input(0).data<X>();
      const W* w = call.input(1).data<W>();
      const int64_t x_zero = call.input(2).is_present() ? call.input(2).data<X>()[0] : 0;
      const TensorView zero = call.input(3);
      const bool per_channel = zero.is_present() && zero.num_elements() > 1;
      const auto w_zero = [&](int64_t m) -> int64_t {
        return zero.is_present() ? zero.data<W>()[per_channel ? m : 0] : 0;
      };
      convolve<int64_t>(
          sizes, [&](int64_t xi, int64_t wi, int64_t m) { return (x[xi] - x_zero) * (w[wi] - w_zero(m)); },
          [&](int64_t i, int64_t, int64_t sum) { out[i] = static_cast<int32_t>(sum); });
    });
  });
}

OpCost cost(const CostContext& context) { return conv_cost(context, 0, 1); }

OpSample sample(Random& random) {
  OpSample result = sample_conv(random);
  const DType x_dtype = draw_one_of(random, {DType::i8, DType::u8});
  const DType w_dtype = draw_one_of(random, {DType::i8, DType::u8});
  const Dims x = result.inputs[0].tensor().dims();
  const Dims w = result.inputs[1].tensor().dims();
  result.inputs = {draw_tensor(random, x_dtype, x, -100, 100), draw_tensor(random, w_dtype, w, -100, 100)};
  const int64_t zero_points = draw(random, 0, 2);
  if (zero_points >= 1) result.inputs.emplace_back(draw_tensor(random, x_dtype, {}, 0, 9));
  if (zero_points == 2) result.inputs.emplace_back(draw_tensor(random, w_dtype, {w[0]}, 0, 9));
  return result;
}

}  // namespace

Var conv_integer(Var x, Var w, Var x_zero, Var w_zero, const ConvOptions& options) {
  return apply(conv_integer_def(), {x, w, x_zero, w_zero}, conv_options_attributes(options));
}

const OpDef& conv_integer_def() {
  static const OpDef def{
      .name = "conv_integer",
      .doc = "Convolution of (x - x_zero_point) with (w - w_zero_point) in 32-bit integers.",
      .inputs = {{"x", "T1", "[N, C, spatial...]."},
                 {"w", "T2", "[M, C / group, kernel...]."},
                 {"x_zero_point", "T1", "Scalar; default 0.", Arity::optional},
                 {"w_zero_point", "T2", "Scalar or [M]; default 0.", Arity::optional}},
      .outputs = {{"y", "T3", "[N, M, spatial...]."}},
      .types = {{"T1", kBytes}, {"T2", kBytes}, {"T3", {DType::i32}}},
      .attributes = conv_attributes(),
      .infer = infer,
      .reference = reference,
      .no_grad = "integers have no gradient",
      .cost = cost,
      .onnx = {{.name = "ConvInteger", .since = 10}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
