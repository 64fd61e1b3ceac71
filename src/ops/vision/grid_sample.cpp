// grid_sample: y[n, c, pos...] is x[n, c] at the real position grid[n, pos..., :], whose coordinates run from the
// innermost axis outwards and span the image from -1 to 1: centres of the corner elements with align_corners, outer
// edges without. `nearest` rounds half to even; `linear` and `cubic` (a = -0.75) mix 2 or 4 neighbours per axis.
// Outside the image: zeros, the border element, or reflection at the border (its edge without align_corners, its centre
// with). Integers are computed in f64 and truncated.
#include <cmath>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "base/checked_int.h"
#include "ops/sample.h"
#include "ops/window/window_geometry.h"
#include "tensor/element_types.h"

namespace autograph {

const OpDef& grid_sample_def();
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

enum class Padding { zeros, border, reflection };

// How coordinates of one axis turn into indices and weights.
struct Sampler {
  int64_t extent;
  bool align_corners;
  Padding padding;
  std::string mode;

  double low() const { return align_corners ? 0.0 : -0.5; }
  double high() const { return static_cast<double>(extent) - (align_corners ? 1.0 : 0.5); }

  double reflect(double c) const {
    const double range = high() - low();
    if (range <= 0) return 0;
    const double beyond = c < low() ? low() - c : c - high();
    if (beyond <= 0) return c;
    const double turns = std::floor(beyond / range);
    const double rest = beyond - turns * range;
    const bool from_low = (c < low()) == (std::fmod(turns, 2) == 0);
    return from_low ? low() + rest : high() - rest;
  }

  // Index of an element, or -1 for a zero.
  int64_t index_of(double c) const {
    const auto last = static_cast<double>(extent - 1);
    if (c >= 0 && c <= last) return static_cast<int64_t>(c);
    if (padding == Padding::zeros || std::isnan(c)) return -1;
    if (padding == Padding::reflection) c = reflect(c);
    return static_cast<int64_t>(std::clamp(c, 0.0, last));
  }

  // (index, weight) of the elements that a normalised coordinate mixes.
  std::vector<std::pair<int64_t, double>> taps(double normalized) const {
    const auto size = static_cast<double>(extent);
    double c = align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
    if (mode == "nearest") c = std::nearbyint(c);
    if (c < low() || c > high()) {
      if (padding == Padding::border) c = std::clamp(c, 0.0, size - 1);
      if (padding == Padding::reflection) c = reflect(c);
    }
    if (mode == "nearest") return {{index_of(c), 1.0}};
    const double left = std::floor(c);
    const double f = c - left;
    if (mode == "linear") return {{index_of(left), 1 - f}, {index_of(left + 1), f}};
    return {{index_of(left - 1), cubic(f + 1)},
            {index_of(left), cubic(f)},
            {index_of(left + 1), cubic(1 - f)},
            {index_of(left + 2), cubic(2 - f)}};
  }

  static double cubic(double t) {
    constexpr double a = -0.75;
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return ((t - 5) * t + 8) * t * a - 4 * a;
  }
};

std::vector<Sampler> samplers_of(const OpCall& call) {
  const std::string& padding = call.attributes.text("padding_mode");
  const Padding kind = padding == "zeros"    ? Padding::zeros
                       : padding == "border" ? Padding::border
                                             : Padding::reflection;
  std::vector<Sampler> samplers;
  for (const int64_t extent : call.input(0).dims().subspan(2)) {
    samplers.push_back({extent, call.attributes.flag("align_corners"), kind, call.attributes.text("mode")});
  }
  return samplers;
}

// (offset in one channel, weight) of all elements that a position mixes; `point` runs from the innermost axis outwards.
std::vector<std::pair<int64_t, double>> mix_at(const std::vector<Sampler>& samplers, std::span<const double> point) {
  std::vector<std::pair<int64_t, double>> mix{{0, 1.0}};
  for (size_t axis = 0; axis < samplers.size(); ++axis) {
    std::vector<std::pair<int64_t, double>> next;
    for (const auto& [index, weight] : samplers[axis].taps(point[samplers.size() - 1 - axis])) {
      if (index < 0) continue;
      for (const auto& [offset, so_far] : mix) {
        next.emplace_back(offset * samplers[axis].extent + index, so_far * weight);
      }
    }
    mix = std::move(next);
  }
  return mix;
}

template <class T, class G>
void sample_grid(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const auto samplers = samplers_of(call);
  const int64_t positions = checked_product(y.dims().subspan(2), "grid_sample");
  const int64_t pixels = checked_product(x.dims().subspan(2), "grid_sample");
  const int64_t channels = x.dim(1);
  std::vector<double> point(samplers.size());
  for (int64_t i = 0; i < y.dim(0) * positions; ++i) {
    const G* at = call.input(1).data<G>() + i * static_cast<int64_t>(samplers.size());
    for (size_t axis = 0; axis < point.size(); ++axis) point[axis] = static_cast<double>(at[axis]);
    const auto mix = mix_at(samplers, point);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = i / positions * channels + c;
      double sum = 0;
      for (const auto& [offset, weight] : mix) {
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
      .onnx = {{.name = "GridSample", .since = 16, .import = import_onnx, .export_since = 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
