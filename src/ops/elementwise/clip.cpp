// clip: y = min(max(x, low), high), so high wins when low > high. Bounds may be missing; NaN in x stays NaN.
#include <cmath>
#include <limits>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/number.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/gradients.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Missing bounds are null, or not in the list at all.
template <class T>
void clip_loop_of(const Attributes&, std::span<const void* const> inputs, std::span<const int64_t> steps, void* output,
                  int64_t count) {
  using C = ComputeType<T>;
  const T* x = static_cast<const T*>(inputs[0]);
  const T* low = inputs.size() > 1 ? static_cast<const T*>(inputs[1]) : nullptr;
  const T* high = inputs.size() > 2 ? static_cast<const T*>(inputs[2]) : nullptr;
  T* out = static_cast<T*>(output);
  for (int64_t i = 0; i < count; ++i) {
    auto y = static_cast<C>(x[i * steps[0]]);
    if (low) y = formulas::Max::of(y, static_cast<C>(*low));
    if (high) y = formulas::Min::of(y, static_cast<C>(*high));
    out[i] = static_cast<T>(y);
  }
}

ScalarLoop clip_loop(std::span<const DType> inputs, DType) {
  ScalarLoop loop = nullptr;
  try_dispatch(NumericTypes{}, inputs[0], [&]<class T>(TypeTag<T>) { loop = clip_loop_of<T>; });
  return loop;
}

// Some exporters write bounds of shape [1]; that is harmless unless x itself is a scalar.
void check_bound(const InferContext& context, size_t slot, std::string_view what) {
  if (!context.has_input(slot) || !context.shape(slot).has_rank()) return;
  const Shape& bound = context.shape(slot);
  const bool scalar = bound.rank() == 0;
  const bool one_element =
      bound.rank() == 1 && bound[0].value_or(1) == 1 && !(context.shape(0).has_rank() && context.shape(0).rank() == 0);
  context.require<ShapeError>(scalar || one_element, what, "expected a scalar, got " + to_string(bound));
}

void infer(InferContext& context) {
  check_bound(context, 1, "low");
  check_bound(context, 2, "high");
  context.set_output(0, context.dtype(0), context.shape(0));
}

// Before opset 11 the bounds were attributes.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset >= 11) return node.emit();
  const DType dtype = node.input_type(0).dtype();
  size_t slot = 1;
  for (const char* name : {"min", "max"}) {
    if (const float* bound = node.attributes.find_as<float>(name)) {
      Tensor value;
      dispatch<NumericTypes>(dtype, [&]<class T>(TypeTag<T>) { value = Tensor::scalar(from_double<T>(*bound)); });
      node.set_input(slot, node.constant(std::move(value)));
      node.attributes.erase(name);
    }
    ++slot;
  }
  return node.emit();
}

OpSample sample(Random& random) {
  OpSample call = sample_unary(random);
  const bool has_low = draw_bool(random);
  const bool has_high = draw_bool(random);
  if (has_low || has_high) call.inputs.emplace_back();
  if (has_low) call.inputs[1] = draw_tensor(random, DType::f32, {}, -1.5, 0.5);
  if (has_high) call.inputs.emplace_back(draw_tensor(random, DType::f32, {}, 0.0, 1.5));
  return call;
}

// The share of the gradient of max({a, b}) that a gets; of min({a, b}) what b gets.
Var share_of_larger(const Var& a, const Var& b) {
  return cast(greater(a, b), a.dtype()) + 0.5 * cast(equal(a, b), a.dtype());
}

// Of min(max(x, low), high), whose operands share the gradient where they are equal.
void learning_bounds_vjp(VjpContext& c) {
  const Var x = c.in(0);
  const auto set_bound = [&](size_t slot, const Var& gradient) {
    c.set(slot, reshape_as(reduce_sum(gradient), c.in(slot)));
  };
  Var passed = c.gy(0);
  if (c.has_input(2)) {
    const Var share = share_of_larger(c.in(2), c.has_input(1) ? max({x, c.in(1)}) : x);
    if (c.wants(2)) set_bound(2, times_slope(passed, 1 - share));
    passed = times_slope(passed, share);
  }
  if (c.has_input(1)) {
    const Var share = share_of_larger(x, c.in(1));
    if (c.wants(1)) set_bound(1, times_slope(passed, 1 - share));
    passed = times_slope(passed, share);
  }
  if (c.wants(0)) c.set(0, passed);
}

// At a bound that is a number x is held, as PyTorch has it; with bounds that are tensors it shares the gradient.
void vjp(VjpContext& c) {
  if (c.wants(1) || c.wants(2)) return learning_bounds_vjp(c);
  const Var x = c.in(0), zero = scalar_like(x, 0);
  Var gradient = c.gy(0);
  if (c.has_input(1)) gradient = where(greater(x, c.in(1)), gradient, zero);
  if (c.has_input(2)) gradient = where(less(x, c.in(2)), gradient, zero);
  c.set(0, gradient);
}

}  // namespace

Var clip(Var x, Var low, Var high) { return apply(clip_def(), {x, low, high}); }

const OpDef& clip_def() {
  static const OpDef def{
      .name = "clip",
      .doc = "y = min(max(x, low), high).",
      .inputs = {{"x", "T", "Any shape."},
                 {"low", "T", "Scalar; missing: no lower bound.", Arity::optional},
                 {"high", "T", "Scalar; missing: no upper bound.", Arity::optional}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kNumeric}},
      .infer = infer,
      .scalar = clip_loop,
      .vjp = vjp,
      .traits = {.elementwise = true, .in_place_ok = true},
      .onnx = {{.name = "Clip", .since = 6, .import = import_onnx, .export_since = 11}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
