// AxisTrace: where the elements of a tensor lie in an earlier one, when all that happened in between is that elements
// were moved: transposes, views, one position picked along an axis, heads repeated, a scalar factor.
//
// Every axis is a list of parts, outermost first. A part belongs to an axis of the traced tensor, to a position that
// was picked, or to nothing (repeats). So the trace of q in
//
//   qkv [batch, length, 3 * heads * size] -> [batch, length, 3, heads, size] -> transpose to [3, batch, heads, length,
//   size]
//   -> q = [0] of it: [batch, heads, length, size]
//
// finds that the last axis of qkv holds (picked 0 of 3, heads, size). Parts of extent 1 are left out: they can stand
// anywhere. Extents may be symbolic as long as no reshape splits them.
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// A piece of an axis.
struct AxisPart {
  static constexpr int64_t kPicked = -1;

  int64_t role = 0;   ///< The axis of the traced tensor it belongs to; kPicked: one position of it was picked.
  Dim extent = {};    ///< Its extent, never 1.
  int64_t inner = 1;  ///< How many positions along the traced axis one step of it makes.
  int64_t index = 0;  ///< The position, for picked parts.
};

class AxisTrace {
 public:
  /// Which of the steps that are more than moves to follow.
  struct Options {
    bool scales = false;   ///< Products and quotients with a scalar constant.
    bool repeats = false;  ///< Repeated positions.
  };

  /// The trace of `v` to itself; `v` must be a tensor of known rank.
  AxisTrace(const Graph& graph, ValueId v, Options options);

  /// Goes one node back; false, and nothing changes, when that node does more than move elements.
  bool step_back();

  /// Follows the moves of `reader`, which reads source(), forwards; likewise.
  bool step_forward(const Node& reader);

  /// The earlier (or later) tensor.
  ValueId source() const { return source_; }
  /// The axes of source().
  const std::vector<std::vector<AxisPart>>& axes() const { return axes_; }
  /// The parts of all axes, outermost first.
  std::vector<AxisPart> parts() const;
  /// The traced tensor is source() times this.
  double scale() const { return scale_; }
  /// How often each position along the traced axis `repeated_role()` occurs, one after the other; 1: no repeats.
  int64_t repeats() const { return repeats_; }
  int64_t repeated_role() const { return repeated_role_; }

 private:
  bool enter_view(ValueId input);
  bool enter_transpose(const Node& node);
  bool enter_pick(const Node& node);
  bool enter_slice(const Node& node);
  bool enter_split(const Node& node);
  bool enter_expand(const Node& node);
  bool enter_scale(const Node& node);

  const Graph* graph_;
  Options options_;
  ValueId source_;
  std::vector<std::vector<AxisPart>> axes_;
  double scale_ = 1;
  int64_t repeats_ = 1;
  int64_t repeated_role_ = -1;
};

/// The parts dealt out to axes of these extents, in order; nothing when they do not fit or cannot be told apart.
std::optional<std::vector<std::vector<AxisPart>>> regroup(const std::vector<AxisPart>& parts, const Shape& shape);

}  // namespace autograph
