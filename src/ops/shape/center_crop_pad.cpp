// center_crop_pad: cuts or pads (with zeros) the given axes around their centre to the extents in `shape`. An odd
// difference leaves the extra element at the end.
#include <algorithm>
#include <numeric>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const std::optional<int64_t> length = extents_length(context, 1);
  const Shape& x = context.shape(0);
  const auto target = context.known_integers(1);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), x);
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto* listed = context.attributes().find_as<std::vector<int64_t>>("axes")) {
    axes = normalized_axes(context, *listed, x.rank());
  }
  if (length && *length != static_cast<int64_t>(axes.size())) {
    context.fail<ShapeError>("shape", fmt::format("expected {} values, one per axis, got {}", axes.size(), *length));
  }
  Shape y = x;
  for (size_t k = 0; k < axes.size(); ++k) {
    if (target && (*target)[k] < 0) {
      context.fail<ValueError>("shape", fmt::format("expected extents of 0 or more, got {}", (*target)[k]));
    }
    y[axes[k]] = target ? Dim((*target)[k]) : Dim::unknown();
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  Strided source{0, dense_strides(x.dims())};
  Strided target{0, dense_strides(y.dims())};
  Dims common;
  for (size_t a = 0; a < x.dims().size(); ++a) {
    const int64_t from = x.dims()[a];
    const int64_t to = y.dims()[a];
    common.push_back(std::min(from, to));
    if (from > to) source.start += (from - to) / 2 * source.strides[a];
    if (from < to) target.start += (to - from) / 2 * target.strides[a];
  }
  fill_with(y, {});
  copy_strided(x, source, y, target, common);
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const bool list_axes = draw_bool(random);
  std::vector<int64_t> axes, target;
  for (int64_t a = 0; a < rank; ++a) {
    if (list_axes && a > 0 && draw_bool(random)) continue;
    axes.push_back(draw_bool(random) ? a : a - rank);
    target.push_back(draw(random, 0, 6));
  }
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector(target)}};
  if (list_axes) result.attributes.set("axes", axes);
  return result;
}

// Cuts where it padded and pads where it cut.
void vjp(VjpContext& c) {
  Attributes all_axes = c.attributes();
  all_axes.erase("axes");
  c.set(0, apply(c.op(), {c.gy(0), extents_of(c.in(0))}, all_axes));
}

}  // namespace

Var center_crop_pad(Var x, const std::vector<int64_t>& shape, const std::vector<int64_t>& axes) {
  return apply(center_crop_pad_def(), {x, constant_like(x, Tensor::vector(shape))}, {{"axes", axes}});
}

const OpDef& center_crop_pad_def() {
  static const OpDef def{
      .name = "center_crop_pad",
      .doc = "Cuts or pads axes around their centre to given extents.",
      .inputs = {{"input_data", "T", "Any shape."},
                 {"shape", "I", "[axes] or, of a single axis, a scalar: extents to reach."}},
      .outputs = {{"output_data", "T", "Shape of input_data with the extents of `shape`."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kIndex}},
      .attributes = {{"axes", AttributeType::integers, "The axes that `shape` is about; all when absent."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .onnx = {{"CenterCropPad", 18}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
