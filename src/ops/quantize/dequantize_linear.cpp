// dequantize_linear: y = (x - zero_point) * scale, computed exactly and rounded once to the dtype of y.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/quantize/granularity.h"
#include "ops/sample.h"
#include "tensor/element_types.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

using SourceTypes = TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t, Int4, UInt4, Int2, UInt2, Float8E4M3FN,
                             Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float4E2M1, Float6E2M3, Float6E3M2>;
using TargetTypes = TypeList<float, Half, BFloat16>;
using ScaleTypes = TypeList<float, Half, BFloat16, Float8E8M0>;
constexpr DTypeSet kSources{DType::i8,         DType::u8,       DType::i16,        DType::u16,
                            DType::i32,        DType::i4,       DType::u4,         DType::i2,
                            DType::u2,         DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
                            DType::f8e5m2fnuz, DType::f4e2m1,   DType::f6e2m3,     DType::f6e3m2};
constexpr DTypeSet kTargets{DType::f32, DType::f16, DType::bf16};

void infer(InferContext& context) {
  check_granularity(context);
  const DType asked = context.attributes().get_or("output_dtype", DType::undefined);
  const DType out = asked != DType::undefined ? asked : context.dtype(1);
  context.require<TypeError>(kTargets.contains(out), "output_dtype",
                             "expected " + to_string(kTargets) + ", got " + std::string(to_string(out)));
  context.set_output(0, out, context.shape(0));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  if (x.num_elements() == 0) return;
  const Granularity scale_of(call.attributes, x, call.input(1));
  std::vector<double> scales;
  dispatch<ScaleTypes>(call.input(1).dtype(), [&]<class S>(TypeTag<S>) {
    for (const S& s : call.input(1).elements<S>()) scales.push_back(static_cast<double>(s));
  });
  std::vector<double> values(static_cast<size_t>(x.num_elements()));
  dispatch<SourceTypes>(x.dtype(), [&]<class X>(TypeTag<X>) {
    const X* in = x.data<X>();
    const X* zero = call.input(2).is_present() ? call.input(2).data<X>() : nullptr;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t k = scale_of(i);
      const double shift = zero ? static_cast<double>(zero[k]) : 0.0;
      values[static_cast<size_t>(i)] = (static_cast<double>(in[i]) - shift) * scales[static_cast<size_t>(k)];
    }
  });
  dispatch<TargetTypes>(call.output(0).dtype(), [&]<class Y>(TypeTag<Y>) {
    Y* out = call.output(0).mutable_data<Y>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = Y(values[i]);
  });
}

// Sums over all axes but `axis`: [extent of axis].
Var sums_along(const Var& x, int64_t axis) {
  std::vector<int64_t> others;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (a != axis) others.push_back(a);
  }
  return others.empty() ? x : reduce_sum(x, others, false);
}

// Sums of the blocks along `axis`, the last of which may be short.
Var sums_of_blocks(VjpContext& c, const Var& x, int64_t axis) {
  if (!x.type().is_static()) c.unsupported("its rule needs known extents where scales are of blocks");
  const int64_t block = c.attributes().integer("block_size"), extent = x.dim(axis);
  const int64_t blocks = (extent + block - 1) / block;
  Dims dims = x.shape().static_dims(), pads(2 * dims.size(), 0);
  pads[dims.size() + static_cast<size_t>(axis)] = blocks * block - extent;
  dims[static_cast<size_t>(axis)] = blocks;
  dims.insert(dims.begin() + axis + 1, block);
  return reduce_sum(reshape(pad(x, pads), dims), {axis + 1}, false);
}

// The elements of x are whole numbers or few bits wide: only the scale moves, whose slope is x - zero_point, the same
// op with scales of 1.
void vjp(VjpContext& c) {
  const Var scale = c.in(1), gradient = as_wide(c.gy(0));
  if (!c.wants(1)) return;
  Attributes attributes = c.attributes();
  attributes.set("output_dtype", gradient.dtype());
  const Var slope = apply(c.op(), {c.in(0), filled_like(scale, 1), c.in(2)}, attributes);
  const Var parts = gradient * slope;
  if (!parts.shape().has_rank() || !scale.shape().has_rank()) c.unsupported("its rule needs known ranks");
  if (scale.shape().num_elements() == 1) {
    return c.set(1, cast(reshape_as(reduce_sum(parts, {}, false), scale), scale.dtype()));
  }
  const int64_t axis = front_axis(c.attributes().integer("axis"), parts.rank());
  const bool is_blocked = c.attributes().integer("block_size") > 0;
  c.set(1, cast(is_blocked ? sums_of_blocks(c, parts, axis) : sums_along(parts, axis), scale.dtype()));
}

OpSample sample(Random& random) {
  // A legal call of quantize_linear, turned round.
  const OpSample forward = quantize_linear_def().sample(random);
  const DType dtype = draw_one_of(random, {DType::u8, DType::i8, DType::i16, DType::i32, DType::u4, DType::f8e5m2});
  const Tensor scale = forward.inputs[1].tensor();
  OpSample sample{.inputs = {draw_tensor(random, dtype, forward.inputs[0].tensor().dims(), 0, 7), scale}};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, dtype, scale.dims(), 0, 3));
  for (const char* name : {"axis", "block_size"}) {
    if (const AttributeValue* value = forward.attributes.find(name)) sample.attributes.set(name, *value);
  }
  if (draw_bool(random)) sample.attributes.set("output_dtype", DType::f16);
  return sample;
}

}  // namespace

Var dequantize_linear(Var x, Var scale, Var zero_point, int64_t axis) {
  return apply(dequantize_linear_def(), {x, scale, zero_point}, {{"axis", axis}});
}

const OpDef& dequantize_linear_def() {
  static const OpDef def{
      .name = "dequantize_linear",
      .doc = "y = (x - zero_point) * scale, per tensor, per axis or per block.",
      .inputs = {{"x", "T1", "Any shape."},
                 {"x_scale", "T2", "Scalar, [extent of axis], or the shape of x with blocks along axis."},
                 {"x_zero_point", "T1", "Shape of the scale; default 0.", Arity::optional}},
      .outputs = {{"y", "T3", "Shape of x."}},
      .types = {{"T1", kSources}, {"T2", {DType::f32, DType::f16, DType::bf16, DType::f8e8m0}}, {"T3", kTargets}},
      .attributes = {{"axis", AttributeType::integer, "Axis of the scales.", int64_t{1}},
                     {"block_size", AttributeType::integer, "Elements per scale along axis; 0: not blocked.",
                      int64_t{0}},
                     {"output_dtype", AttributeType::dtype, "Dtype of y; default that of the scale."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "DequantizeLinear", .since = 10, .export_since = 21}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
