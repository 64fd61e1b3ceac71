// prelu: y = x < 0 ? slope * x : x; slope broadcasts to the shape of x, never the other way. Integers wrap.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using PreluTypes = Concat<FloatTypes, TypeList<int32_t, int64_t, uint32_t, uint64_t>>;

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& slope = context.shape(1);
  if (x.has_rank() && slope.has_rank()) {
    const int64_t shift = x.rank() - slope.rank();
    bool fits = shift >= 0;
    for (int64_t axis = 0; fits && axis < slope.rank(); ++axis) {
      const Dim& extent = slope[axis];
      fits = extent.value_or(1) == 1 || !x[axis + shift].is_known() || extent == x[axis + shift];
    }
    context.require<ShapeError>(fits, "slope",
                                "expected a shape that broadcasts to " + to_string(x) + ", got " + to_string(slope));
  }
  context.set_output(0, context.dtype(0), x);
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, dims))}};
}

// At 0 the slope is that of the left branch.
void vjp(VjpContext& c) {
  const Var x = c.in(0);
  const Var is_above = greater(x, scalar_like(x, 0));
  if (c.wants(0)) c.set(0, where(is_above, c.gy(0), c.gy(0) * c.in(1)));
  if (c.wants(1)) c.set(1, where(is_above, scalar_like(x, 0), c.gy(0) * x));
}

}  // namespace

Var prelu(Var x, Var slope) { return apply(prelu_def(), {x, slope}); }

const OpDef& prelu_def() {
  static const OpDef def{
      .name = "prelu",
      .doc = "y = x < 0 ? slope * x : x.",
      .inputs = {{"x", "T", "Any shape."}, {"slope", "T", "A shape that broadcasts to that of x."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}}},
      .infer = infer,
      .scalar = formulas::kLoops<formulas::Prelu, PreluTypes>,
      .vjp = vjp,
      .traits = {.elementwise = true, .in_place_ok = true},
      .onnx = {{.name = "PRelu", .since = 7}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
