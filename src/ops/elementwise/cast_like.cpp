// cast_like: cast(x) to the dtype of `like`, whose elements are never read.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, context.dtype(1), context.shape(0)); }

std::vector<Var> decompose(DecomposeContext& context) {
  Attributes attributes = context.attributes;
  attributes.set("to", context.inputs[1].dtype());
  return {apply(cast_def(), {context.inputs[0]}, std::move(attributes))};
}

// saturate came with opset 19, round_mode with 24.
void export_onnx(ExportNode& to) {
  if (to.opset < 24) to.attributes.erase("round_mode");
  if (to.opset < 19) to.attributes.erase("saturate");
}

OpSample sample(Random& random) {
  const DType to = draw_one_of(random, {DType::f32, DType::i64, DType::f16, DType::boolean});
  return {.inputs = {draw_tensor(random, DType::f32, draw_dims(random), -9, 9), draw_tensor(random, to, {2}, 0, 1)},
          .attributes = {{"saturate", draw(random, 0, 1)}}};
}

}  // namespace

Var cast_like(Var x, Var like) { return apply(cast_like_def(), {x, like}); }

const OpDef& cast_like_def() {
  static const OpDef def{
      .name = "cast_like",
      .doc = "y = the elements of x as the dtype of `like`.",
      .inputs = {{"x", "S", "Any shape."}, {"like", "T", "Any shape; only its dtype counts."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"S", cast_def().types[0].allowed}, {"T", cast_def().types[0].allowed}},
      .attributes = {*find_attribute(cast_def(), "saturate"), *find_attribute(cast_def(), "round_mode")},
      .infer = infer,
      .decompose = decompose,
      .traits = {.elementwise = true},
      .onnx = {{.name = "CastLike", .since = 15, .export_node = export_onnx}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
