// Do tensors keep their values from the step that writes them to the last one that reads them, in every order in which
// the streams can run?
//
// Knows nothing of how places were found: it takes the order of steps from what the runtime waits for, and looks at
// every pair of a tensor that is read and a step that writes to the same bytes.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

constexpr uint32_t kNoStep = std::numeric_limits<uint32_t>::max();

// Bytes of the arena (space 0) or of output k of the run (space k + 1), whose memory an input may have, too.
struct Region {
  uint32_t space = 0;
  size_t begin = 0;
  size_t end = 0;
  size_t row_bytes = 0;  // of rows that lie apart; else 0
  size_t row_stride = 0;

  // Rows of `row_bytes`, `row_stride` apart, with `bytes` in all; without gaps where that is 0.
  static Region of(uint32_t space, size_t begin, size_t bytes, size_t row_bytes, size_t row_stride) {
    if (row_stride == 0 || bytes == 0) return {space, begin, begin + bytes};
    return {space, begin, begin + (bytes / row_bytes - 1) * row_stride + row_bytes, row_bytes, row_stride};
  }

  bool is_empty() const { return begin == end; }
  bool overlaps(const Region& other) const {
    if (space != other.space || begin >= other.end || other.begin >= end) return false;
    if (row_stride == 0 || row_stride != other.row_stride) return true;
    // Rows of both, seen from the first one's beginning.
    const size_t apart = begin <= other.begin ? (other.begin - begin) % row_stride
                                              : (row_stride - (begin - other.begin) % row_stride) % row_stride;
    return apart < row_bytes || apart + other.row_bytes > row_stride;
  }
  bool operator==(const Region&) const = default;
};

// Which steps are over when a step begins, as the runtime sees to it: a bit for every pair.
class Reach {
 public:
  explicit Reach(const Plan& plan) : count_(plan.steps.size()), is_total_(plan.stages.empty()) {
    if (is_total_) return;
    words_ = (count_ + 63) / 64;
    bits_.assign(count_ * words_, 0);
    previous_.assign(count_, kNoStep);
    uint32_t covered = 0;
    for (const PlanStage& stage : plan.stages) {
      AG_CHECK(stage.begin == covered, "memory: a stage begins at step {}, the last one ends at {}", stage.begin,
               covered);
      covered = stage.end;
      link(stage);
      for (uint32_t number = stage.begin; number < stage.end; ++number) fill(plan, stage, number);
    }
    AG_CHECK(covered == count_, "memory: {} of {} steps are in a stage", covered, count_);
  }

  bool precedes(uint32_t a, uint32_t b) const {
    if (b == count_) return a != b;  // the end of the run
    if (a == count_) return false;
    return is_total_ ? a < b : (bits_[b * words_ + a / 64] >> (a % 64) & 1) != 0;
  }

 private:
  void link(const PlanStage& stage) {
    if (stage.streams.empty()) {
      for (uint32_t number = stage.begin + 1; number < stage.end; ++number) previous_[number] = number - 1;
      return;
    }
    size_t num_steps = 0;
    for (const auto& stream : stage.streams) {
      num_steps += stream.size();
      for (size_t i = 1; i < stream.size(); ++i) previous_[stream[i]] = stream[i - 1];
    }
    AG_CHECK(num_steps == stage.end - stage.begin, "memory: {} of {} steps are in a stream", num_steps,
             stage.end - stage.begin);
  }

  void fill(const Plan& plan, const PlanStage& stage, uint32_t number) {
    for (uint32_t a = 0; a < stage.begin; ++a) set(number, a);
    if (previous_[number] != kNoStep) follow(number, previous_[number]);
    for (const uint32_t other : plan.steps[number].waits) {
      AG_CHECK(plan.steps[other].is_awaited, "memory: step {} waits for {}, which does not tell", number, other);
      follow(number, other);
    }
  }

  void follow(uint32_t number, uint32_t earlier) {
    AG_CHECK(earlier < number, "memory: step {} waits for {}, which comes later", number, earlier);
    for (size_t w = 0; w < words_; ++w) bits_[number * words_ + w] |= bits_[earlier * words_ + w];
    set(number, earlier);
  }

  void set(uint32_t row, uint32_t column) { bits_[row * words_ + column / 64] |= uint64_t{1} << (column % 64); }

  size_t count_;
  bool is_total_;  // all steps in their order
  size_t words_ = 0;
  std::vector<uint64_t> bits_;
  std::vector<uint32_t> previous_;  // by step: the one before it in its stream
};

class MemoryVerifier {
 public:
  explicit MemoryVerifier(const Plan& plan)
      : plan_(plan), reach_(plan), end_(static_cast<uint32_t>(plan.steps.size())), writer_(plan.slots.size(), kNoStep) {
    for (uint32_t number = 0; number < end_; ++number) {
      for (const SlotIndex s : plan.steps[number].outputs) writer_[s] = number;
      add_writes(number);
    }
  }

  void run() const {
    for (SlotIndex s = 0; s < plan_.slots.size(); ++s) check_bounds(s);
    for (uint32_t number = 0; number < end_; ++number) {
      const Step& step = plan_.steps[number];
      for (size_t k = 0; k < step.inputs.size(); ++k) check_read(number, step.inputs[k], static_cast<int>(k));
    }
    for (const PlanOutput& output : plan_.outputs) {
      check_read(end_, output.slot, -1);
      check_copy(output);
    }
    for (size_t i = 0; i < writes_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) check_pair(writes_[i], writes_[j]);
    }
  }

 private:
  struct Write {
    uint32_t step = 0;
    Region region;
  };

  // Where a slot lies; nowhere for what steps cannot write to.
  Region region_of(SlotIndex s) const {
    if (s == kNoSlot) return {};
    const Slot& slot = plan_.slots[s];
    const auto region_in = [&](uint32_t space, size_t begin) {
      return Region::of(space, begin, slot.bytes, slot.row_bytes, slot.row_stride);
    };
    if (slot.place == Place::arena) return region_in(0, slot.offset);
    if (slot.place == Place::output) return region_in(slot.index + 1, slot.root_offset);
    if (slot.place != Place::input) return {};
    for (const SharedMemory& pair : plan_.shared) {
      if (pair.input == slot.index) return region_in(pair.output + 1, slot.root_offset);
    }
    return {};
  }

  // Where input `k` of a step that joins its inputs belongs.
  Region region_of_part(const Step& step, size_t k) const {
    const Region whole = region_of(step.outputs[0]);
    const size_t bytes = plan_.slots[step.inputs[k]].bytes, row = step.joined_row_bytes;
    const size_t rows = row > 0 ? plan_.slots[step.outputs[0]].bytes / row : 0;
    return Region::of(whole.space, whole.begin + step.part_offsets[k], bytes, rows > 0 ? bytes / rows : 0,
                      rows > 0 ? row : 0);
  }

  // Steps that join their inputs leave alone those that lie where they belong; those that take one apart likewise.
  void add_writes(uint32_t number) {
    const Step& step = plan_.steps[number];
    const Region first_in = step.inputs.empty() ? Region() : region_of(step.inputs[0]);
    if (!step.part_offsets.empty()) {
      const bool is_placed = !region_of(step.outputs[0]).is_empty();
      for (size_t k = 0; is_placed && k < step.inputs.size(); ++k) {
        const Region part = region_of_part(step, k);
        if (region_of(step.inputs[k]) != part) add_write(number, part);
      }
    } else {
      for (size_t k = 0; k < step.outputs.size(); ++k) {
        const Region out = region_of(step.outputs[k]);
        const bool is_piece = !step.piece_offsets.empty() && out.space == first_in.space &&
                              out.begin == first_in.begin + step.piece_offsets[k];
        if (!is_piece) add_write(number, out);
      }
    }
    add_write(number, {0, step.scratch_offset, step.scratch_offset + step.scratch_bytes});
  }

  void add_write(uint32_t number, const Region& region) {
    if (!region.is_empty()) writes_.push_back({number, region});
  }

  void check_bounds(SlotIndex s) const {
    const Region region = region_of(s);
    if (plan_.slots[s].place == Place::input) return;
    const size_t limit = region.space == 0 ? plan_.arena_bytes : plan_.slots[plan_.slots[s].root].bytes;
    AG_CHECK(region.end <= limit, "memory: s{} ends at byte {} of {}", s, region.end, limit);
  }

  // Step `reader`, or the end of the run, reads slot `s`, its input `k`.
  void check_read(uint32_t reader, SlotIndex s, int k) const {
    const Region region = region_of(s);
    if (region.is_empty()) return;
    const bool is_input = plan_.slots[s].place == Place::input;  // written before the run
    const uint32_t writer = writer_[plan_.slots[s].source];
    AG_CHECK(is_input || (writer != kNoStep && reach_.precedes(writer, reader)),
             "memory: step {} reads s{} before it is written", reader, s);
    for (const Write& write : writes_) {
      if ((!is_input && write.step == writer) || !write.region.overlaps(region)) continue;
      if ((!is_input && reach_.precedes(write.step, writer)) || reach_.precedes(reader, write.step)) continue;
      if (write.step == reader && is_in_place(reader, k, write)) continue;
      AG_CHECK(false, "memory: step {} may write over s{} (bytes {} to {}) between its writer {} and its reader {}",
               write.step, s, region.begin, region.end, writer, reader);
    }
  }

  // Copies of outputs come last, in any order: none may write to what another one reads, unless that was taken aside.
  void check_copy(const PlanOutput& output) const {
    const Region source = region_of(output.slot);
    if (output.direct || output.staged || source.is_empty() || source.space == 0) return;
    AG_CHECK(plan_.outputs[source.space - 1].direct, "memory: a copy of s{} reads output {}, which another copy writes",
             output.slot, source.space - 1);
  }

  bool is_in_place(uint32_t number, int k, const Write& write) const {
    const Step& step = plan_.steps[number];
    if (step.in_place != k || step.outputs.size() != 1) return false;
    const Region input = region_of(step.inputs[static_cast<size_t>(k)]);
    return write.region == input && input == region_of(step.outputs[0]);
  }

  // What a step writes is its own while it runs.
  void check_pair(const Write& a, const Write& b) const {
    if (!a.region.overlaps(b.region)) return;
    AG_CHECK(a.step != b.step && (reach_.precedes(a.step, b.step) || reach_.precedes(b.step, a.step)),
             "memory: steps {} and {} may write to bytes {} to {} at the same time", a.step, b.step,
             std::max(a.region.begin, b.region.begin), std::min(a.region.end, b.region.end));
  }

  const Plan& plan_;
  const Reach reach_;
  const uint32_t end_;            // number of the end of the run
  std::vector<uint32_t> writer_;  // by slot
  std::vector<Write> writes_;
};

}  // namespace

void verify_memory(const Plan& plan) { MemoryVerifier(plan).run(); }

}  // namespace autograph
