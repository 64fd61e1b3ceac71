// global_average_pool, global_max_pool, global_lp_pool: one value per channel, over all spatial positions of
// x [N, C, spatial...]. Over no positions the mean is NaN, the maximum -inf and the norm 0.
#include <cmath>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/checked_int.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  context.require<ShapeError>(x.rank() >= 2, "x", "expected [N, C, spatial...], got " + to_string(x));
  Shape y = x;
  for (int64_t axis = 2; axis < y.rank(); ++axis) y[axis] = 1;
  context.set_output(0, context.dtype(0), y);
}

void infer_lp(InferContext& context) {
  const int64_t p = context.attributes().integer("p");
  context.require<ValueError>(p >= 1, "p", "expected 1 or more, got " + std::to_string(p));
  infer(context);
}

// Calls reduce(elements of one channel as doubles: first, count) -> double for every channel.
template <class Reduce>
void reduce_channels(const OpCall& call, Reduce&& reduce) {
  const TensorView x = call.input(0);
  const int64_t positions = checked_product(x.dims().subspan(2), "global_pool");
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for (int64_t channel = 0; channel < call.output(0).num_elements(); ++channel) {
      out[channel] = T(reduce([&](int64_t i) { return static_cast<double>(in[channel * positions + i]); }, positions));
    }
  });
}

void average_reference(const OpCall& call) {
  reduce_channels(call, [](auto&& element, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += element(i);
    return sum / static_cast<double>(count);
  });
}

void max_reference(const OpCall& call) {
  reduce_channels(call, [](auto&& element, int64_t count) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < count; ++i) {
      const double value = element(i);
      if (value > largest || std::isnan(value)) largest = value;
    }
    return largest;
  });
}

void lp_reference(const OpCall& call) {
  const auto p = static_cast<double>(call.attributes.integer("p"));
  reduce_channels(call, [p](auto&& element, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::pow(std::fabs(element(i)), p);
    return std::pow(sum, 1 / p);
  });
}

// One flop per element read.
OpCost cost(const CostContext& context) {
  return {.flops = static_cast<double>(*context.inputs[0].shape().num_elements()), .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) { return {.inputs = {draw_tensor(random, DType::f32, draw_dims(random, 3, 5, 4))}}; }

OpSample sample_lp(Random& random) {
  OpSample result = sample(random);
  result.attributes.set("p", draw(random, 1, 3));
  return result;
}

void average_vjp(VjpContext& c) { c.set(0, expand_as(share_of_mean(c.gy(0), c.in(0), c.out(0)), c.in(0))); }

std::vector<int64_t> spatial_axes(VjpContext& c) {
  if (!c.in(0).shape().has_rank()) c.unsupported("its rule needs a known rank");
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < c.in(0).rank(); ++axis) axes.push_back(axis);
  return axes;
}

// Elements that are equally large share the gradient.
void max_vjp(VjpContext& c) {
  const Var is_taken = cast(equal(c.in(0), c.out(0)), c.in(0).dtype());
  const std::vector<int64_t> axes = spatial_axes(c);
  const Var share = axes.empty() ? c.gy(0) : divided_by_count(c.gy(0), reduce_sum(as_wide(is_taken), axes));
  c.set(0, is_taken * share);
}

// sign(x) |x|^(p-1) y^(1-p), and 0 where y is 0.
void lp_vjp(VjpContext& c) {
  const Var x = c.in(0), y = c.out(0);
  const auto exponent = static_cast<double>(c.attributes().integer("p") - 1);
  const Var ratio = abs(x) / where(equal(y, scalar_like(y, 0)), scalar_like(y, 1), y);
  c.set(0, c.gy(0) * (exponent == 0 ? sign(x) : sign(x) * pow(ratio, scalar_like(x, exponent))));
}

OpDef global_pool(std::string_view name, std::string_view doc, ReferenceFn reference, VjpFn vjp, OnnxName onnx) {
  return {
      .name = name,
      .doc = doc,
      .inputs = {{"x", "T", "[N, C, spatial...]."}},
      .outputs = {{"y", "T", "[N, C, 1...]: the rank of x."}},
      .types = {{"T", dtypes::kFloat}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .cost = cost,
      .onnx = {onnx},
      .sample = sample,
  };
}

}  // namespace

Var global_average_pool(Var x) { return apply(global_average_pool_def(), {x}); }
Var global_max_pool(Var x) { return apply(global_max_pool_def(), {x}); }
Var global_lp_pool(Var x, int64_t p) { return apply(global_lp_pool_def(), {x}, {{"p", p}}); }

const OpDef& global_average_pool_def() {
  static const OpDef def = global_pool("global_average_pool", "Mean over all spatial positions.", average_reference,
                                       average_vjp, {"GlobalAveragePool"});
  return def;
}

const OpDef& global_max_pool_def() {
  static const OpDef def = global_pool("global_max_pool", "Largest element over all spatial positions.", max_reference,
                                       max_vjp, {"GlobalMaxPool"});
  return def;
}

const OpDef& global_lp_pool_def() {
  static const OpDef def = [] {
    OpDef lp = global_pool("global_lp_pool", "(sum |x|^p)^(1/p) over all spatial positions.", lp_reference, lp_vjp,
                           {.name = "GlobalLpPool", .since = 2});
    lp.attributes = {{"p", AttributeType::integer, "Order of the norm, 1 or more.", int64_t{2}}};
    lp.infer = infer_lp;
    lp.sample = sample_lp;
    return lp;
  }();
  return def;
}

}  // namespace autograph
