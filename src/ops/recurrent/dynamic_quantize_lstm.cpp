// dynamic_quantize_lstm: lstm (see there) whose weights are 8-bit numbers, (q - zero) * scale with a scale and a zero
// point for each direction or for each of its columns.
//
// A contrib op of quantized ONNX files. It means the lstm of the weights that the numbers stand for. Kernels may round
// x and h while running: ONNX Runtime does so to 8 bits of the range of the whole tensor.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/recurrent/recurrent.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Slot : size_t { kW = 1, kR = 2, kWScale = 8, kRScale = 10 };
constexpr size_t kLstmInputs = 8;

const RecurrentKind& kind() {
  static const RecurrentKind kind{4, true, {"Sigmoid", "Tanh", "Tanh"}, /*weights_by_input=*/true};
  return kind;
}

// Scales and zero points of W or R: [directions] or [directions, columns].
void check_quantization(const InferContext& context, size_t weights, size_t scale) {
  const Shape& w = context.shape(weights);
  for (const size_t slot : {scale, scale + 1}) {
    const Shape& shape = context.shape(slot);
    if (!shape.has_rank() || !w.has_rank()) continue;
    context.require<ShapeError>(shape.rank() == 1 || shape.rank() == 2, "scales",
                                fmt::format("expected rank 1 or 2, got {}", to_string(shape)));
    same_extent(context, w[0], shape[0], "scales");
    if (shape.rank() == 2) same_extent(context, w[2], shape[1], "scales");
  }
  const Shape &scales = context.shape(scale), &zeros = context.shape(scale + 1);
  if (!scales.has_rank() || !zeros.has_rank()) return;
  context.require<ShapeError>(scales.rank() == zeros.rank(), "zero points",
                              fmt::format("expected the rank of scales, {}, got {}", scales.rank(), zeros.rank()));
}

void infer(InferContext& context) {
  infer_recurrent(context, kind());
  check_quantization(context, kW, kWScale);
  check_quantization(context, kR, kRScale);
}

std::vector<Var> decompose(DecomposeContext& context) {
  const auto real = [&](size_t weights, size_t scale) {
    const auto spread = [](Var v) {
      return unsqueeze(v, v.shape().rank() == 1 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
    };
    const auto as_float = [](Var v) { return cast(v, DType::f32); };
    const std::vector<Var>& in = context.inputs;
    const Var shifted = sub(as_float(in[weights]), as_float(spread(in[scale + 1])));
    return transpose(mul(shifted, spread(in[scale])), {0, 2, 1});
  };
  std::vector<Var> inputs(context.inputs.begin(), context.inputs.begin() + kLstmInputs);
  inputs[kW] = real(kW, kWScale);
  inputs[kR] = real(kR, kRScale);
  return apply_all(lstm_def(), inputs, context.attributes, static_cast<int>(context.num_outputs));
}

// A sample of lstm with other weights.
OpSample sample(Random& random) {
  OpSample result = lstm_def().sample(random);
  result.num_outputs = std::min(result.num_outputs, 3);
  const int64_t batch_axis = result.attributes.flag("layout") ? 0 : 1;
  const Dims x = result.inputs[0].tensor().dims(), r = result.inputs[kR].tensor().dims();
  const int64_t batch = x[static_cast<size_t>(batch_axis)];
  result.inputs[0] = draw_tensor(random, DType::f32, {x[static_cast<size_t>(1 - batch_axis)], batch, x[2]}, -1, 1);
  for (const size_t slot : {size_t{5}, size_t{6}}) {
    if (result.inputs[slot].is_present()) {
      result.inputs[slot] = draw_tensor(random, DType::f32, {r[0], batch, r[2]}, -1, 1);
    }
  }
  const DType dtype = draw_bool(random) ? DType::i8 : DType::u8;
  const Dims quantization = draw_bool(random) ? Dims{r[0]} : Dims{r[0], r[1]};
  const auto bytes = [&](Dims dims) { return draw_tensor(random, dtype, std::move(dims), 0, 100); };
  result.inputs[kW] = bytes({r[0], x[2], r[1]});
  result.inputs[kR] = bytes({r[0], r[2], r[1]});
  result.inputs.resize(kLstmInputs);
  for (int k = 0; k < 2; ++k) {
    result.inputs.emplace_back(draw_tensor(random, DType::f32, quantization, 0.001, 0.02));
    result.inputs.emplace_back(bytes(quantization));
  }
  result.attributes.erase("layout");
  return result;
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> list = lstm_def().attributes;
  std::erase_if(list, [](const AttributeSpec& spec) { return spec.name == "layout"; });
  return list;
}

std::vector<Param> inputs() {
  std::vector<Param> list = lstm_def().inputs;
  list[kW] = {"w", "Q", "[directions, input, 4 * hidden], gates i, o, f, c."};
  list[kR] = {"r", "Q", "[directions, hidden, 4 * hidden]."};
  list.push_back({"w_scale", "T", "[directions] or [directions, 4 * hidden]."});
  list.push_back({"w_zero_point", "Q", "Shape of w_scale."});
  list.push_back({"r_scale", "T", "As w_scale, for r."});
  list.push_back({"r_zero_point", "Q", "Shape of r_scale."});
  return list;
}

// Those of ONNX: without the sums.
std::vector<Param> outputs() {
  const std::vector<Param>& list = lstm_def().outputs;
  return {list.begin(), list.begin() + 3};
}

}  // namespace

std::vector<Var> dynamic_quantize_lstm(Var x, Var w, Var r, Var b, Var w_scale, Var w_zero, Var r_scale, Var r_zero,
                                       Attributes attributes) {
  return apply_all(dynamic_quantize_lstm_def(), {x, w, r, b, {}, {}, {}, {}, w_scale, w_zero, r_scale, r_zero},
                   std::move(attributes), 3);
}

const OpDef& dynamic_quantize_lstm_def() {
  static const OpDef def{
      .name = "dynamic_quantize_lstm",
      .doc = "lstm with the weights (w - w_zero_point) * w_scale and (r - r_zero_point) * r_scale.",
      .inputs = inputs(),
      .outputs = outputs(),
      .types = {{"T", DTypeSet{DType::f32}}, {"I", DTypeSet{DType::i32}}, {"Q", DTypeSet{DType::i8, DType::u8}}},
      .attributes = attributes(),
      .infer = infer,
      .decompose = decompose,
      .no_grad = "its inputs are rounded to bytes",
      .cost = recurrent_cost,
      .onnx = {{.name = "DynamicQuantizeLSTM", .domain = "com.microsoft"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
