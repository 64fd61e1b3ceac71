// Ops that copy elements to other places: transpose, slice, expand, tile, split, concat, depth_to_space and
// space_to_depth; bit_cast, to the same ones. Each copy is a pair of walks over the same extents.
#include <numeric>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"
#include "ops/shape/slice_range.h"
#include "ops/vision/depth_space_blocks.h"

namespace autograph::gpu {
namespace {

// Below this there would be too few items that copy four elements.
constexpr int64_t kElementsForFours = 1 << 14;

// Element i of `from`, in input `input`, becomes element i of `to`, in output `output`.
struct Move {
  size_t input = 0;
  size_t output = 0;
  Walk from;
  Walk to;
};

using Moves = std::optional<std::vector<Move>>;  // nothing: operands that are not known now

Walk whole(const Dims& dims) { return {dims, row_major_strides(dims), 0}; }

Moves transpose_moves(const KernelCall& call) {
  const Dims in = call.input_dims(0);
  const Dims out = call.output_dims(0);
  const auto* perm = call.attributes.find_as<std::vector<int64_t>>("perm");
  const Dims strides = row_major_strides(in);
  Walk from{out, Dims(out.size()), 0};
  for (size_t a = 0; a < out.size(); ++a) {
    const auto rank = static_cast<int64_t>(in.size());
    from.strides[a] = strides[perm ? static_cast<size_t>(front_axis((*perm)[a], rank)) : in.size() - 1 - a];
  }
  return std::vector<Move>{{0, 0, from, whole(out)}};
}

Moves slice_moves(const KernelCall& call) {
  const Dims in = call.input_dims(0);
  const Dims out = call.output_dims(0);
  const auto starts = known_integers(call, 1);
  const auto ends = known_integers(call, 2);
  if (!starts || !ends || (call.has_input(3) && !call.constant(3)) || (call.has_input(4) && !call.constant(4))) {
    return std::nullopt;
  }
  Dims axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has_input(3)) axes = *known_integers(call, 3);
  const Dims steps = call.has_input(4) ? *known_integers(call, 4) : Dims(axes.size(), 1);
  Walk from{out, row_major_strides(in), 0};
  for (size_t k = 0; k < axes.size() && num_elements(out) > 0; ++k) {
    const auto axis = static_cast<size_t>(front_axis(axes[k], static_cast<int64_t>(in.size())));
    const SliceRange range = slice_range((*starts)[k], (*ends)[k], steps[k], in[axis]);
    from.offset += range.start * from.strides[axis];
    from.strides[axis] = range.count > 1 ? range.step * from.strides[axis] : 0;
  }
  return std::vector<Move>{{0, 0, from, whole(out)}};
}

Moves expand_moves(const KernelCall& call) {
  const Dims out = call.output_dims(0);
  return std::vector<Move>{{0, 0, broadcast_walk(call.input_dims(0), out), whole(out)}};
}

// Seen as [r0, d0, r1, d1, ...] the output is the input broadcast along every r.
Moves tile_moves(const KernelCall& call) {
  const Dims in = call.input_dims(0);
  const Dims out = call.output_dims(0);
  const Dims strides = row_major_strides(in);
  Walk from;
  for (size_t a = 0; a < in.size(); ++a) {
    from.extents.insert(from.extents.end(), {in[a] == 0 ? 0 : out[a] / in[a], in[a]});
    from.strides.insert(from.strides.end(), {0, strides[a]});
  }
  return std::vector<Move>{{0, 0, from, whole(from.extents)}};
}

// Pieces of a tensor of dims `all` along `axis`, of the dims of these types.
std::vector<Walk> pieces(const Dims& all, size_t axis, std::span<const Type> types) {
  std::vector<Walk> walks;
  int64_t at = 0;
  for (const Type& type : types) {
    const Dims dims = type.shape().static_dims();
    const Dims strides = row_major_strides(all);
    walks.push_back({dims, strides, at * strides[axis]});
    at += dims[axis];
  }
  return walks;
}

Moves split_moves(const KernelCall& call) {
  const Dims in = call.input_dims(0);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(in.size())));
  std::vector<Move> moves;
  const std::vector<Walk> walks = pieces(in, axis, call.outputs);
  for (size_t k = 0; k < walks.size(); ++k) moves.push_back({0, k, walks[k], whole(walks[k].extents)});
  return moves;
}

Moves concat_moves(const KernelCall& call) {
  const Dims out = call.output_dims(0);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(out.size())));
  std::vector<Move> moves;
  const std::vector<Walk> walks = pieces(out, axis, call.inputs);
  for (size_t k = 0; k < walks.size(); ++k) moves.push_back({k, 0, whole(walks[k].extents), walks[k]});
  return moves;
}

Moves depth_space_moves(const KernelCall& call) {
  const bool to_space = &call.op == &depth_to_space_def();
  const Dims wide = to_space ? call.output_dims(0) : call.input_dims(0);
  const auto* mode = call.attributes.find_as<std::string>("mode");
  const DepthSpaceBlocks blocks =
      make_depth_space_blocks(wide, call.attributes.integer("blocksize"), mode && *mode == "CRD");
  const Walk deep_walk{blocks.dims, blocks.deep, 0};
  const Walk wide_walk{blocks.dims, blocks.wide, 0};
  return std::vector<Move>{to_space ? Move{0, 0, deep_walk, wide_walk} : Move{0, 0, wide_walk, deep_walk}};
}

Moves moves_of(const KernelCall& call) {
  if (&call.op == &bit_cast_def())
    return std::vector<Move>{{0, 0, whole(call.input_dims(0)), whole(call.input_dims(0))}};
  if (&call.op == &transpose_def()) return transpose_moves(call);
  if (&call.op == &slice_def()) return slice_moves(call);
  if (&call.op == &expand_def()) return expand_moves(call);
  if (&call.op == &tile_def()) return tile_moves(call);
  if (&call.op == &split_def()) return split_moves(call);
  if (&call.op == &concat_def()) return concat_moves(call);
  return depth_space_moves(call);
}

// Four neighbours at once where they are neighbours in both places.
void write_move(Writer& writer, const Move& move, std::string_view type) {
  const int64_t count = num_elements(move.from.extents);
  const bool in_fours = count % 4 == 0 && count >= kElementsForFours && type != "u128" && walks_in_fours(move.from) &&
                        walks_in_fours(move.to);
  writer.begin_items({input_parameter("x", type, move.input), output_parameter("y", type, move.output)},
                     in_fours ? count / 4 : count);
  const auto at = [&](const Walk& walk) { return position(writer.index(), in_fours ? "(i * 4)" : "i", walk); };
  if (in_fours) {
    writer.line("{} four[4];", type);
    writer.line("LOAD4(four, x + ({}));", at(move.from));
    writer.line("STORE4(y + ({}), four);", at(move.to));
  } else {
    writer.line("y[{}] = x[{}];", at(move.to), at(move.from));
  }
  writer.end();
}

}  // namespace

Emitted emit_moves(const KernelCall& call, const Target& target) {
  const Moves moves = moves_of(call);
  if (!moves) return refused("positions that are computed");
  const std::string_view type = raw_type(call.inputs[0].dtype());
  Writer writer(target);
  cover_operands(writer.index(), call);
  for (const Move& move : *moves) write_move(writer, move, type);
  return writer.finish();
}

}  // namespace autograph::gpu
