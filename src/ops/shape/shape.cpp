// shape: the extents of a tensor as a list, or those of axes start..end-1 (negative positions count from the end, both
// are clamped).
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

struct AxisRange {
  int64_t start;
  int64_t end;
};

AxisRange axis_range(const Attributes& attributes, int64_t rank) {
  const auto clamped = [rank](int64_t axis) { return std::clamp<int64_t>(front_axis(axis, rank), 0, rank); };
  const int64_t start = clamped(attributes.integer("start"));
  return {start, std::max(start, clamped(attributes.get_or<int64_t>("end", rank)))};
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  Dim length = Dim::unknown();
  if (x.has_rank()) {
    const AxisRange range = axis_range(context.attributes(), x.rank());
    length = range.end - range.start;
  }
  context.set_output(0, DType::i64, {length});
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const AxisRange range = axis_range(call.attributes, x.rank());
  std::copy(x.dims().begin() + range.start, x.dims().begin() + range.end, call.output(0).mutable_data<int64_t>());
}

OpSample sample(Random& random) {
  OpSample result = sample_unary(random);
  if (draw_bool(random)) result.attributes.set("start", draw(random, -5, 5));
  if (draw_bool(random)) result.attributes.set("end", draw(random, -5, 5));
  return result;
}

}  // namespace

Var shape(Var x) { return apply(shape_def(), {x}); }

const OpDef& shape_def() {
  static const OpDef def{
      .name = "shape",
      .doc = "The extents of axes start..end-1 as a list.",
      .inputs = {{"data", "T", "Any shape; only the shape is read."}},
      .outputs = {{"shape", "I", "[number of axes asked for]."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"start", AttributeType::integer, "First axis, clamped to -rank..rank.", int64_t{0}},
                     {"end", AttributeType::integer, "Axis behind the last one, clamped likewise; absent: the rank."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "the output depends on the shape alone",
      .traits = {.reads_shape_only = true},
      .onnx = {{.name = "Shape", .export_since = 15}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
