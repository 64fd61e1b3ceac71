// lrn (local response normalisation): y = x / (bias + alpha / size * s)^beta, where s is the sum of x^2 over `size`
// neighbouring channels: floor((size - 1) / 2) before and ceil((size - 1) / 2) after, as far as they exist.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const int64_t size = context.attributes().integer("size");
  context.require<ValueError>(size >= 1, "size", "expected 1 or more, got " + std::to_string(size));
  const Shape& x = context.shape(0);
  if (x.has_rank()) context.require<ShapeError>(x.rank() >= 2, "x", "expected [N, C, ...], got " + to_string(x));
  context.set_output(0, context.dtype(0), x);
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t size = call.attributes.integer("size");
  const double alpha = call.attributes.real("alpha") / static_cast<double>(size);
  const double beta = call.attributes.real("beta");
  const double bias = call.attributes.real("bias");
  const int64_t channels = x.dim(1);
  const int64_t inner = checked_product(x.dims().subspan(2), "lrn");
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t c = i / inner % channels;
      const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
      const int64_t last = c + std::min(channels - 1 - c, size / 2);  // size / 2 = ceil((size - 1) / 2)
      double sum = 0;
      for (int64_t k = first; k <= last; ++k) {
        const double value = static_cast<double>(in[i + (k - c) * inner]);
        sum += value * value;
      }
      out[i] = T(static_cast<double>(in[i]) / std::pow(bias + alpha * sum, beta));
    }
  });
}

OpSample sample(Random& random) {
  return {.inputs = {draw_tensor(random, DType::f32, draw_dims(random, 2, 4))},
          .attributes = {{"size", draw(random, 1, 5)}, {"alpha", 0.1F}, {"bias", 1.5F}}};
}

// 1 where channel b is in the window of channel a, [a, b] in the dtype of x.
Var neighbours(const Var& x, int64_t size) {
  const auto number = [&](int64_t value) { return constant_like(x, Tensor::scalar(value)); };
  const Var channels = range(number(0), extent_of(x, 1), number(1));
  const Var distance = channels - unsqueeze(channels, {1});
  const Var is_near = logical_and(greater_or_equal(distance, scalar_like(distance, -((size - 1) / 2))),
                                  less_or_equal(distance, scalar_like(distance, size / 2)));
  return cast(is_near, x.dtype());
}

void vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank()) c.unsupported("its rule needs a known rank");
  const int64_t size = c.attributes().integer("size");
  const Var matrix = neighbours(x, size);
  const double alpha = c.attributes().real("alpha") / static_cast<double>(size), beta = c.attributes().real("beta");
  const Var sums = einsum("ab,nb...->na...", {matrix, x * x});
  const Var base = sums * alpha + double{c.attributes().real("bias")};
  const Var scale = pow(base, scalar_like(x, -beta));
  const Var passed = einsum("ab,na...->nb...", {matrix, c.gy(0) * x * scale / base});
  c.set(0, c.gy(0) * scale - (2 * alpha * beta) * x * passed);
}

}  // namespace

Var lrn(Var x, int64_t size, const LrnOptions& options) {
  return apply(lrn_def(), {x},
               {{"size", size}, {"alpha", options.alpha}, {"beta", options.beta}, {"bias", options.bias}});
}

const OpDef& lrn_def() {
  static const OpDef def{
      .name = "lrn",
      .doc = "y = x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta.",
      .inputs = {{"x", "T", "[N, C, ...]."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"size", AttributeType::integer, "Number of channels summed over.", std::nullopt, true},
                     {"alpha", AttributeType::real, "Scale of the sum.", 1e-4F},
                     {"beta", AttributeType::real, "Exponent.", 0.75F},
                     {"bias", AttributeType::real, "Added to the scaled sum.", 1.0F}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{"LRN"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
