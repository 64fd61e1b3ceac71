// lp_pool: (sum of |x|^p over the window)^(1/p); padding adds 0.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/window/conv_gradients.h"
#include "ops/window/pool_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const int64_t p = context.attributes().integer("p");
  context.require<ValueError>(p >= 1, "p", "expected 1 or more, got " + std::to_string(p));
  context.set_output(0, context.dtype(0), infer_pool_shape(context));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const auto p = static_cast<double>(call.attributes.integer("p"));
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for_each_pool(pool_windows(call.attributes, x), x,
                  [&](std::span<const int64_t>, std::span<const int64_t> taps, int64_t base, int64_t o) {
                    double sum = 0;
                    for (const int64_t tap : taps) sum += std::pow(std::fabs(static_cast<double>(in[base + tap])), p);
                    out[o] = T(std::pow(sum, 1 / p));
                  });
  });
}

OpSample sample(Random& random) {
  OpSample result = sample_pool(random);
  result.attributes.set("p", draw(random, 1, 3));
  return result;
}

// sign(x) |x|^(p-1) y^(1-p), and 0 where y is 0.
void vjp(VjpContext& c) {
  const Var x = c.in(0), y = c.out(0);
  const int64_t p = c.attributes().integer("p");
  const WindowSpec spec = pool_spec(c);
  if (p == 1) return c.set(0, sign(x) * sum_of_windows(c.gy(0), spec, x));
  const Var zero = scalar_like(y, 0);
  const Var is_zero = equal(y, zero);
  const auto exponent = static_cast<double>(p - 1);
  const Var scale = pow(where(is_zero, scalar_like(y, 1), y), scalar_like(y, -exponent));
  const Var slope = p == 2 ? x : sign(x) * pow(abs(x), scalar_like(x, exponent));
  c.set(0, slope * sum_of_windows(where(is_zero, zero, c.gy(0) * scale), spec, x));
}

}  // namespace

Var lp_pool(Var x, int64_t p, const PoolOptions& options) {
  Attributes attributes = pool_options_attributes(options);
  attributes.set("p", p);
  return apply(lp_pool_def(), {x}, attributes);
}

const OpDef& lp_pool_def() {
  static const OpDef def{
      .name = "lp_pool",
      .doc = "(sum |x|^p)^(1/p) over each window.",
      .inputs = {{"x", "T", "[N, C, spatial...]."}},
      .outputs = {{"y", "T", "[N, C, spatial...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = pool_attributes({{"p", AttributeType::integer, "Order of the norm, 1 or more.", int64_t{2}}}),
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .cost = pool_cost,
      .onnx = {{.name = "LpPool", .since = 2, .export_since = 18}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
