#include "ops/control/turn_loop.h"

#include <cstring>
#include <utility>

#include "base/aligned_size.h"
#include "base/check.h"
#include "ops/shape/axes.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// A loop without limit that keeps no results would otherwise run for ever.
constexpr int64_t kMaxTurns = int64_t{1} << 31;

char* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

int64_t product(const Dims& dims, int64_t begin, int64_t end) {
  int64_t count = 1;
  for (int64_t axis = begin; axis < end; ++axis) count *= dims[static_cast<size_t>(axis)];
  return count;
}

// Copies blocks that lie `from_step` and `to_step` bytes apart.
void copy_blocks(const char* from, size_t from_step, char* to, size_t to_step, size_t bytes, int64_t count) {
  if (bytes == 0) return;
  for (int64_t b = 0; b < count; ++b, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}

}  // namespace

std::vector<Type> types_in_turn(const TurnPlan& plan, std::vector<Type> inputs) {
  if (plan.has_condition) inputs[0] = Type(DType::i64, {});
  for (const TurnPlan::Slice& slice : plan.slices) {
    Type& type = inputs[slice.input];
    std::vector<Dim> dims = type.shape().dims();
    dims.erase(dims.begin() + slice.axis);
    type = Type(type.dtype(), Shape(std::move(dims)));
  }
  return inputs;
}

TurnLoop::TurnLoop(TurnPlan plan, const std::vector<Type>& inputs, const NestedSession& session)
    : plan_(std::move(plan)), num_inputs_(inputs.size()) {
  const std::vector<Type> types = types_in_turn(plan_, inputs);
  if (plan_.has_condition) add_state({1, 0}, types, session);
  for (const TurnPlan::State& state : plan_.states) add_state(state, types, session);
  for (const TurnPlan::Slice& slice : plan_.slices) {
    const Cut cut = cut_of(types[slice.input], slice.axis);
    slices_.push_back({slice.input, cut, slice.is_backwards, take_scratch(cut.is_whole() ? 0 : cut.bytes())});
  }
  for (const TurnPlan::Stack& stack : plan_.stacks) add_stack(stack, session.output_type(stack.output));
}

void TurnLoop::add_stack(const TurnPlan::Stack& stack, const Type& slice) {
  const int64_t rank = slice.shape().rank() + 1;
  AG_CHECK_USER(stack.axis >= -rank && stack.axis < rank, ValueError,
                "[loop] axis: expected {}..{} for rank {}, got {}", -rank, rank - 1, rank, stack.axis);
  const Cut cut = cut_of(slice, front_axis(stack.axis, rank));
  stacks_.push_back({stack.output, cut, stack.is_backwards, take_scratch(cut.is_whole() ? 0 : cut.bytes())});
}

TurnLoop::Cut TurnLoop::cut_of(const Type& slice, int64_t axis) {
  const Dims dims = slice.shape().static_dims();
  return {product(dims, 0, axis),
          static_cast<size_t>(product(dims, axis, std::ssize(dims))) * element_size(slice.dtype())};
}

size_t TurnLoop::take_scratch(size_t bytes) {
  const size_t offset = scratch_bytes_;
  scratch_bytes_ += aligned_size(bytes);
  return offset;
}

void TurnLoop::add_state(const TurnPlan::State& state, const std::vector<Type>& types, const NestedSession& session) {
  const Type& type = types[state.input];
  keeps_types_ = keeps_types_ && session.output_type(state.output) == type;
  const bool is_handed_on = session.hands_on(state.output, state.input);
  const bool is_condition = plan_.has_condition && states_.empty();
  const size_t bytes = size_of(type);
  const size_t scratch = take_scratch(is_handed_on ? 0 : bytes);
  if (is_condition) take_scratch(bytes);
  states_.push_back({state.input, state.output, bytes, is_handed_on, scratch});
}

// One run: what changes from turn to turn.
class TurnLoop::Run {
 public:
  Run(const TurnLoop& loop, NestedSession& session, int64_t num_turns, TurnMemory& memory)
      : loop_(loop), session_(session), num_turns_(num_turns), memory_(memory) {}

  int64_t run() {
    bind_inputs();
    for (; turn_ < num_turns_ && goes_on(); ++turn_) {
      AG_CHECK_USER(turn_ < kMaxTurns, BudgetError, "[loop] turns: more than {}", kMaxTurns);
      for (size_t k = 0; k < loop_.states_.size(); ++k) bind_state(k);
      for (const Part& slice : loop_.slices_) bind_slice(slice);
      for (size_t k = 0; k < loop_.stacks_.size(); ++k) bind_stack(k);
      session_.run();
      for (size_t k = 0; k < loop_.stacks_.size(); ++k) scatter(k);
    }
    for (size_t k = num_conditions(); k < loop_.states_.size(); ++k) leave_state(k);
    return turn_;
  }

 private:
  size_t num_conditions() const { return loop_.plan_.has_condition ? 1 : 0; }

  // States and slices are bound again in each turn.
  void bind_inputs() {
    if (loop_.plan_.has_condition) session_.bind_input(0, &turn_);
    for (size_t i = num_conditions(); i < loop_.num_inputs_; ++i) session_.bind_input(i, memory_.input(i));
  }

  // Where turn `turn` writes state `k`: of the two places in turn, so that the last possible turn writes the result.
  void* place_of(size_t k, int64_t turn) const {
    const State& state = loop_.states_[k];
    const bool is_result = (num_turns_ - turn) % 2 == 1;
    void* const second = at(memory_.scratch(), state.scratch);
    if (!is_result) return second;
    if (k >= num_conditions()) return memory_.state(k - num_conditions());
    return at(second, aligned_size(state.bytes));
  }

  const void* current(size_t k) const {
    const State& state = loop_.states_[k];
    return turn_ == 0 || state.is_handed_on ? memory_.input(state.input) : place_of(k, turn_ - 1);
  }

  bool goes_on() const { return !loop_.plan_.has_condition || *static_cast<const bool*>(current(0)); }

  void bind_state(size_t k) {
    const State& state = loop_.states_[k];
    if (state.is_handed_on) return session_.bind_output(state.output, nullptr);
    session_.bind_input(state.input, current(k));
    session_.bind_output(state.output, place_of(k, turn_));
  }

  void leave_state(size_t k) {
    void* const result = memory_.state(k - num_conditions());
    const void* const last = current(k);
    if (last != result && loop_.states_[k].bytes > 0) std::memcpy(result, last, loop_.states_[k].bytes);
  }

  size_t row(const Part& part) const { return static_cast<size_t>(part.is_backwards ? num_turns_ - 1 - turn_ : turn_); }

  // Bytes from one block of a slice to its next one in the whole tensor.
  size_t step_between(const Part& part) const { return part.cut.block_bytes * static_cast<size_t>(num_turns_); }

  void bind_slice(const Part& slice) {
    const char* const first =
        static_cast<const char*>(memory_.input(slice.number)) + row(slice) * slice.cut.block_bytes;
    if (slice.cut.is_whole()) return session_.bind_input(slice.number, first);
    char* const copy = at(memory_.scratch(), slice.scratch);
    const size_t bytes = slice.cut.block_bytes;
    copy_blocks(first, step_between(slice), copy, bytes, bytes, slice.cut.blocks);
    session_.bind_input(slice.number, copy);
  }

  char* row_of_stack(size_t k) {
    const Part& stack = loop_.stacks_[k];
    return at(memory_.stack(k, turn_), row(stack) * stack.cut.block_bytes);
  }

  void bind_stack(size_t k) {
    const Part& stack = loop_.stacks_[k];
    session_.bind_output(stack.number, stack.cut.is_whole() ? row_of_stack(k) : at(memory_.scratch(), stack.scratch));
  }

  void scatter(size_t k) {
    const Part& stack = loop_.stacks_[k];
    if (stack.cut.is_whole()) return;
    const size_t bytes = stack.cut.block_bytes;
    copy_blocks(at(memory_.scratch(), stack.scratch), bytes, row_of_stack(k), step_between(stack), bytes,
                stack.cut.blocks);
  }

  const TurnLoop& loop_;
  NestedSession& session_;
  const int64_t num_turns_;
  TurnMemory& memory_;
  int64_t turn_ = 0;
};

int64_t TurnLoop::run(NestedSession& session, int64_t num_turns, TurnMemory& memory) const {
  return Run(*this, session, num_turns, memory).run();
}

}  // namespace autograph
