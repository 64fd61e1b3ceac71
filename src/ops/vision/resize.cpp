// resize: samples x on a finer or coarser grid along each axis, one axis after the other.
//
// Output coordinate o maps to a real input coordinate c (coordinate_transformation_mode, with s the scale, in and out
// the extents and full = s * in, which may be fractional):
//   half_pixel            (o + 0.5) / s - 0.5
//   half_pixel_symmetric  as half_pixel, plus in / 2 * (1 - out / full)
//   pytorch_half_pixel    as half_pixel, but 0 when out is 1
//   align_corners         o * (in - 1) / (full - 1), or 0 when full is 1
//   asymmetric            o / s
//   tf_crop_and_resize    start * (in - 1) + o * (end - start) * (in - 1) / (full - 1), or the middle of the region
//   when
//                         full is 1; outside [0, in - 1] the result is extrapolation_value
// `nearest` rounds c; `linear` and `cubic` weigh the neighbours of c with a filter of support 1 or 2, repeating the
// edge element outside or, with exclude_outside, leaving it out. `antialias` stretches the filter by 1 / s when
// shrinking. Integers round to nearest and saturate. Older forms (Upsample, Resize-10) are asymmetric and round down.
#include <cmath>
#include <limits>
#include <numeric>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/vision.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/vision/resize_grid.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr size_t kRoi = 1;
constexpr size_t kScales = 2;
constexpr size_t kSizes = 3;

void check_axes(const InferContext& context, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  if (!context.attributes().contains("axes")) return;
  for (const int64_t given : context.attributes().integers("axes")) {
    const auto axis = static_cast<size_t>(context.normalized_axis(given, rank, "axes"));
    context.require<ValueError>(!seen[axis], "axes", fmt::format("expected distinct axes, got {} twice", given));
    seen[axis] = true;
  }
}

// Is input `slot` there with at least one element? Files say "not given" with an empty tensor, too.
bool is_given(const InferContext& context, size_t slot) {
  if (!context.has_input(slot)) return false;
  const Shape& shape = context.shape(slot);
  return !(shape.has_rank() && shape.rank() == 1 && shape[0].is_known() && shape[0].value() == 0);
}

// Output extent for a scale: computed in f32, as scales are f32.
int64_t scaled_extent(int64_t in, float scale) {
  const float extent = std::floor(static_cast<float>(in) * scale);
  return extent < 9e18F ? static_cast<int64_t>(extent) : std::numeric_limits<int64_t>::max();
}

Dim symbolic_extent(const Dim& in, float scale) {
  if (in.is_known()) return scaled_extent(in.value(), scale);
  if (scale == std::floor(scale) && scale < 1e6F) return in * Dim(static_cast<int64_t>(scale));
  const float inverse = 1.0F / scale;
  if (inverse == std::floor(inverse) && inverse < 1e6F) return floor_div(in, static_cast<int64_t>(inverse));
  return Dim::unknown();
}

void infer_from_scales(InferContext& context, const Dims& axes, Shape y) {
  const Tensor* scales = context.known_value(kScales);
  if (!scales) {
    for (const int64_t axis : axes) y[axis] = Dim::unknown();
    return context.set_output(0, context.dtype(0), y);
  }
  context.require<ValueError>(scales->num_elements() == static_cast<int64_t>(axes.size()), "scales",
                              fmt::format("expected {} values, got {}", axes.size(), scales->num_elements()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const float scale = scales->data<float>()[i];
    context.require<ValueError>(scale > 0 && std::isfinite(scale), "scales",
                                fmt::format("expected numbers above 0, got {}", scale));
    y[axes[i]] = symbolic_extent(y[axes[i]], scale);
  }
  context.set_output(0, context.dtype(0), y);
}

void infer_from_sizes(InferContext& context, const Dims& axes, Shape y) {
  const auto sizes = context.known_integers(kSizes);
  const std::string& policy = context.attributes().text("keep_aspect_ratio_policy");
  if (!sizes) {
    for (const int64_t axis : axes) y[axis] = Dim::unknown();
    return context.set_output(0, context.dtype(0), y);
  }
  const bool fits =
      sizes->size() == axes.size() && std::all_of(sizes->begin(), sizes->end(), [](int64_t size) { return size >= 0; });
  context.require<ValueError>(fits, "sizes",
                              fmt::format("expected {} values of 0 or more, got {}", axes.size(), bracketed(*sizes)));
  std::vector<int64_t> in;
  for (size_t i = 0; i < axes.size(); ++i) {
    in.push_back(y[axes[i]].value_or(0));
    const bool samples_nothing = y[axes[i]].is_known() && in.back() == 0 && (*sizes)[i] > 0;
    context.require<ShapeError>(!samples_nothing, "sizes",
                                fmt::format("expected 0 on axis {}, which is empty, got {}", axes[i], (*sizes)[i]));
  }
  const bool all_known = std::all_of(axes.begin(), axes.end(), [&y](int64_t axis) { return y[axis].is_known(); });
  const double scale = policy == "stretch" || !all_known ? 0 : common_resize_scale(policy == "not_larger", *sizes, in);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (policy == "stretch") {
      y[axes[i]] = (*sizes)[i];
    } else if (!all_known) {
      y[axes[i]] = Dim::unknown();
    } else {
      const double extent = std::floor(scale * static_cast<double>(in[i]) + 0.5);
      context.require<ShapeError>(extent >= 0 && extent < 9e18, "sizes",
                                  fmt::format("expected a finite extent on axis {}, got {}", axes[i], extent));
      y[axes[i]] = static_cast<int64_t>(extent);
    }
  }
  context.set_output(0, context.dtype(0), y);
}

void infer(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const bool by_scales = is_given(context, kScales);
  context.require<ValueError>(by_scales != is_given(context, kSizes), "scales",
                              "expected exactly one of scales and sizes");
  const std::string& mode = attributes.text("mode");
  const bool numeric = dtypes::kNumeric.contains(context.dtype(0));
  context.require<TypeError>(
      mode == "nearest" || numeric, "x",
      fmt::format("expected a numeric dtype for mode {}, got {}", mode, to_string(context.dtype(0))));
  context.require<ValueError>(mode != "nearest" || !attributes.flag("antialias"), "antialias",
                              "expected mode linear or cubic, got nearest");
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  check_axes(context, x.rank());
  const Dims axes = resized_axes(attributes, x.rank());
  const bool crops = attributes.text("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (crops) {
    const auto wanted = static_cast<int64_t>(2 * axes.size());
    context.require<ValueError>(is_given(context, kRoi), "roi", "expected it for tf_crop_and_resize, got none");
    const Shape& roi = context.shape(kRoi);
    context.require<ShapeError>(!roi.has_rank() || (roi.rank() == 1 && roi[0].value_or(wanted) == wanted), "roi",
                                fmt::format("expected [{}], got {}", wanted, to_string(roi)));
  }
  return by_scales ? infer_from_scales(context, axes, x) : infer_from_sizes(context, axes, x);
}

// ---- Reference -------------------------------------------------------------------------------------------------

// Resizes `values`, whose extents are `dims`, along one axis.
std::vector<double> resize_axis(const std::vector<double>& values, Dims& dims, size_t axis,
                                const std::vector<ResizeMix>& mixes, double outside) {
  int64_t inner = 1;
  for (size_t a = axis + 1; a < dims.size(); ++a) inner *= dims[a];
  const int64_t in = dims[axis];
  const auto out = static_cast<int64_t>(mixes.size());
  dims[axis] = out;
  std::vector<double> result(static_cast<size_t>(checked_product(dims, "resize")));
  for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
    const ResizeMix& mix = mixes[static_cast<size_t>(i / inner % out)];
    const int64_t base = i / inner / out * in * inner + i % inner;
    double sum = mix.taps.empty() ? outside : 0;
    for (const auto& [index, weight] : mix.taps) sum += weight * values[static_cast<size_t>(base + index * inner)];
    result[static_cast<size_t>(i)] = sum;
  }
  return result;
}

template <class T>
T narrow(double value) {
  if constexpr (kIsFloat<T>) {
    return T(value);
  } else {
    const double rounded = std::nearbyint(value);
    if (std::isnan(rounded)) return 0;
    if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(rounded);
  }
}

void interpolate(const OpCall& call, const std::vector<ResizeAxis>& axes) {
  const TensorView x = call.input(0);
  dispatch<NumericTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    std::vector<double> values;
    for (const T& element : x.elements<T>()) values.push_back(static_cast<double>(element));
    Dims dims(x.dims().begin(), x.dims().end());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].is_identity()) continue;
      values = resize_axis(values, dims, axis, resize_mixes(call.attributes, axes[axis]),
                           call.attributes.real("extrapolation_value"));
    }
    T* out = call.output(0).mutable_data<T>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = narrow<T>(values[i]);
  });
}

using MovedTypes =
    Concat<NumericTypes, SmallTypes, TypeList<bool, std::string, std::complex<float>, std::complex<double>>>;

void pick_nearest(const OpCall& call, const std::vector<ResizeAxis>& axes) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  std::vector<std::vector<ResizeMix>> mixes;
  for (const ResizeAxis& axis : axes) mixes.push_back(resize_mixes(call.attributes, axis));
  // Element of x for every element of y; -1 where it is extrapolated.
  const auto source = [&](int64_t flat) {
    int64_t offset = 0;
    int64_t step = 1;
    for (size_t axis = axes.size(); axis-- > 0;) {
      const ResizeMix& mix = mixes[axis][static_cast<size_t>(flat % axes[axis].out)];
      flat /= axes[axis].out;
      if (mix.taps.empty()) return int64_t{-1};
      offset += mix.taps[0].first * step;
      step *= axes[axis].in;
    }
    return offset;
  };
  dispatch<MovedTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    T outside{};
    if constexpr (std::is_arithmetic_v<T> || kIsFloat<T>) outside = T(call.attributes.real("extrapolation_value"));
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      const int64_t from = source(i);
      out[i] = from < 0 ? outside : in[from];
    }
  });
}

void reference(const OpCall& call) {
  if (call.output(0).num_elements() == 0) return;
  const auto axes = resize_axes(call.attributes, call.input(0).dims(), call.output(0).dims(),
                                {call.input(kRoi), call.input(kScales), call.input(kSizes)});
  return call.attributes.text("mode") == "nearest" ? pick_nearest(call, axes) : interpolate(call, axes);
}

// ---- ONNX and samples ------------------------------------------------------------------------------------------

// Upsample and Resize before opset 11 take scales only, at slot 1 or as an attribute.
std::vector<ValueId> import_scales_only(ForeignNode& node) {
  ValueId scales;
  if (const auto* list = node.attributes.find_as<std::vector<float>>("scales")) {
    scales = node.constant(Tensor::of<float>({static_cast<int64_t>(list->size())}, *list));
    node.attributes.erase("scales");
  } else {
    AG_CHECK_USER(node.has_input(1), FormatError, "[resize] scales: expected an input or attribute, got none");
    scales = node.inputs[1];
  }
  node.inputs = {node.inputs[0], ValueId(), scales};
  node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attributes.set("nearest_mode", std::string("floor"));
  // "bilinear" is how early exporters spelled it.
  if (node.attributes.get_or<std::string>("mode", "nearest") == "bilinear") {
    node.attributes.set("mode", std::string("linear"));
  }
  return node.emit();
}

// tf_half_pixel_for_nn, which opset 11 had and tf2onnx goes on writing, is half_pixel plus a half: the element that it
// picks by `floor` or `round_prefer_floor` is one that half_pixel picks, too.
void respell_tf_half_pixel(Attributes& attributes) {
  const std::string name = "coordinate_transformation_mode";
  if (attributes.get_or<std::string>("mode", "nearest") != "nearest") return;
  if (attributes.get_or<std::string>(name, "") != "tf_half_pixel_for_nn") return;
  const auto rounding = attributes.get_or<std::string>("nearest_mode", "round_prefer_floor");
  if (rounding != "floor" && rounding != "round_prefer_floor") return;
  attributes.set(name, std::string("half_pixel"));
  attributes.set("nearest_mode", std::string(rounding == "floor" ? "round_prefer_ceil" : "ceil"));
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset < 11) return import_scales_only(node);
  respell_tf_half_pixel(node.attributes);
  return node.emit();
}

OpSample sample(Random& random) {
  const Dims x = draw_dims(random, 1, 4, 4);
  const auto rank = static_cast<int64_t>(x.size());
  const std::string mode = draw_one_of<std::string>(random, {"nearest", "linear", "cubic"});
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, x), Datum(), Datum(), Datum()},
                  .attributes = {{"mode", mode}, {"exclude_outside", draw(random, 0, 1)}}};
  const auto transform = draw_one_of<std::string>(random, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                           "align_corners", "asymmetric", "tf_crop_and_resize"});
  sample.attributes.set("coordinate_transformation_mode", transform);
  sample.attributes.set("nearest_mode",
                        draw_one_of<std::string>(random, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  if (mode != "nearest") sample.attributes.set("antialias", draw(random, 0, 1));
  int64_t count = rank;
  if (draw_bool(random)) {
    const int64_t axis = draw(random, -rank, rank - 1);
    sample.attributes.set("axes", Dims{axis});
    count = 1;
  }
  if (transform == "tf_crop_and_resize") {
    Tensor roi = draw_tensor(random, DType::f32, {2 * count}, 0.0, 0.5);
    for (int64_t i = count; i < 2 * count; ++i) roi.mutable_data<float>()[i] += 0.7F;
    sample.inputs[kRoi] = roi;
  }
  if (draw_bool(random)) {
    sample.inputs[kScales] = draw_tensor(random, DType::f32, {count}, 0.4, 2.5);
  } else {
    sample.inputs[kSizes] = draw_tensor(random, DType::i64, {count}, 1, 6);
    sample.attributes.set("keep_aspect_ratio_policy",
                          draw_one_of<std::string>(random, {"stretch", "not_larger", "not_smaller"}));
  }
  return sample;
}

// How much of each input coordinate is in each output coordinate of an axis: [out, in].
Tensor mixing_matrix(const Attributes& attributes, const ResizeAxis& axis) {
  std::vector<double> matrix(static_cast<size_t>(axis.out * axis.in), 0.0);
  const std::vector<ResizeMix> mixes = resize_mixes(attributes, axis);
  for (size_t o = 0; o < mixes.size(); ++o) {
    for (const auto& [index, weight] : mixes[o].taps) {
      matrix[o * static_cast<size_t>(axis.in) + static_cast<size_t>(index)] += weight;
    }
  }
  return Tensor::of<double>({axis.out, axis.in}, matrix);
}

TensorView constant_input(VjpContext& c, size_t slot) {
  if (!c.has_input(slot)) return {};
  const Tensor* elements = c.in(slot).known();
  if (!elements) c.unsupported("its rule needs constant scales, sizes and regions");
  return elements->view();
}

// How each axis changes. An extent that is open in x and y is 1 here, which an axis that does not change keeps.
std::vector<ResizeAxis> axes_of(VjpContext& c) {
  const Shape &x = c.in(0).shape(), &y = c.out(0).shape();
  if (!x.has_rank() || !y.has_rank()) c.unsupported("its rule needs a known rank");
  const auto extents = [](const Shape& shape) {
    Dims dims;
    for (int64_t axis = 0; axis < shape.rank(); ++axis)
      dims.push_back(shape[axis].is_known() ? shape[axis].value() : 1);
    return dims;
  };
  return resize_axes(c.attributes(), extents(x), extents(y),
                     {constant_input(c, kRoi), constant_input(c, kScales), constant_input(c, kSizes)});
}

// Each axis by itself is a product with a matrix, and the gradient one with its transpose.
void vjp(VjpContext& c) {
  for (const size_t slot : {size_t{kRoi}, size_t{kScales}}) c.set_none(slot);
  if (!c.wants(0)) return;
  const Var x = c.in(0);
  const Shape from = x.shape(), to = c.out(0).shape();
  Var gradient = c.gy(0);
  const std::vector<ResizeAxis> axes = axes_of(c);
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].is_identity()) continue;
    const auto at = static_cast<int64_t>(axis);
    if (!from[at].is_known() || !to[at].is_known()) {
      c.unsupported(fmt::format("its rule needs known extents of the axes that change, got {} to {} in axis {}",
                                to_string(from), to_string(to), axis));
    }
    const Var matrix = cast(constant_like(c.in(0), mixing_matrix(c.attributes(), axes[axis])), x.dtype());
    std::vector<int64_t> perm(axes.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[axis], perm.back());
    // Matrices of rank 2 at least.
    const Var last = transpose(gradient, perm);
    const Var mixed = axes.size() == 1 ? reshape(matmul(unsqueeze(last, {0}), matrix), {-1}) : matmul(last, matrix);
    gradient = transpose(mixed, perm);
  }
  c.set(0, gradient);
}

}  // namespace

Var resize(Var x, const std::vector<float>& scales, Attributes attributes) {
  const Var factors = constant_like(x, Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales));
  return apply(resize_def(), {x, Var(), factors}, std::move(attributes));
}

const OpDef& resize_def() {
  using std::string;
  static const OpDef def{
      .name = "resize",
      .doc = "Samples x on a finer or coarser grid: nearest, linear or cubic.",
      .inputs = {{"x", "T1", "Any shape."},
                 {"roi", "T2", "[starts..., ends...] as fractions; only for tf_crop_and_resize.", Arity::optional},
                 {"scales", "S", "One factor per resized axis; this or sizes.", Arity::optional},
                 {"sizes", "I", "One extent per resized axis.", Arity::optional}},
      .outputs = {{"y", "T1", "Rank of x; extents floor(in * scale), or as sizes says."}},
      .types = {{"T1", dtypes::kAll}, {"T2", dtypes::kFloat}, {"S", dtypes::kF32}, {"I", dtypes::kI64}},
      .attributes =
          {{"mode", AttributeType::text, "How to sample.", string("nearest"), false, {"nearest", "linear", "cubic"}},
           {"coordinate_transformation_mode",
            AttributeType::text,
            "From output to input coordinates.",
            string("half_pixel"),
            false,
            {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
             "tf_crop_and_resize"}},
           {"nearest_mode",
            AttributeType::text,
            "How mode nearest rounds coordinates.",
            string("round_prefer_floor"),
            false,
            {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
           {"cubic_coeff_a", AttributeType::real, "Coefficient a of the cubic filter.", -0.75F},
           {"exclude_outside", AttributeType::integer, "1: taps outside x have no weight.", int64_t{0}},
           {"extrapolation_value", AttributeType::real, "Result outside x for tf_crop_and_resize.", 0.0F},
           {"antialias", AttributeType::integer, "1: stretch the filter when shrinking.", int64_t{0}},
           {"axes", AttributeType::integers, "Axes that roi, scales and sizes speak of; default all."},
           {"keep_aspect_ratio_policy",
            AttributeType::text,
            "Take sizes as they are, as upper or as lower bounds.",
            string("stretch"),
            false,
            {"stretch", "not_larger", "not_smaller"}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "Resize", .since = 10, .import = import_onnx, .export_since = 19},
               {.name = "Upsample", .since = 7, .import = import_scales_only, .import_only = true}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
