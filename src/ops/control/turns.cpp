#include "ops/control/turns.h"

#include <algorithm>
#include <cstring>

#include "graph/nested/nested_session.h"
#include "ops/control/slices.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// A loop that may end at any turn starts with room for this many slices of what it stacks, and doubles it.
constexpr int64_t kFirstRoom = 32;
// Stacks up to this size get all the room at once.
constexpr int64_t kMaxBytesAhead = int64_t{1} << 20;

// One output of all turns: a tensor with a new axis.
class Stacked {
 public:
  Stacked(EvaluateContext& context, const Type& slice, int64_t axis, int64_t num_turns, bool is_sure)
      : context_(context), dims_(slice.shape().static_dims()), dtype_(slice.dtype()) {
    const auto rank = static_cast<int64_t>(dims_.size()) + 1;
    axis_ = front_axis(axis, rank);
    auto slice_bytes = static_cast<int64_t>(element_size(dtype_));
    for (const int64_t extent : dims_) slice_bytes *= extent;
    int64_t all_bytes = 0;
    const bool fits = !__builtin_mul_overflow(num_turns, std::max<int64_t>(slice_bytes, 1), &all_bytes);
    const bool is_whole = is_sure || (fits && all_bytes <= kMaxBytesAhead);
    make_room(is_whole ? num_turns : std::min(num_turns, kFirstRoom));
  }

  void* with_room_for(int64_t turn) {
    if (turn >= room_) make_room(room_ * 2);
    return rows_.mutable_raw();
  }

  // All slices, once there are no more turns.
  Tensor finish(int64_t turns) {
    if (turns == room_) return rows_;
    return Tensor::wrap(dtype_, dims_of(turns), rows_.mutable_raw(), std::make_shared<Tensor>(rows_));
  }

 private:
  Dims dims_of(int64_t turns) const {
    Dims dims = dims_;
    dims.insert(dims.begin() + axis_, turns);
    return dims;
  }

  // Rows that lie there already stay: only of loops, whose new axis is the first, there may be some.
  void make_room(int64_t room) {
    Tensor rows = context_.allocate(dtype_, dims_of(room));
    if (room_ > 0 && rows_.size_bytes() > 0) std::memcpy(rows.mutable_raw(), rows_.raw(), rows_.size_bytes());
    rows_ = std::move(rows);
    room_ = room;
  }

  EvaluateContext& context_;
  Dims dims_;  // of a slice
  DType dtype_;
  int64_t axis_ = 0;
  Tensor rows_;
  int64_t room_ = 0;
};

// Memory that a loop takes while the graph around it runs.
class AllocatedTurns final : public TurnMemory {
 public:
  AllocatedTurns(EvaluateContext& context, const TurnLoop& loop, int64_t num_turns, const std::vector<Datum>& inputs,
                 const NestedSession& session)
      : inputs_(inputs), scratch_(context.allocate(DType::u8, {static_cast<int64_t>(loop.scratch_bytes())})) {
    const TurnPlan& plan = loop.plan();
    for (const TurnPlan::State& state : plan.states) {
      const Tensor& first = inputs[state.input].tensor();
      states_.push_back(context.allocate(first.dtype(), first.dims()));
    }
    for (const TurnPlan::Stack& stack : plan.stacks) {
      stacks_.emplace_back(context, session.output_type(stack.output), stack.axis, num_turns, !plan.has_condition);
    }
  }

  const void* input(size_t i) override { return inputs_[i].tensor().raw(); }
  void* state(size_t k) override { return states_[k].mutable_raw(); }
  void* stack(size_t k, int64_t turn) override { return stacks_[k].with_room_for(turn); }
  void* scratch() override { return scratch_.mutable_raw(); }

  // The last states, then the stacks.
  std::vector<Datum> results(int64_t turns) {
    std::vector<Datum> results(states_.begin(), states_.end());
    for (Stacked& stack : stacks_) results.emplace_back(stack.finish(turns));
    return results;
  }

 private:
  const std::vector<Datum>& inputs_;
  Tensor scratch_;
  std::vector<Tensor> states_;
  std::vector<Stacked> stacks_;
};

// What the body is given in the first turn.
std::vector<Datum> in_first_turn(EvaluateContext& context, const TurnPlan& plan, std::vector<Datum> inputs) {
  for (const TurnPlan::Slice& slice : plan.slices) {
    inputs[slice.input] = take_slice(context, inputs[slice.input].tensor(), slice.axis, 0, 1, true);
  }
  if (plan.has_condition) inputs[0] = Tensor::scalar(int64_t{0});
  return inputs;
}

}  // namespace

std::optional<std::vector<Datum>> run_turns(EvaluateContext& context, const TurnPlan& plan, int64_t num_turns,
                                            const std::vector<Datum>& inputs) {
  const std::vector<Datum> first = in_first_turn(context, plan, inputs);
  const auto is_plain = [](const Datum& datum) { return datum.is_tensor() && datum.tensor().dtype() != DType::string; };
  if (!std::all_of(first.begin(), first.end(), is_plain)) return std::nullopt;
  const auto* opener = dynamic_cast<const SessionOpener*>(&context);
  const std::unique_ptr<NestedSession> session = opener ? opener->open_nested("body", first) : nullptr;
  if (!session) return std::nullopt;
  std::vector<Type> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back((inputs[i].is_tensor() ? inputs[i] : first[i]).tensor().type());
  }
  const TurnLoop loop(plan, types, *session);
  if (!loop.keeps_types()) return std::nullopt;
  AllocatedTurns memory(context, loop, num_turns, inputs, *session);
  const int64_t turns = loop.run(*session, num_turns, memory);
  return memory.results(turns);
}

}  // namespace autograph
