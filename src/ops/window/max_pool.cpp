// max_pool: the largest element of each window; NaN propagates. Padding never wins: a window that lies in the padding
// alone gives the lowest value of the dtype (-inf for floats) and index -1.
//
// The optional second output tells where the maximum was: flat positions in x, spatial axes in row-major order
// (storage_order 0) or with the first spatial axis fastest (storage_order 1). The first of equal elements wins.
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/window/pool_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using PoolTypes = Concat<FloatTypes, TypeList<int8_t, uint8_t>>;

void infer(InferContext& context) {
  const Shape y = infer_pool_shape(context);
  context.set_output(0, context.dtype(0), y);
  context.set_output(1, DType::i64, y);
}

template <class T>
T lowest() {
  if constexpr (kIsFloat<T>) {
    return T(-std::numeric_limits<float>::infinity());
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

// A row-major offset inside one channel, counted with the first spatial axis fastest instead.
int64_t column_major(int64_t offset, std::span<const int64_t> extents) {
  int64_t result = 0;
  int64_t inner = 1;
  for (const int64_t extent : extents) inner *= extent;
  int64_t step = 1;
  for (const int64_t extent : extents) {
    inner /= extent;
    result += offset / inner % extent * step;
    step *= extent;
  }
  return result;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const auto axes = pool_windows(call.attributes, x);
  const bool by_column = call.attributes.integer("storage_order") == 1;
  int64_t* indices = call.has_output(1) ? call.output(1).mutable_data<int64_t>() : nullptr;
  dispatch<PoolTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for_each_pool(axes, x, [&](std::span<const int64_t>, std::span<const int64_t> taps, int64_t base, int64_t o) {
      const int64_t best = find_maximum(in + base, taps);
      out[o] = best < 0 ? lowest<T>() : in[base + best];
      if (!indices) return;
      indices[o] = best < 0 ? -1 : base + (by_column ? column_major(best, x.dims().subspan(2)) : best);
    });
  });
}

OpSample sample(Random& random) {
  OpSample result = sample_pool(random);
  result.attributes.set("storage_order", draw(random, 0, 1));
  result.num_outputs = static_cast<int>(draw(random, 1, 2));
  return result;
}

// All of the gradient goes to where the maximum was found. Where the model reads the positions anyway they are used.
void vjp(VjpContext& c) {
  if (!c.has_gy(0)) return c.set_none(0);
  Attributes attributes = c.attributes();
  const bool has_positions = c.num_outputs() > 1 && attributes.integer("storage_order") == 0;
  attributes.erase("storage_order");
  if (!has_positions) return c.set(0, apply(max_pool_grad_def(), {c.in(0), c.gy(0)}, attributes));
  const Var is_outside = less(c.out(1), scalar_like(c.out(1), 0));
  c.set(0, add_at(c.in(0), c.out(1), where(is_outside, scalar_like(c.gy(0), 0), c.gy(0))));
}

}  // namespace

Var max_pool(Var x, const PoolOptions& options) { return apply(max_pool_def(), {x}, pool_options_attributes(options)); }

const OpDef& max_pool_def() {
  static const OpDef def{
      .name = "max_pool",
      .doc = "Largest element of each window; optionally where it was.",
      .inputs = {{"x", "T", "[N, C, spatial...]."}},
      .outputs = {{"y", "T", "[N, C, spatial...]."},
                  {"indices", "I", "Flat positions of the maxima in x; shape of y.", Arity::optional}},
      .types = {{"T", dtypes::kFloat | DTypeSet{DType::i8, DType::u8}}, {"I", dtypes::kI64}},
      .attributes = pool_attributes({{"storage_order", AttributeType::integer,
                                      "1: indices count with the first spatial axis fastest.", int64_t{0}}}),
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .cost = pool_cost,
      .onnx = {{"MaxPool"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
