// grid_sample: y[n, c, pos...] is x[n, c] at the real position grid[n, pos..., :], whose coordinates run from the
// innermost axis outwards and span the image from -1 to 1: centres of the corner elements with align_corners, outer
// edges without. `nearest` rounds half to even; `linear` and `cubic` (a = -0.75) mix 2 or 4 neighbours per axis.
// Outside the image: zeros, the border element, or reflection at the border (its edge without align_corners, its centre
// with). A coordinate that is no number, or infinite where it is reflected, is that of the first element, as PyTorch
// and ONNX Runtime have it, and a zero where zeros pad. Integers are computed in f64 and truncated.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/vision.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/vision/grid_sample_body.h"
#include "ops/vision/grid_sampler.h"
#include "ops/window/window_geometry.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& grid = context.shape(1);
  if (!x.has_rank() && !grid.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  const int64_t rank = x.has_rank() ? x.rank() : grid.rank();
  context.require<ShapeError>(rank >= 3, "x", "expected [N, C, spatial...], got " + to_string(x));
  context.require_rank(1, rank);
  Shape y = Shape::of_rank(rank);
  if (x.has_rank()) {
    y[0] = x[0];
    y[1] = x[1];
    for (int64_t axis = 2; axis < rank; ++axis) {
      context.require<ShapeError>(x[axis].value_or(1) >= 1, "x", "expected elements to sample, got " + to_string(x));
    }
  }
  if (grid.has_rank()) {
    const bool same_batch = !x.has_rank() || !x[0].is_known() || grid[0].value_or(x[0].value()) == x[0].value();
    context.require<ShapeError>(
        same_batch && grid[rank - 1].value_or(rank - 2) == rank - 2, "grid",
        fmt::format("expected [N, spatial..., {}] for x {}, got {}", rank - 2, to_string(x), to_string(grid)));
    for (int64_t axis = 2; axis < rank; ++axis) y[axis] = grid[axis - 1];
  }
  context.set_output(0, context.dtype(0), y);
}

template <class T, class G>
void sample_grid(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const GridSampler sampler(call.attributes, x.dims().subspan(2));
  const int64_t positions = checked_product(y.dims().subspan(2), "grid_sample");
  const int64_t pixels = checked_product(x.dims().subspan(2), "grid_sample");
  const int64_t channels = x.dim(1);
  std::vector<double> point(x.dims().size() - 2);
  std::vector<GridTap> taps;
  for (int64_t i = 0; i < y.dim(0) * positions; ++i) {
    const G* at = call.input(1).data<G>() + i * static_cast<int64_t>(point.size());
    for (size_t axis = 0; axis < point.size(); ++axis) point[axis] = static_cast<double>(at[axis]);
    sampler.mix(point, taps);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = i / positions * channels + c;
      double sum = 0;
      for (const auto& [offset, weight] : taps) {
        sum += weight * static_cast<double>(x.data<T>()[plane * pixels + offset]);
      }
      y.mutable_data<T>()[plane * positions + i % positions] = T(sum);
    }
  }
}

void reference(const OpCall& call) {
  dispatch<NumericTypes>(call.input(0).dtype(), [&]<class T>(TypeTag<T>) {
    dispatch<FloatTypes>(call.input(1).dtype(), [&]<class G>(TypeTag<G>) { sample_grid<T, G>(call); });
  });
}

// Opset 16 said bilinear and bicubic.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  const auto mode = node.attributes.get_or<std::string>("mode", "linear");
  if (mode == "bilinear") node.attributes.set("mode", std::string("linear"));
  if (mode == "bicubic") node.attributes.set("mode", std::string("cubic"));
  return node.emit();
}

OpSample sample(Random& random) {
  Dims x = draw_dims(random, 3, 5, 4);
  const auto rank = static_cast<int64_t>(x.size());
  Dims grid{x[0]};
  for (int64_t axis = 2; axis < rank; ++axis) grid.push_back(draw(random, 1, 3));
  grid.push_back(rank - 2);
  return {.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, grid, -1.5, 1.5)},
          .attributes = {{"align_corners", draw(random, 0, 1)},
                         {"mode", draw_one_of<std::string>(random, {"linear", "nearest", "cubic"})},
                         {"padding_mode", draw_one_of<std::string>(random, {"zeros", "border", "reflection"})}}};
}

}  // namespace

Var grid_sample(Var x, Var grid, Attributes attributes) {
  return apply(grid_sample_def(), {x, grid}, std::move(attributes));
}

const OpDef& grid_sample_def() {
  static const OpDef def{
      .name = "grid_sample",
      .doc = "Samples x at real positions given by a grid.",
      .inputs = {{"x", "T1", "[N, C, spatial...]."},
                 {"grid", "T2", "[N, spatial of y..., r]: positions in [-1, 1], innermost axis first."}},
      .outputs = {{"y", "T1", "[N, C, spatial of the grid...]."}},
      .types = {{"T1", dtypes::kNumeric}, {"T2", dtypes::kFloat}},
      .attributes = {{"mode",
                      AttributeType::text,
                      "How to sample between elements.",
                      std::string("linear"),
                      false,
                      {"linear", "nearest", "cubic"}},
                     {"padding_mode",
                      AttributeType::text,
                      "What lies outside x.",
                      std::string("zeros"),
                      false,
                      {"zeros", "border", "reflection"}},
                     {"align_corners", AttributeType::integer, "1: -1 and 1 are centres of corner elements.",
                      int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .decompose = grid_sample_body,
      .onnx = {{.name = "GridSample", .since = 16, .import = import_onnx, .export_since = 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
