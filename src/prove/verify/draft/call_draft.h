// A call of an op of which some inputs and attributes are given and the others are to be chosen, small and varied, so
// that the call is legal. Not every draft can be completed: inference decides afterwards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograph/op_def.h"
#include "prove/verify/draft/choices.h"

namespace autograph {

/// An input of a draft.
struct InputDraft {
  enum class Kind : uint8_t {
    absent,  ///< Not given.
    known,   ///< Given: `dims` are its extents.
    open,    ///< To be chosen: `dims`, or `integers`.
  };
  Kind kind = Kind::open;
  Dims dims = {};
  std::optional<std::vector<int64_t>> integers = {};  ///< Chosen to be an i64 constant with these elements.
  bool positive = false;                              ///< Its elements must be positive.
};

struct CallDraft {
  const OpDef* op = nullptr;
  Attributes attributes = {};          ///< Given ones, later also chosen ones.
  std::vector<std::string> free = {};  ///< Attributes to choose.
  std::vector<InputDraft> inputs = {};
  size_t num_outputs = 1;
  std::vector<Dims> seen = {};  ///< Extents of values made so far: taking them again makes branches fit.

  bool has(size_t slot) const { return slot < inputs.size() && inputs[slot].kind != InputDraft::Kind::absent; }
  bool is_open(size_t slot) const { return slot < inputs.size() && inputs[slot].kind == InputDraft::Kind::open; }
  bool is_known(size_t slot) const { return slot < inputs.size() && inputs[slot].kind == InputDraft::Kind::known; }
  const Dims& dims(size_t slot) const { return inputs[slot].dims; }
  /// Extents of an open input; later questions see it as known.
  void set_dims(size_t slot, Dims dims);
  void set_integers(size_t slot, std::vector<int64_t> integers);

  bool is_free(std::string_view name) const;
  /// Sets a free attribute to one of `options` (nothing: left out); does nothing when it is not free.
  void choose(Choices& choices, std::string_view name, const std::vector<std::optional<AttributeValue>>& options);
  /// Lists that were given as one integer become lists: of `rank` entries, `pads` of twice as many.
  void spell_out_lists(int64_t rank);
};

/// Extents of rank `least`..`most` (at most 4): all of 1..3 up to rank 2, a selection above.
Dims choose_dims(CallDraft& draft, Choices& choices, int64_t least, int64_t most);

/// Extents that broadcast with `dims`: the same, with ones, shorter, longer.
Dims choose_broadcast(Choices& choices, const Dims& dims);

/// Numbers of groups that so many channels can be cut into.
std::vector<std::optional<AttributeValue>> divisors_of(int64_t channels);

/// Any axis of so many, counted from the front or the back.
void choose_axis(CallDraft& draft, Choices& choices, size_t rank);

/// The axis counted from the front, or the nearest that there is; 0 where there is none.
size_t nearest_axis(int64_t axis, size_t rank);

/// Completes the draft; false when there is nothing to propose for it.
bool complete(CallDraft& draft, Choices& choices);

/// What to propose for calls of some ops.
struct CallFamily {
  std::vector<const OpDef*> ops;
  void (*complete)(CallDraft&, Choices&);
};
std::vector<CallFamily> linear_calls();  ///< matmul, gemm, conv.
std::vector<CallFamily> window_calls();  ///< Pools, global pools, reductions.
std::vector<CallFamily> shape_calls();   ///< concat, split, slice, transpose ...
std::vector<CallFamily> row_calls();     ///< Softmax and normalizations.

}  // namespace autograph
