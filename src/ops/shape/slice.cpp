// slice: y[i] = x[start + i * step] along each of `axes`, as NumPy slices do: negative positions count from the end,
// positions beyond the ends are clamped, a negative step walks backwards. `axes` defaults to the first ones, `steps`
// to 1.
#include <algorithm>
#include <limits>
#include <numeric>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "base/checked_int.h"
#include "graph/picked_cost.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"
#include "ops/shape/slice_range.h"
#include "ops/shape/strided_parts.h"

namespace autograph {

SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, extent);
    end = std::clamp<int64_t>(end, 0, extent);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  step = std::max(step, -std::numeric_limits<int64_t>::max());
  start = std::clamp<int64_t>(start, -1, extent - 1);
  end = std::clamp<int64_t>(end, -1, extent - 1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

namespace {

// Extent after slicing; open extents stay what they are only under a slice that takes everything.
Dim sliced_extent(const Dim& extent, int64_t start, int64_t end, int64_t step) {
  if (extent.is_known()) return slice_range(start, end, step, extent.value()).count;
  constexpr int64_t kFar = std::numeric_limits<int32_t>::max();
  const bool forwards = step == 1 && start == 0 && end >= kFar;
  const bool backwards = step == -1 && (start == -1 || start >= kFar) && end <= -kFar;
  return forwards || backwards ? extent : Dim::unknown();
}

std::vector<int64_t> first_axes(size_t count) {
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void check_lengths(const InferContext& context) {
  const auto starts = list_length(context, 1);
  for (size_t slot = 2; slot < 5; ++slot) {
    if (!context.has_input(slot)) continue;
    const auto length = list_length(context, slot);
    if (starts && length && *starts != *length) {
      context.fail<ShapeError>("inputs", fmt::format("expected lists of {} like starts, got {}", *starts, *length));
    }
  }
}

void infer(InferContext& context) {
  check_lengths(context);
  const Shape& x = context.shape(0);
  const DType dtype = context.dtype(0);
  if (!x.has_rank()) return context.set_output(0, dtype, x);
  const auto starts = context.known_integers(1);
  const auto ends = context.known_integers(2);
  auto axes = context.known_integers(3);
  const auto count = starts ? std::optional(static_cast<int64_t>(starts->size())) : list_length(context, 1);
  if (!context.has_input(3) && count) {
    context.require<ValueError>(*count <= x.rank(), "starts",
                                fmt::format("expected at most {} values, got {}", x.rank(), *count));
    axes = first_axes(static_cast<size_t>(*count));
  }
  if (!axes) return context.set_output(0, dtype, Shape::of_rank(x.rank()));
  const auto steps =
      context.has_input(4) ? context.known_integers(4) : std::optional(std::vector<int64_t>(axes->size(), 1));
  if (steps && std::find(steps->begin(), steps->end(), 0) != steps->end()) {
    context.fail<ValueError>("steps", "expected steps other than 0, got 0");
  }
  Shape y = x;
  const std::vector<int64_t> front = normalized_axes(context, *axes, x.rank());
  for (size_t k = 0; k < front.size(); ++k) {
    const bool known = starts && ends && steps;
    y[front[k]] = known ? sliced_extent(x[front[k]], (*starts)[k], (*ends)[k], (*steps)[k]) : Dim::unknown();
  }
  context.set_output(0, dtype, std::move(y));
}

}  // namespace

Strided sliced_part(const OpCall& call) {
  const TensorView x = call.input(0);
  const std::vector<int64_t> starts = read_integers(call.input(1));
  const std::vector<int64_t> ends = read_integers(call.input(2));
  const std::vector<int64_t> axes =
      call.input(3).is_present() ? read_integers(call.input(3)) : first_axes(starts.size());
  const std::vector<int64_t> steps =
      call.input(4).is_present() ? read_integers(call.input(4)) : std::vector<int64_t>(starts.size(), 1);
  const std::vector<int64_t> strides = dense_strides(x.dims());
  Strided source{0, strides};
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(front_axis(axes[k], x.rank()));
    const SliceRange slice = slice_range(starts[k], ends[k], steps[k], x.dims()[axis]);
    source.start += slice.start * strides[axis];
    // A single element needs no stride, and a huge step would overflow it.
    source.strides[axis] = slice.count > 1 ? slice.step * strides[axis] : 0;
  }
  return source;
}

namespace {

void reference(const OpCall& call) {
  const TensorView y = call.output(0);
  if (y.num_elements() == 0) return;
  copy_strided(call.input(0), sliced_part(call), y, {0, dense_strides(y.dims())}, y.dims());
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1);
  std::vector<int64_t> starts, ends, axes, steps;
  const auto rank = static_cast<int64_t>(dims.size());
  for (int64_t a = 0; a < rank; ++a) {
    if (draw_bool(random)) continue;
    axes.push_back(draw_bool(random) ? a : a - rank);
    starts.push_back(draw(random, -7, 7));
    ends.push_back(draw(random, -7, 7));
    steps.push_back(draw_one_of<int64_t>(random, {-2, -1, 1, 2, 3}));
  }
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector(starts), Tensor::vector(ends)}};
  if (draw_bool(random)) return result;
  result.inputs.emplace_back(Tensor::vector(axes));
  if (draw_bool(random)) result.inputs.emplace_back(Tensor::vector(steps));
  return result;
}

// Attributes became inputs with opset 10.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("starts", 1);
  node.integers_to_input("ends", 2);
  node.integers_to_input("axes", 3);
  return node.emit();
}

// One axis of a gradient spread out again: zeros before `start`, |step| - 1 of them between, and zeros up to `extent`.
Var spread(const Var& gradient, int64_t axis, const SliceRange& range, int64_t extent) {
  Var g = gradient;
  SliceRange forwards = range;
  if (range.step < 0) {
    g = slice(g, {-1}, {std::numeric_limits<int64_t>::min()}, {axis}, {-1});
    forwards = {range.start + (range.count - 1) * range.step, -range.step, range.count};
  }
  const auto rank = static_cast<size_t>(g.rank());
  if (forwards.step > 1 && forwards.count > 1) {
    Dims dims = g.shape().static_dims();
    dims[static_cast<size_t>(axis)] *= forwards.step;
    std::vector<int64_t> between(2 * (rank + 1), 0);
    between[rank + 1 + static_cast<size_t>(axis) + 1] = forwards.step - 1;
    g = reshape(pad(unsqueeze(g, {axis + 1}), between), constant_like(g, Tensor::vector(dims)), true);
  }
  std::vector<int64_t> around(2 * rank, 0);
  around[static_cast<size_t>(axis)] = forwards.start;
  around[rank + static_cast<size_t>(axis)] = extent - forwards.start - g.dim(axis);
  return pad(g, around);
}

void vjp(VjpContext& c) {
  const Var x = c.in(0);
  const auto starts = c.known_integers(1), ends = c.known_integers(2), axes = c.known_integers(3),
             steps = c.known_integers(4);
  const bool is_known = starts && ends && (axes || !c.has_input(3)) && (steps || !c.has_input(4));
  if (!is_known || !x.type().is_static() || !c.gy(0).type().is_static()) return moved_elements_vjp(c);
  if (c.gy(0).shape().num_elements() == 0) return c.set(0, filled_like(x, 0));
  const std::vector<int64_t> sliced = axes ? *axes : first_axes(starts->size());
  Var gradient = c.gy(0);
  for (size_t k = 0; k < sliced.size(); ++k) {
    const int64_t axis = front_axis(sliced[k], x.rank());
    const SliceRange range = slice_range((*starts)[k], (*ends)[k], steps ? (*steps)[k] : 1, x.dim(axis));
    gradient = spread(gradient, axis, range, x.dim(axis));
  }
  c.set(0, gradient);
}

}  // namespace

Var slice(Var x, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends, const std::vector<int64_t>& axes,
          const std::vector<int64_t>& steps) {
  std::vector<Var> inputs{x, constant_like(x, Tensor::vector(starts)), constant_like(x, Tensor::vector(ends)),
                          constant_like(x, Tensor::vector(axes))};
  if (!steps.empty()) inputs.push_back(constant_like(x, Tensor::vector(steps)));
  return autograph::apply(slice_def(), inputs);
}

const OpDef& slice_def() {
  static const OpDef def{
      .name = "slice",
      .doc = "y[i] = x[start + i * step] along each axis, with NumPy's clamping and negative positions.",
      .inputs = {{"data", "T", "Rank 1 or more."},
                 {"starts", "I", "[n]: first position along each axis."},
                 {"ends", "I", "[n]: position behind the last one."},
                 {"axes", "I", "[n]: the axes; 0..n-1 when not given.", Arity::optional},
                 {"steps", "I", "[n]: steps, not 0; 1 when not given.", Arity::optional}},
      .outputs = {{"output", "T", "Shape of data with the sliced extents."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kIndex}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .cost = picked_cost,
      .onnx = {{.name = "Slice", .import = import_onnx, .export_since = 10}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
