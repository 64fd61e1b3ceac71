// range: start, start + delta, start + 2 delta, ... up to but without limit; max(0, ceil((limit - start) / delta))
// elements. Floats are computed as start + i * delta in f64 and rounded once. delta must not be 0.
#include <cmath>
#include <limits>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using RangeTypes = Concat<FloatTypes, TypeList<int16_t, int32_t, int64_t>>;

int64_t count_integers(const InferContext& context, int64_t start, int64_t limit, int64_t delta) {
  context.require<ValueError>(delta != 0, "delta", "expected a number other than 0, got 0");
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  // The distance fits u64 whatever the signs are; wrapping subtraction gives it.
  const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : ~static_cast<uint64_t>(delta) + 1;
  const uint64_t count = (distance - 1) / step + 1;
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    context.fail<ValueError>("limit", fmt::format("expected at most 2^63 - 1 elements, got {}", count));
  }
  return static_cast<int64_t>(count);
}

int64_t count_reals(const InferContext& context, double start, double limit, double delta) {
  context.require<ValueError>(delta != 0, "delta", "expected a number other than 0, got 0");
  const double count = std::ceil((limit - start) / delta);
  if (!(count < 0x1p62)) {
    context.fail<ValueError>("limit", fmt::format("expected a finite number of elements, got {}", count));
  }
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

void infer(InferContext& context) {
  bool known = true;
  for (size_t slot = 0; slot < 3; ++slot) {
    const Tensor* value = context.known_value(slot);
    if (value && value->num_elements() != 1) {
      context.fail<ShapeError>("inputs", fmt::format("expected scalars, got {}", to_string(context.shape(slot))));
    }
    known = known && value;
  }
  const DType dtype = context.dtype(0);
  if (!known) return context.set_output(0, dtype, Shape{Dim::unknown()});
  int64_t count = 0;
  if (dtypes::kInteger.contains(dtype)) {
    const auto at = [&](size_t slot) { return context.known_value(slot)->to_i64()[0]; };
    count = count_integers(context, at(0), at(1), at(2));
  } else {
    const auto at = [&](size_t slot) { return context.known_value(slot)->to_f64()[0]; };
    count = count_reals(context, at(0), at(1), at(2));
  }
  context.set_output(0, dtype, {count});
}

void reference(const OpCall& call) {
  const TensorView y = call.output(0);
  dispatch<RangeTypes>(y.dtype(), [&]<class T>(TypeTag<T>) {
    using Step = std::conditional_t<kIsFloat<T>, double, uint64_t>;
    const auto start = static_cast<Step>(static_cast<ComputeType<T>>(*call.input(0).data<T>()));
    const auto delta = static_cast<Step>(static_cast<ComputeType<T>>(*call.input(2).data<T>()));
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      const Step value = start + static_cast<Step>(i) * delta;
      out[i] = static_cast<T>(value);
    }
  });
}

OpSample sample(Random& random) {
  if (draw_bool(random)) {
    const int64_t delta = draw_one_of<int64_t>(random, {-3, -1, 1, 2});
    return {
        .inputs = {Tensor::scalar(draw(random, -5, 5)), Tensor::scalar(draw(random, -5, 5)), Tensor::scalar(delta)}};
  }
  const float delta = draw_one_of<float>(random, {-1.5F, -0.5F, 0.25F, 2.0F});
  return {.inputs = {draw_tensor(random, DType::f32, {}), draw_tensor(random, DType::f32, {}), Tensor::scalar(delta)}};
}

// Element i moves with start, and i times as far as delta; limit only says how many there are.
void vjp(VjpContext& c) {
  c.set_none(1);
  const Var gradient = as_wide(c.gy(0));
  const auto total = [&](size_t slot, const Var& parts) {
    c.set(slot, cast(reshape_as(reduce_sum(parts, {}, false), c.in(slot)), c.in(slot).dtype()));
  };
  if (c.wants(0)) total(0, gradient);
  if (c.wants(2)) total(2, gradient * cast(linear_positions(gradient), gradient.dtype()));
}

// ONNX Runtime's own form steps by 1 when it is not told.
std::vector<ValueId> import_contrib(ForeignNode& node) {
  if (node.has_input(2)) return node.emit();
  node.inputs.resize(2);
  Graph& graph = node.graph;
  const ValueId one = node.constant(Tensor::scalar<int64_t>(1));
  node.inputs.push_back(graph.node(graph.add_node(cast_like_def(), {one, node.inputs[0]})).output(0));
  return node.emit();
}

// stash_type (opset 27) names the precision of the running sum; the formula here is exact enough for all of them.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.attributes.erase("stash_type");
  return node.emit();
}

}  // namespace

Var range(Var start, Var limit, Var delta) { return apply(range_def(), {start, limit, delta}); }

const OpDef& range_def() {
  static const OpDef def{
      .name = "range",
      .doc = "start, start + delta, ... up to but without limit.",
      .inputs = {{"start", "T", "A scalar: the first element."},
                 {"limit", "T", "A scalar: where to stop."},
                 {"delta", "T", "A scalar other than 0: the step."}},
      .outputs = {{"output", "T", "[max(0, ceil((limit - start) / delta))]."}},
      .types = {{"T", dtypes::kFloat | DTypeSet{DType::i16, DType::i32, DType::i64}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "Range", .since = 11, .import = import_onnx},
               {.name = "Range", .domain = "com.microsoft", .import = import_contrib, .import_only = true}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
