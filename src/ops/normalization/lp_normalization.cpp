// lp_normalization: y = x / norm(x) along `axis`, norm = sum |x| (p = 1) or sqrt(sum x^2) (p = 2). Where the norm is 0,
// y is 0.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "ops/broadcast_offsets.h"
#include "ops/defs.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const int64_t p = context.attributes().integer("p");
  context.require<ValueError>(p == 1 || p == 2, "p", fmt::format("expected 1 or 2, got {}", p));
  if (x.has_rank()) context.normalized_axis(context.attributes().integer("axis"), x.rank());
  context.set_output(0, context.dtype(0), x);
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const bool absolute = call.attributes.integer("p") == 1;
  const int64_t axis = call.attributes.integer("axis");
  Dims norm_dims(x.dims().begin(), x.dims().end());
  norm_dims[static_cast<size_t>(front_axis(axis, x.rank()))] = 1;
  const std::vector<int64_t> norm_of = broadcast_offsets(norm_dims, x.dims());
  std::vector<double> norms(static_cast<size_t>(x.num_elements()), 0.0);
  std::vector<double> values = real_values(x);
  for (size_t i = 0; i < values.size(); ++i) {
    norms[static_cast<size_t>(norm_of[i])] += absolute ? std::fabs(values[i]) : values[i] * values[i];
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const double sum = norms[static_cast<size_t>(norm_of[i])];
    values[i] = sum == 0 ? 0.0 : values[i] / (absolute ? sum : std::sqrt(sum));
  }
  store_reals(values, call.output(0));
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  return {.inputs = {draw_tensor(random, DType::f32, dims)},
          .attributes = {{"axis", draw(random, -rank, rank - 1)}, {"p", draw(random, 1, 2)}}};
}

// Of x / n: (g - dn/dx * sum(g y)) / n, with a slope of 0 where the norm is 0.
void vjp(VjpContext& c) {
  const Var x = c.in(0), y = c.out(0);
  const std::vector<int64_t> axes{c.attributes().integer("axis")};
  const bool absolute = c.attributes().integer("p") == 1;
  const Var norm = absolute ? reduce_l1(x, axes) : reduce_l2(x, axes);
  const Var zero = scalar_like(x, 0);
  const Var is_zero = equal(norm, zero);
  const Var inverse = where(is_zero, zero, reciprocal(where(is_zero, scalar_like(x, 1), norm)));
  c.set(0, (c.gy(0) - (absolute ? sign(x) : y) * reduce_sum(c.gy(0) * y, axes)) * inverse);
}

}  // namespace

Var lp_normalization(Var x, int64_t axis, int64_t p) {
  return apply(lp_normalization_def(), {x}, {{"axis", axis}, {"p", p}});
}

const OpDef& lp_normalization_def() {
  static const OpDef def{
      .name = "lp_normalization",
      .doc = "y = x / norm(x) along axis, with the sum of magnitudes (p = 1) or the Euclidean norm (p = 2).",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."}},
      .outputs = {{"y", "T", "Shape of x; 0 where the norm is 0."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"axis", AttributeType::integer, "The axis to normalise along.", int64_t{-1}},
                     {"p", AttributeType::integer, "1 or 2.", int64_t{2}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "LpNormalization"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
