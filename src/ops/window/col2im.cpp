// col2im: adds column blocks back into images: the adjoint of cutting an image into sliding windows. Column l of
// x [N, C * prod(block_shape), L] holds the elements of the window at position l (row-major over window positions);
// every element is added to the pixel that it came from, and what lies in the padding is dropped.
#include <complex>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
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

using SumTypes = Concat<NumericTypes, TypeList<std::complex<float>, std::complex<double>>>;

void check_extents(const InferContext& context, const char* name, const Dims& extents) {
  const bool positive = std::all_of(extents.begin(), extents.end(), [](int64_t e) { return e >= 1; });
  context.require<ValueError>(positive && !extents.empty(), name,
                              "expected one or more values of 1 or more, got " + bracketed(extents));
}

// Throws unless the columns of x are as many as there are window positions.
void check_columns(const InferContext& context, const Shape& x, const Dims& image, const Dims& block) {
  const WindowSpec spec = window_spec(context.attributes(), block);
  int64_t columns = 1;
  for (size_t axis = 0; axis < image.size(); ++axis) {
    columns = checked_mul(columns, window_extent(context, spec, axis, Dim(image[axis])).value(), "col2im");
  }
  context.require<ShapeError>(x[2].value_or(columns) == columns, "input",
                              fmt::format("expected {} columns, got {}", columns, to_string(x)));
}

void infer(InferContext& context) {
  context.require_rank(0, 3);
  context.require_rank(1, 1);
  context.require_rank(2, 1);
  const Shape& x = context.shape(0);
  const auto image = context.known_integers(1);
  const auto block = context.known_integers(2);
  if (image) check_extents(context, "image_shape", *image);
  if (block) check_extents(context, "block_shape", *block);
  if (!image) {
    const Shape& length = context.shape(1);
    const bool known = length.has_rank() && length[0].is_known();
    return context.set_output(0, context.dtype(0), known ? Shape::of_rank(length[0].value() + 2) : Shape::unknown());
  }
  Shape y{x.has_rank() ? x[0] : Dim::unknown(), Dim::unknown()};
  for (const int64_t extent : *image) y.dims().emplace_back(extent);
  if (!block || !x.has_rank()) return context.set_output(0, context.dtype(0), y);
  context.require<ShapeError>(
      image->size() == block->size(), "block_shape",
      fmt::format("expected {} values, as image_shape has, got {}", image->size(), bracketed(*block)));
  check_window_attributes(context, static_cast<int64_t>(image->size()));
  check_columns(context, x, *image, *block);
  const int64_t window = checked_product(*block, "col2im");
  if (x[1].is_known()) {
    context.require<ShapeError>(x[1].value() % window == 0, "input",
                                fmt::format("expected C * {} rows, got {}", window, to_string(x)));
  }
  y[1] = floor_div(x[1], window);
  context.set_output(0, context.dtype(0), y);
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const auto block = call.input(2).elements<int64_t>();
  const WindowSpec spec = window_spec(call.attributes, Dims(block.begin(), block.end()));
  const auto axes = resolve_windows(spec, y.dims().subspan(2));
  const int64_t window = checked_product(spec.kernel, "col2im");
  const int64_t columns = x.dim(2);
  const int64_t pixels = checked_product(y.dims().subspan(2), "col2im");
  dispatch<SumTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    std::vector<AccumulateType<T>> sums(static_cast<size_t>(y.num_elements()), AccumulateType<T>(0));
    const T* in = x.data<T>();
    for_each_window(axes, [&](std::span<const int64_t> at, int64_t column) {
      for_each_tap(axes, at, [&](int64_t kernel, int64_t pixel) {
        for (int64_t channel = 0; channel < y.dim(0) * y.dim(1); ++channel) {
          auto& sum = sums[static_cast<size_t>(channel * pixels + pixel)];
          sum = static_cast<AccumulateType<T>>(
              sum + static_cast<AccumulateType<T>>(in[(channel * window + kernel) * columns + column]));
        }
      });
    });
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < y.num_elements(); ++i) out[i] = T(sums[static_cast<size_t>(i)]);
  });
}

OpSample sample(Random& random) {
  const int64_t rank = draw(random, 1, 3);
  Dims image;
  WindowSpec spec;
  for (int64_t axis = 0; axis < rank; ++axis) {
    spec.kernel.push_back(draw(random, 1, 2));
    spec.dilations.push_back(draw(random, 1, 2));
    spec.strides.push_back(draw(random, 1, 2));
    image.push_back(spec.kernel.back() * spec.dilations.back() + draw(random, 0, 2));
  }
  spec.pads.assign(static_cast<size_t>(2 * rank), draw(random, 0, 1));
  int64_t columns = 1;
  for (const WindowAxis& axis : resolve_windows(spec, image)) columns *= axis.out;
  const int64_t rows = draw(random, 1, 2) * checked_product(spec.kernel, "col2im");
  return {.inputs = {draw_tensor(random, DType::f32, {draw(random, 1, 2), rows, columns}), Tensor::vector(image),
                     Tensor::vector(spec.kernel)},
          .attributes = {{"strides", spec.strides}, {"dilations", spec.dilations}, {"pads", spec.pads}}};
}

// The adjoint cuts the windows out again: a convolution whose weights are 1 at one tap each.
void vjp(VjpContext& c) {
  const auto block = c.integers(2);
  const int64_t window = checked_product(block, "col2im");
  if (!c.gy(0).shape()[1].is_known()) c.unsupported("its rule needs a known number of channels");
  const int64_t channels = c.gy(0).dim(1);
  std::vector<double> taps(static_cast<size_t>(channels * window * window), 0.0);
  for (int64_t row = 0; row < channels * window; ++row) taps[static_cast<size_t>(row * window + row % window)] = 1;
  Dims dims{channels * window, 1};
  dims.insert(dims.end(), block.begin(), block.end());
  const Var weights = cast(constant_like(c.in(0), Tensor::of<double>(dims, taps)), c.gy(0).dtype());
  Attributes attributes = c.attributes();
  attributes.set("group", channels);
  c.set(0, reshape_as(apply(conv_def(), {c.gy(0), weights}, attributes), c.in(0)));
}

}  // namespace

Var col2im(Var x, Var image_shape, Var block_shape, Attributes attributes) {
  return apply(col2im_def(), {x, image_shape, block_shape}, std::move(attributes));
}

const OpDef& col2im_def() {
  static const OpDef def{
      .name = "col2im",
      .doc = "Adds column blocks back into images: the adjoint of cutting sliding windows out.",
      .inputs = {{"input", "T", "[N, C * prod(block_shape), L]: one column per window position."},
                 {"image_shape", "I", "Spatial extents of the image."},
                 {"block_shape", "I", "Extents of the window."}},
      .outputs = {{"output", "T", "[N, C, image_shape...]."}},
      .types = {{"T", dtypes::kNumeric | dtypes::kComplex}, {"I", dtypes::kI64}},
      .attributes = {{"strides", AttributeType::integers, "Step of the window on each spatial axis; default 1."},
                     {"pads", AttributeType::integers, "Padding of the image, begins then ends; default 0."},
                     {"dilations", AttributeType::integers, "Distance between window taps; default 1."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "Col2Im", .since = 18}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
