// max_unpool: puts every x back to the position that max_pool's indices name, and zeros elsewhere. Without
// output_shape an output extent is (in - 1) * stride + kernel - pads. Indices are flat positions in a tensor of that
// shape; when output_shape is larger, the result is padded with zeros at the end of each axis.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/window/window_geometry.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

Shape unpooled_shape(const InferContext& context, const Shape& x) {
  const WindowSpec spec = window_spec(context.attributes(), context.attributes().integers("kernel_shape"));
  Shape y = x;
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    Dim& extent = y[static_cast<int64_t>(axis + 2)];
    if (!extent.is_known()) {
      extent = Dim::unknown();
      continue;
    }
    const int64_t value = unpooled_extent(spec, axis, extent.value());
    context.require<ShapeError>(
        value >= 0, "pads",
        fmt::format("expected an output extent of 0 or more on spatial axis {}, got {}", axis, value));
    extent = value;
  }
  return y;
}

void infer(InferContext& context) {
  const auto spatial_rank = static_cast<int64_t>(context.attributes().integers("kernel_shape").size());
  context.require<ValueError>(spatial_rank >= 1, "kernel_shape", "expected at least one extent, got []");
  check_window_attributes(context, spatial_rank);
  const int64_t rank = spatial_rank + 2;
  context.require_rank(0, rank);
  context.require_rank(1, rank);
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  if (x.is_static() && indices.is_static()) {
    context.require<ShapeError>(x == indices, "indices",
                                fmt::format("expected the shape of x {}, got {}", to_string(x), to_string(indices)));
  }
  const Shape y = x.has_rank() ? unpooled_shape(context, x) : Shape::of_rank(rank);
  if (!context.has_input(2)) return context.set_output(0, context.dtype(0), y);
  const auto given = context.known_integers(2);
  if (!given) return context.set_output(0, context.dtype(0), Shape::of_rank(rank));
  bool fits = static_cast<int64_t>(given->size()) == rank;
  for (int64_t axis = 0; fits && axis < rank; ++axis) {
    fits = (*given)[static_cast<size_t>(axis)] >= y[axis].value_or(0);
  }
  context.require<ShapeError>(fits, "output_shape",
                              fmt::format("expected at least {}, got {}", to_string(y), bracketed(*given)));
  context.set_output(0, context.dtype(0), Shape::of(*given));
}

// Position in `outer` of flat position `flat` in `inner`, which is no larger on any axis.
int64_t embed(int64_t flat, std::span<const int64_t> inner, std::span<const int64_t> outer) {
  int64_t result = 0;
  int64_t step = 1;
  for (size_t axis = inner.size(); axis-- > 0;) {
    result += flat % inner[axis] * step;
    flat /= inner[axis];
    step *= outer[axis];
  }
  return result;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const WindowSpec spec = window_spec(call.attributes, call.attributes.integers("kernel_shape"));
  Dims inner(x.dims().begin(), x.dims().end());
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis)
    inner[axis + 2] = unpooled_extent(spec, axis, inner[axis + 2]);
  const int64_t limit = checked_product(inner, "max_unpool");
  const int64_t* indices = call.input(1).data<int64_t>();
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    std::fill(out, out + y.num_elements(), T(0.0F));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      AG_CHECK_USER(indices[i] >= 0 && indices[i] < limit, ValueError,
                    "[max_unpool] indices: expected 0..{}, got {} (element {})", limit - 1, indices[i], i);
      out[embed(indices[i], inner, y.dims())] = in[i];
    }
  });
}

OpSample sample(Random& random) {
  const int64_t spatial_rank = draw(random, 1, 2);
  Dims x{draw(random, 1, 2), draw(random, 1, 2)};
  Dims kernel;
  Dims strides;
  Dims y = x;
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    x.push_back(draw(random, 1, 3));
    kernel.push_back(draw(random, 1, 3));
    strides.push_back(draw(random, 1, 2));
    y.push_back((x.back() - 1) * strides.back() + kernel.back());
  }
  Tensor indices = Tensor::zeros(DType::i64, x);
  // Distinct positions: equal ones would make the result depend on the order of writing.
  const int64_t total = checked_product(y, "max_unpool");
  for (int64_t i = 0; i < indices.num_elements(); ++i)
    indices.mutable_data<int64_t>()[i] = i * total / indices.num_elements();
  const bool distinct = total >= indices.num_elements();
  if (!distinct) return sample(random);
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, x), indices},
                  .attributes = {{"kernel_shape", kernel}, {"strides", strides}}};
  if (draw_bool(random)) {
    for (int64_t& extent : y) extent += draw(random, 0, 1);
    sample.inputs.emplace_back(Tensor::vector(y));
  }
  return sample;
}

// The elements of the gradient at the positions, which count in the result before it is enlarged.
void vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.type().is_static()) c.unsupported("its rule needs known extents");
  const WindowSpec spec = window_spec(c.attributes(), c.attributes().integers("kernel_shape"));
  std::vector<int64_t> begins{0, 0}, ends{x.dim(0), x.dim(1)}, axes{0, 1};
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    axes.push_back(static_cast<int64_t>(axis) + 2);
    begins.push_back(0);
    ends.push_back(unpooled_extent(spec, axis, x.dim(axes.back())));
  }
  const Var inner = c.has_input(2) ? slice(c.gy(0), begins, ends, axes) : c.gy(0);
  c.set(0, reshape_as(gather(reshape(inner, {-1}), reshape(c.in(1), {-1})), x));
}

}  // namespace

Var max_unpool(Var x, Var indices, const PoolOptions& options, Var output_shape) {
  Attributes attributes{{"kernel_shape", options.kernel}};
  if (!options.strides.empty()) attributes.set("strides", options.strides);
  if (!options.pads.empty()) attributes.set("pads", options.pads);
  return apply(max_unpool_def(), {x, indices, output_shape}, std::move(attributes));
}

const OpDef& max_unpool_def() {
  static const OpDef def{
      .name = "max_unpool",
      .doc = "Partial inverse of max_pool: x at the given positions, zeros elsewhere.",
      .inputs = {{"x", "T1", "[N, C, spatial...]."},
                 {"indices", "T2", "Flat positions in the output before it is enlarged to output_shape; shape of x."},
                 {"output_shape", "T2", "[rank of x]: extents of the output.", Arity::optional}},
      .outputs = {{"y", "T1", "[N, C, spatial...]."}},
      .types = {{"T1", dtypes::kFloat}, {"T2", dtypes::kI64}},
      .attributes = {{"kernel_shape", AttributeType::integers, "Window of the max_pool.", std::nullopt, true},
                     {"strides", AttributeType::integers, "Its strides; default 1."},
                     {"pads", AttributeType::integers, "Its padding, begins then ends; default 0."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "MaxUnpool", .since = 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
