// depth_to_space and space_to_depth: move b*b channels of an NCHW tensor into b x b spatial blocks, and back. With the
// deep channel axis seen as three, the modes differ in where the channel stands:
//   DCR  [row in block, column in block, channel]
//   CRD  [channel, row in block, column in block]
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"
#include "ops/vision/depth_space_blocks.h"

namespace autograph {
namespace {

int64_t checked_blocksize(const InferContext& context) {
  const int64_t block = context.attributes().integer("blocksize");
  if (block < 1) context.fail<ValueError>("blocksize", fmt::format("expected 1 or more, got {}", block));
  return block;
}

Dim divided(const InferContext& context, const Dim& extent, int64_t divisor, std::string_view what) {
  if (extent.is_known() && extent.value() % divisor != 0) {
    context.fail<ShapeError>(what, fmt::format("expected a multiple of {}, got {}", divisor, extent.value()));
  }
  return extent.is_unknown() ? extent : floor_div(extent, divisor);
}

void infer_to_space(InferContext& context) {
  context.require_rank(0, 4);
  const int64_t block = checked_blocksize(context);
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::of_rank(4));
  const int64_t area = checked_mul(block, block, "depth_to_space");
  context.set_output(0, context.dtype(0),
                     {x[0], divided(context, x[1], area, "channels"), x[2] * Dim(block), x[3] * Dim(block)});
}

void infer_to_depth(InferContext& context) {
  context.require_rank(0, 4);
  const int64_t block = checked_blocksize(context);
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::of_rank(4));
  const int64_t area = checked_mul(block, block, "space_to_depth");
  context.set_output(
      0, context.dtype(0),
      {x[0], x[1] * Dim(area), divided(context, x[2], block, "height"), divided(context, x[3], block, "width")});
}

void to_space(const OpCall& call) {
  const DepthSpaceBlocks blocks = make_depth_space_blocks(call.output(0).dims(), call.attributes.integer("blocksize"),
                                                          call.attributes.text("mode") == "CRD");
  copy_strided(call.input(0), {0, blocks.deep}, call.output(0), {0, blocks.wide}, blocks.dims);
}

void to_depth(const OpCall& call) {
  const DepthSpaceBlocks blocks = make_depth_space_blocks(call.input(0).dims(), call.attributes.integer("blocksize"),
                                                          call.attributes.text("mode") == "CRD");
  copy_strided(call.input(0), {0, blocks.wide}, call.output(0), {0, blocks.deep}, blocks.dims);
}

Attributes draw_attributes(Random& random, int64_t block) {
  return {{"blocksize", block}, {"mode", std::string(draw_bool(random) ? "DCR" : "CRD")}};
}

OpSample sample_to_space(Random& random) {
  const int64_t block = draw(random, 1, 3);
  Dims dims = draw_dims(random, 4, 4, 3);
  dims[1] *= block * block;
  return {.inputs = {draw_tensor(random, DType::f32, dims)}, .attributes = draw_attributes(random, block)};
}

OpSample sample_to_depth(Random& random) {
  const int64_t block = draw(random, 1, 3);
  Dims dims = draw_dims(random, 4, 4, 3);
  dims[2] *= block;
  dims[3] *= block;
  return {.inputs = {draw_tensor(random, DType::f32, dims)}, .attributes = draw_attributes(random, block)};
}

std::vector<AttributeSpec> specs() {
  return {{.name = "blocksize", .doc = "Rows and columns of a block, 1 or more.", .required = true},
          {.name = "mode",
           .type = AttributeType::text,
           .doc = "Order inside the deep channel axis: DCR or CRD.",
           .default_value = "DCR",
           .allowed = {"DCR", "CRD"}}};
}

}  // namespace

Var depth_to_space(Var x, int64_t blocksize, const std::string& mode) {
  return apply(depth_to_space_def(), {x}, {{"blocksize", blocksize}, {"mode", mode}});
}

Var space_to_depth(Var x, int64_t blocksize, const std::string& mode) {
  return apply(space_to_depth_def(), {x}, {{"blocksize", blocksize}, {"mode", mode}});
}

const OpDef& depth_to_space_def() {
  static const OpDef def{
      .name = "depth_to_space",
      .doc = "Moves blocks of channels into space: [n,c*b*b,h,w] becomes [n,c,h*b,w*b].",
      .inputs = {{"input", "T", "[n, c*b*b, h, w]."}},
      .outputs = {{"output", "T", "[n, c, h*b, w*b]."}},
      .types = {{"T", dtypes::kAll}},
      .attributes = specs(),
      .infer = infer_to_space,
      .reference = to_space,
      .vjp = [](VjpContext& c) { c.set(0, apply(space_to_depth_def(), {c.gy(0)}, c.attributes())); },
      .traits = {.moves = true},
      .onnx = {{.name = "DepthToSpace", .export_since = 11}},
      .sample = sample_to_space,
  };
  return def;
}

const OpDef& space_to_depth_def() {
  static const OpDef def{
      .name = "space_to_depth",
      .doc = "Moves spatial blocks into channels: [n,c,h*b,w*b] becomes [n,c*b*b,h,w].",
      .inputs = {{"input", "T", "[n, c, h*b, w*b]."}},
      .outputs = {{"output", "T", "[n, c*b*b, h, w]."}},
      .types = {{"T", dtypes::kAll}},
      .attributes = specs(),
      .infer = infer_to_depth,
      .reference = to_depth,
      .vjp = [](VjpContext& c) { c.set(0, apply(depth_to_space_def(), {c.gy(0)}, c.attributes())); },
      .traits = {.moves = true},
      .onnx = {{.name = "SpaceToDepth",
                .export_node =
                    [](ExportNode& to) {
                      // The attribute came with opset 28; before it, DCR was the only order.
                      if (to.opset < 28 && to.attributes.text("mode") == "DCR") to.attributes.erase("mode");
                    }}},
      .sample = sample_to_depth,
  };
  return def;
}

}  // namespace autograph
