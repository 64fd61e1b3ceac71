// dropout: in training mode each element is dropped with probability `ratio` and the others are scaled by
// 1 / (1 - ratio); otherwise y = x. The mask tells which elements were kept: all of them outside training.
#include <algorithm>
#include <cstring>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/random.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/elementwise/convert.h"
#include "ops/random/generator.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr double kDefaultRatio = 0.5;

using DroppedTypes = Concat<FloatTypes, TypeList<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>>;
constexpr DTypeSet kDropped =
    dtypes::kFloat | DTypeSet{DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};

void require_scalar(const InferContext& context, size_t slot, std::string_view what) {
  if (!context.has_input(slot)) return;
  const Shape& shape = context.shape(slot);
  context.require<ShapeError>(!shape.has_rank() || shape.num_elements().value_or(1) == 1, what,
                              "expected one element, got shape " + to_string(shape));
}

void infer(InferContext& context) {
  require_scalar(context, 1, "ratio");
  require_scalar(context, 2, "training_mode");
  context.set_output(0, context.dtype(0), context.shape(0));
  context.set_output(1, DType::boolean, context.shape(0));
}

double ratio_of(const OpCall& call) {
  const TensorView given = call.input(1);
  double ratio = kDefaultRatio;
  if (given.is_present()) {
    dispatch<DroppedTypes>(given.dtype(), [&]<class T>(TypeTag<T>) { ratio = static_cast<double>(*given.data<T>()); });
  }
  AG_CHECK_USER(ratio >= 0 && ratio < 1, ValueError, "[dropout] ratio: expected 0 <= ratio < 1, got {}", ratio);
  return ratio;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  bool* mask = call.has_output(1) ? call.output(1).mutable_data<bool>() : nullptr;
  const bool training = call.input(2).is_present() && *call.input(2).data<bool>();
  const double ratio = training ? ratio_of(call) : 0;
  if (ratio == 0) {
    if (x.num_elements() != 0) std::memcpy(call.output(0).raw(), x.raw(), x.size_bytes());
    if (mask) std::fill_n(mask, x.num_elements(), true);
    return;
  }
  Generator generator(call.attributes);
  dispatch<DroppedTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    T* y = call.output(0).mutable_data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const bool kept = generator.uniform() >= ratio;
      const double scaled = kept ? static_cast<double>(x.data<T>()[i]) / (1 - ratio) : 0.0;
      y[i] = convert_number<T>(scaled, {});
      if (mask) mask[i] = kept;
    }
  });
}

// Before opset 12 the ratio was an attribute that did nothing at inference, and before 10 the mask had the dtype of x.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset >= 12) return node.emit();
  node.attributes.erase("ratio");
  std::vector<ValueId> outputs = node.emit();
  if (node.opset < 10 && outputs.size() > 1) {
    const DType dtype = node.input_type(0).dtype();
    outputs[1] = node.add(get_op("cast"), {outputs[1]}, {{"to", dtype}}).front();
  }
  return outputs;
}

OpSample sample(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"seed", draw(random, 0, 1000)}};
  call.num_outputs = static_cast<int>(draw(random, 1, 2));
  const bool has_mode = draw_bool(random);
  if (has_mode || draw_bool(random)) {
    call.inputs.emplace_back(draw_bool(random) ? Datum(draw_tensor(random, DType::f32, {}, 0, 0.9)) : Datum());
  }
  if (has_mode) call.inputs.emplace_back(draw_tensor(random, DType::boolean, {}));
  return call;
}

// The mask of the forward run says what was kept. Whether it was a run of training may be known only while running.
void vjp(VjpContext& c) {
  if (c.wants(1)) {
    c.unsupported(
        "it has no gradient with respect to the ratio, which says how many elements are dropped (leave it out of what "
        "is differentiated with respect to, or stop the gradient there)");
  }
  const Var gradient = c.gy(0);
  const Var zero = scalar_like(gradient, 0), one = scalar_like(gradient, 1);
  if (!c.has_input(2)) return c.set(0, gradient);
  const Var mask = c.num_outputs() > 1 ? c.out(1) : c.with_outputs(2)[1];
  const Var kept = c.has_input(1) ? 1 - cast(reshape(c.in(1), std::vector<int64_t>{}), gradient.dtype())
                                  : scalar_like(gradient, 1 - kDefaultRatio);
  const Var scale = where(reshape(c.in(2), std::vector<int64_t>{}), reciprocal(kept), one);
  c.set(0, where(mask, gradient * scale, zero));
}

}  // namespace

std::pair<Var, Var> dropout(Var x, Var ratio, Var training_mode, std::optional<int64_t> seed) {
  Attributes attributes;
  if (seed) attributes.set("seed", *seed);
  const std::vector<Var> outputs = apply_all(dropout_def(), {x, ratio, training_mode}, std::move(attributes), 2);
  return {outputs[0], outputs[1]};
}

const OpDef& dropout_def() {
  static const OpDef def{
      .name = "dropout",
      .doc = "y = training ? x * mask / (1 - ratio) : x.",
      .inputs = {{"x", "T", "Any shape."},
                 {"ratio", "R", "One element in [0, 1): how many to drop; missing: 0.5.", Arity::optional},
                 {"training_mode", "B", "One element: drop at all? Missing: no.", Arity::optional}},
      .outputs = {{"y", "T", "Shape of x."}, {"mask", "B", "Shape of x: which elements were kept.", Arity::optional}},
      .types = {{"T", kDropped}, {"R", kDropped}, {"B", dtypes::kBool}},
      .attributes = {{"seed", AttributeType::integer, "Makes every run drop the same elements."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.pure = false, .random = true},
      .onnx = {{.name = "Dropout", .since = 7, .import = import_onnx, .export_since = 12}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
