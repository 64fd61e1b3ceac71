// Tensors that are written where they will be concatenated, so that the concatenation has nothing left to copy; and
// pieces of a split that are read where they lie. Parts that have a piece in every row of the whole, as channels of
// channels-last tensors do, are written there where their kernel can leave gaps between its rows and nothing but the
// concatenation reads them. What a step can write over is made where its output belongs, outside of the arena, too: of
// a cache that grows and gets new rows one copy is left.
//
// Steps are looked at from the last to the first: of two concatenations that begin with the same parts, as the layers
// of a dense block have them, the longer one gets the parts, and the shorter one turns out to be a piece of it.
#include <algorithm>

#include "schedule/plan.h"

namespace autograph {
namespace {

class PartPlacer {
 public:
  explicit PartPlacer(Plan& plan)
      : plan_(plan),
        is_written_(plan.slots.size(), false),
        is_joined_(plan.slots.size(), false),
        spaced_(plan.slots.size(), 0),
        num_uses_(count_uses(plan)) {
    for (const Step& step : plan.steps) {
      for (const SlotIndex s : step.outputs) is_written_[s] = is_written_[s] || step.kind == StepKind::fixed;
      if (step.outputs.size() == 1) spaced_[step.outputs[0]] = step.spaced_row_bytes;
      if (!step.part_offsets.empty()) is_joined_[step.outputs[0]] = true;
    }
  }

  void run() {
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      place_pieces(*step);
      place_written_over(*step);
      if (step->part_offsets.empty() || is_piece(*step)) continue;
      for (size_t k = 0; k < step->inputs.size(); ++k) {
        if (!can_place(*step, k)) continue;
        if (step->joined_row_bytes > 0) space_rows(*step, k);
        move(step->inputs[k], step->outputs[0], step->part_offsets[k]);
      }
    }
  }

 private:
  // The outputs of a step that takes its input apart are pieces of it, unless they leave the run.
  void place_pieces(const Step& step) {
    if (step.piece_offsets.empty() || step.inputs[0] == kNoSlot) return;
    const Slot whole = plan_.slots[step.inputs[0]];
    if (whole.place != Place::arena) return;
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      const Slot& piece = plan_.slots[step.outputs[k]];
      const bool fits = piece.root == step.outputs[k] && piece.place == Place::arena && piece.layout == whole.layout;
      if (fits) move(step.outputs[k], step.inputs[0], step.piece_offsets[k]);
    }
  }

  // An input that nothing else needs, where the step writes its output over it and that leaves the run. Not one that
  // is joined: others may read its parts. Not where the output may have the memory of an input of the run, which others
  // read until that step.
  void place_written_over(Step& step) {
    if (step.kind != StepKind::fixed || step.outputs.size() != 1) return;
    const Slot& out = plan_.slots[step.outputs[0]];
    if (out.place != Place::output || out.root_offset != 0 || out.bytes != plan_.slots[out.root].bytes) return;
    const auto is_shared = [&](const SharedMemory& pair) { return pair.output == out.index; };
    if (std::any_of(plan_.shared.begin(), plan_.shared.end(), is_shared)) return;
    for (const uint32_t index : step.in_place_inputs) {
      if (index >= step.inputs.size() || step.inputs[index] == kNoSlot) continue;
      const SlotIndex s = step.inputs[index];
      const Slot& in = plan_.slots[s];
      const bool fits = in.bytes == out.bytes && in.type.dtype() == out.type.dtype() && in.layout == out.layout;
      const bool is_alone = in.place == Place::arena && in.root == s && num_uses_[s] == 1 && !is_joined_[s];
      if (!fits || !is_alone || !is_written_[s]) continue;
      move(s, step.outputs[0], 0);
      step.in_place = static_cast<int>(index);
      return;
    }
  }

  // Do all parts lie side by side in another slot already? Then so does the whole.
  bool is_piece(const Step& step) {
    const SlotIndex whole = step.outputs[0];
    const Slot& first = plan_.slots[step.inputs[0]];
    if (step.joined_row_bytes > 0) return false;
    if (plan_.slots[whole].root != whole || plan_.slots[whole].place != Place::arena) return false;
    if (first.root == whole || first.place != Place::arena) return false;
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const Slot& part = plan_.slots[step.inputs[k]];
      if (part.root != first.root || part.layout != plan_.slots[whole].layout) return false;
      if (part.root_offset != first.root_offset + step.part_offsets[k]) return false;
    }
    // Pieces of an ordinary tensor that somebody concatenates again are no dense block: the root must be written by
    // parts alone.
    if (!is_made_of_parts(first.root)) return false;
    move(whole, first.root, first.root_offset);
    return true;
  }

  bool is_made_of_parts(SlotIndex root) const {
    return std::any_of(plan_.steps.begin(), plan_.steps.end(),
                       [&](const Step& step) { return !step.part_offsets.empty() && step.outputs[0] == root; });
  }

  bool can_place(const Step& step, size_t k) const {
    const SlotIndex s = step.inputs[k];
    const Slot& part = plan_.slots[s];
    const Slot& whole = plan_.slots[step.outputs[0]];
    if (part.root != s || part.place != Place::arena || !is_written_[s] || part.layout != whole.layout) return false;
    if (std::count(step.inputs.begin(), step.inputs.end(), s) != 1) return false;
    if (step.joined_row_bytes == 0) return true;
    return num_uses_[s] == 1 && spaced_[s] > 0 && spaced_[s] == row_bytes_of_part(step, k);
  }

  // Bytes of part `k` in each row of the whole.
  size_t row_bytes_of_part(const Step& step, size_t k) const {
    const size_t rows = plan_.slots[step.outputs[0]].bytes / step.joined_row_bytes;
    return rows > 0 ? plan_.slots[step.inputs[k]].bytes / rows : 0;
  }

  void space_rows(const Step& step, size_t k) {
    const Slot& whole = plan_.slots[step.outputs[0]];
    Slot& part = plan_.slots[step.inputs[k]];
    part.row_bytes = row_bytes_of_part(step, k);
    part.row_stride = whole.row_stride > 0 ? whole.row_stride : step.joined_row_bytes;
  }

  // Puts `s`, and what lies in it, into `target` at `offset`.
  void move(SlotIndex s, SlotIndex target, size_t offset) {
    const SlotIndex root = plan_.slots[target].root;
    const size_t base = plan_.slots[target].root_offset + offset;
    for (Slot& slot : plan_.slots) {
      if (slot.root != s) continue;
      slot.root = root;
      slot.root_offset += base;
      slot.place = plan_.slots[root].place;
      slot.index = plan_.slots[root].index;
    }
  }

  Plan& plan_;
  std::vector<bool> is_written_;  // by slot: by a fixed step
  std::vector<bool> is_joined_;   // by slot: by a step that puts its inputs together
  std::vector<size_t> spaced_;    // by slot: bytes of a row, where its kernel can write rows apart
  std::vector<int> num_uses_;     // by slot
};

}  // namespace

void place_parts(Plan& plan) { PartPlacer(plan).run(); }

}  // namespace autograph
