// max_pool_grad: what flows into the input of max_pool. Each gy goes to where its window has its maximum; of equal
// elements the first one counts, the first NaN wins, and a window in the padding alone has none.
//
// x is asked instead of positions: to find them again takes less than to write and read them, and the pool keeps its
// fast kernels.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/window/pool_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape y = infer_pool_shape(context);
  const Shape& gy = context.shape(1);
  if (gy.has_rank()) {
    context.require_rank(1, y.rank());
    for (int64_t axis = 0; axis < y.rank(); ++axis) {
      const bool fits = !y[axis].is_known() || !gy[axis].is_known() || y[axis].value() == gy[axis].value();
      context.require<ShapeError>(fits, "gy", fmt::format("expected {}, got {}", to_string(y), to_string(gy)));
    }
  }
  context.set_output(0, context.dtype(0), context.shape(0));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const auto axes = pool_windows(call.attributes, x);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    const T* gy = call.input(1).data<T>();
    std::vector<double> sums(static_cast<size_t>(x.num_elements()), 0.0);
    for_each_pool(axes, x, [&](std::span<const int64_t>, std::span<const int64_t> taps, int64_t base, int64_t o) {
      const int64_t best = find_maximum(in + base, taps);
      if (best >= 0) sums[static_cast<size_t>(base + best)] += static_cast<double>(gy[o]);
    });
    T* out = call.output(0).mutable_data<T>();
    for (size_t i = 0; i < sums.size(); ++i) out[i] = T(sums[i]);
  });
}

// Flat positions of the maxima in x, -1 where there is none.
Var positions_of_maxima(const Var& x, Attributes attributes) {
  attributes.set("storage_order", int64_t{0});
  return apply_all(max_pool_def(), {x}, attributes, 2)[1];
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var& x = context.inputs[0];
  const Var& gy = context.inputs[1];
  const Var indices = positions_of_maxima(x, context.attributes);
  const Var is_outside = less(indices, scalar_like(indices, 0));
  return {add_at(x, indices, where(is_outside, scalar_like(gy, 0), gy))};
}

// Linear in gy: what was added to an element comes back from it. Where x is smooth, the positions stay.
void vjp(VjpContext& c) {
  if (c.wants(0)) c.set_none(0);
  if (!c.wants(1)) return;
  const Var indices = positions_of_maxima(c.in(0), c.attributes());
  const Var is_outside = less(indices, scalar_like(indices, 0));
  const Var inside = where(is_outside, scalar_like(indices, 0), indices);
  const Var taken = gather(reshape(c.gy(0), {-1}), inside);
  c.set(1, where(is_outside, scalar_like(taken, 0), taken));
}

OpCost cost(const CostContext& context) {
  double taps = 1;
  for (const int64_t extent : context.attributes.integers("kernel_shape")) taps *= static_cast<double>(extent);
  return {.flops = 2 * taps * static_cast<double>(*context.inputs[1].shape().num_elements()),
          .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  OpSample result = sample_pool(random);
  const Tensor& x = result.inputs[0].tensor();
  Dims gy{x.dims()[0], x.dims()[1]};
  for (const WindowAxis& axis : pool_windows(result.attributes, x.view())) gy.push_back(axis.out);
  result.inputs.emplace_back(draw_tensor(random, DType::f32, gy));
  return result;
}

}  // namespace

Var max_pool_grad(Var x, Var gy, const PoolOptions& options) {
  return apply(max_pool_grad_def(), {x, gy}, pool_options_attributes(options));
}

const OpDef& max_pool_grad_def() {
  static const OpDef def{
      .name = "max_pool_grad",
      .doc = "Gradient of max_pool: each gy is added where its window has its first maximum.",
      .inputs = {{"x", "T", "[N, C, spatial...], the input of the pool."},
                 {"gy", "T", "What flows into its output, in the shape of that."}},
      .outputs = {{"gx", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = pool_attributes(),
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .vjp = vjp,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
