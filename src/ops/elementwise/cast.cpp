// cast: the elements of x as dtype `to`, for every pair of real dtypes, bool and strings. convert.h says what happens
// to numbers that the target cannot hold.
//
// Strings: numbers are read as decimal text ("INF", "-INF" and "NaN" in any case; anything else throws ValueError) and
// written as the shortest text that reads back; bools as 0 and 1.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/convert.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using RealTypes = Concat<NumericTypes, SmallTypes, TypeList<bool>>;
using CastTypes = Concat<RealTypes, TypeList<std::string>>;

constexpr DTypeSet kCastable = dtypes::kNumeric | dtypes::kBool | dtypes::kString | dtypes::kFloat8 | dtypes::kLowBit;

ConvertOptions options_of(const Attributes& attributes) {
  const std::string& mode = attributes.text("round_mode");
  const ScaleRounding rounding = mode == "up"     ? ScaleRounding::up
                                 : mode == "down" ? ScaleRounding::down
                                                  : ScaleRounding::nearest;
  return {attributes.flag("saturate"), rounding};
}

template <class Out, class In>
Out convert(const In& x, const ConvertOptions& options) {
  if constexpr (std::is_same_v<In, Out>) {
    return x;
  } else if constexpr (std::is_same_v<In, std::string>) {
    return parse_number<Out>(x, options);
  } else if constexpr (std::is_same_v<Out, std::string>) {
    if constexpr (kIsFloat<In> && !std::is_same_v<In, double>) {
      return format_number(static_cast<float>(x));
    } else {
      return format_number(static_cast<WideType<In>>(x));
    }
  } else {
    return convert_number<Out>(static_cast<WideType<In>>(x), options);
  }
}

template <class In, class Out>
void cast_loop_of(const Attributes& attributes, std::span<const void* const> inputs, std::span<const int64_t> steps,
                  void* output, int64_t count) {
  const ConvertOptions options = options_of(attributes);
  const In* x = static_cast<const In*>(inputs[0]);
  Out* out = static_cast<Out*>(output);
  for (int64_t i = 0; i < count; ++i) out[i] = convert<Out>(x[i * steps[0]], options);
}

ScalarLoop cast_loop(std::span<const DType> inputs, DType output) {
  ScalarLoop loop = nullptr;
  try_dispatch(CastTypes{}, inputs[0], [&]<class In>(TypeTag<In>) {
    try_dispatch(CastTypes{}, output, [&]<class Out>(TypeTag<Out>) { loop = cast_loop_of<In, Out>; });
  });
  return loop;
}

void infer(InferContext& context) { context.set_output(0, context.attributes().get<DType>("to"), context.shape(0)); }

// saturate came with opset 19, round_mode with 24.
void export_onnx(ExportNode& to) {
  if (to.opset < 24) to.attributes.erase("round_mode");
  if (to.opset < 19) to.attributes.erase("saturate");
}

OpSample sample(Random& random) {
  const DType from = draw_one_of(random, {DType::f32, DType::f16, DType::i32, DType::u8, DType::boolean, DType::f64});
  const DType to = draw_one_of(random, {DType::f32, DType::bf16, DType::i64, DType::i8, DType::boolean, DType::f16,
                                        DType::f8e4m3fn, DType::f8e5m2});
  return {.inputs = {draw_tensor(random, from, draw_dims(random), from == DType::u8 ? 0 : -9, 9)},
          .attributes = {{"to", to}, {"saturate", draw(random, 0, 1)}}};
}

}  // namespace

Var cast(Var x, DType to) { return apply(cast_def(), {x}, {{"to", to}}); }

const OpDef& cast_def() {
  static const OpDef def{
      .name = "cast",
      .doc = "y = the elements of x as dtype `to`.",
      .inputs = {{"x", "S", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"S", kCastable}, {"T", kCastable}},
      .attributes = {{.name = "to", .type = AttributeType::dtype, .doc = "The dtype of y.", .required = true},
                     {"saturate", AttributeType::integer,
                      "To 8-bit floats: 1 clamps what is out of range, 0 makes it infinite or NaN.", int64_t{1}},
                     {.name = "round_mode",
                      .type = AttributeType::text,
                      .doc = "To f8e8m0: which power of two.",
                      .default_value = std::string("up"),
                      .allowed = {"up", "down", "nearest"}}},
      .infer = infer,
      .scalar = cast_loop,
      .vjp = [](VjpContext& c) { c.set(0, cast(c.gy(0), c.in(0).dtype())); },
      .traits = {.elementwise = true},
      .onnx = {{.name = "Cast", .since = 6, .export_node = export_onnx}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
