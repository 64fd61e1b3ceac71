#include "ops/control/turns.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "graph/nested/nested_session.h"
#include "ops/control/slices.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// A loop that may end at any turn starts with room for this many slices of what it stacks, and doubles it.
constexpr int64_t kFirstRoom = 32;
// Stacks up to this size get all the room at once.
constexpr int64_t kMaxBytesAhead = int64_t{1} << 20;
// A loop without limit that keeps no results would otherwise run for ever.
constexpr int64_t kMaxTurns = int64_t{1} << 31;

char* bytes_of(const Tensor& tensor) { return const_cast<char*>(static_cast<const char*>(tensor.raw())); }

// One output of all turns: a tensor with a new axis.
class Stacked {
 public:
  Stacked(EvaluateContext& context, const TurnPlan::Stack& stack, const Type& slice, int64_t num_turns, bool is_sure)
      : context_(context), stack_(stack), dims_(slice.shape().static_dims()), dtype_(slice.dtype()) {
    const auto rank = static_cast<int64_t>(dims_.size()) + 1;
    AG_CHECK_USER(stack.axis >= -rank && stack.axis < rank, ValueError,
                  "[loop] axis: expected {}..{} for rank {}, got {}", -rank, rank - 1, rank, stack.axis);
    axis_ = front_axis(stack.axis, rank);
    slice_bytes_ = static_cast<int64_t>(element_size(dtype_));
    for (const int64_t extent : dims_) slice_bytes_ *= extent;
    int64_t all_bytes = 0;
    const bool fits = !__builtin_mul_overflow(num_turns, std::max<int64_t>(slice_bytes_, 1), &all_bytes);
    const bool is_whole = is_sure || (fits && all_bytes <= kMaxBytesAhead);
    make_room(is_whole ? num_turns : std::min(num_turns, kFirstRoom));
  }

  // Where the slice of a turn is written.
  void* place_of(int64_t turn) {
    if (turn >= room_) make_room(room_ * 2);
    return bytes_of(rows_) + (is_backwards() ? room_ - 1 - turn : turn) * slice_bytes_;
  }

  // All slices, once there are no more turns.
  Tensor finish(int64_t turns) {
    Dims dims = dims_;
    dims.insert(dims.begin(), turns);
    char* const first = bytes_of(rows_) + (is_backwards() ? room_ - turns : 0) * slice_bytes_;
    Tensor rows =
        turns == room_ ? rows_.reshaped(dims) : Tensor::wrap(dtype_, dims, first, std::make_shared<Tensor>(rows_));
    if (axis_ == 0) return rows;
    // By rows it could be written in place; the axis is moved once, at the end.
    dims.erase(dims.begin());
    dims.insert(dims.begin() + axis_, turns);
    const Tensor result = context_.allocate(dtype_, dims);
    Strided target{0, dense_strides(dims)};
    const int64_t step = target.strides[static_cast<size_t>(axis_)];
    target.strides.erase(target.strides.begin() + axis_);
    target.strides.insert(target.strides.begin(), step);
    copy_strided(rows.view(), {0, dense_strides(rows.dims())}, result.view(), target, rows.dims());
    return result;
  }

 private:
  // Only scans do that, for which there is room for all rows from the beginning.
  bool is_backwards() const { return stack_.is_backwards; }

  void make_room(int64_t room) {
    Dims dims = dims_;
    dims.insert(dims.begin(), room);
    const Tensor rows = context_.allocate(dtype_, dims);
    if (room_ > 0) std::memcpy(bytes_of(rows), rows_.raw(), static_cast<size_t>(room_ * slice_bytes_));
    rows_ = rows;
    room_ = room;
  }

  EvaluateContext& context_;
  TurnPlan::Stack stack_;
  Dims dims_;  // of a slice
  DType dtype_;
  int64_t axis_ = 0;
  int64_t slice_bytes_ = 0;
  Tensor rows_;
  int64_t room_ = 0;
};

// A state and the two buffers that it alternates between.
class TurnState {
 public:
  TurnState(EvaluateContext& context, const TurnPlan::State& wiring, const Tensor& initial, bool is_handed_on)
      : wiring_(wiring), current_(initial), is_handed_on_(is_handed_on) {
    if (is_handed_on) return;
    for (Tensor& buffer : buffers_) buffer = context.allocate(initial.dtype(), initial.dims());
  }

  void bind(NestedSession& session) {
    if (is_handed_on_) return session.bind_output(wiring_.output, nullptr);
    session.bind_input(wiring_.input, current_.raw());
    session.bind_output(wiring_.output, buffers_[next_].mutable_raw());
  }

  void advance() {
    if (is_handed_on_) return;
    current_ = buffers_[next_];
    next_ = 1 - next_;
  }

  const Tensor& current() const { return current_; }

 private:
  TurnPlan::State wiring_;
  Tensor current_;
  std::array<Tensor, 2> buffers_;
  size_t next_ = 0;
  bool is_handed_on_;
};

// A slice that a turn reads: where it lies, or a copy where it is scattered.
class TurnSlice {
 public:
  TurnSlice(EvaluateContext& context, const TurnPlan::Slice& wiring, const Tensor& first) : wiring_(wiring) {
    strides_ = dense_strides(wiring.whole.dims());
    if (wiring.axis > 0 && !is_block()) copy_ = context.allocate(first.dtype(), first.dims());
  }

  void bind(NestedSession& session, int64_t turn, int64_t num_turns) {
    const int64_t at = wiring_.is_backwards ? num_turns - 1 - turn : turn;
    const int64_t start = at * strides_[static_cast<size_t>(wiring_.axis)];
    if (!copy_.is_present()) {
      const auto bytes = static_cast<int64_t>(element_size(wiring_.whole.dtype()));
      session.bind_input(wiring_.input, static_cast<const char*>(wiring_.whole.raw()) + start * bytes);
      return;
    }
    Strided source{start, strides_};
    source.strides.erase(source.strides.begin() + wiring_.axis);
    copy_strided(wiring_.whole.view(), source, copy_.view(), {0, dense_strides(copy_.dims())}, copy_.dims());
    session.bind_input(wiring_.input, copy_.raw());
  }

 private:
  // Are the axes in front all of extent 1?
  bool is_block() const {
    const Dims& dims = wiring_.whole.dims();
    return std::all_of(dims.begin(), dims.begin() + wiring_.axis, [](int64_t extent) { return extent == 1; });
  }

  TurnPlan::Slice wiring_;
  std::vector<int64_t> strides_;
  Tensor copy_;
};

// Do the types of the states stay as they are?
bool keeps_types(const NestedSession& session, const TurnPlan& plan, const std::vector<Datum>& inputs) {
  const auto keeps = [&](size_t input, size_t output) {
    return session.output_type(output) == inputs[input].tensor().type();
  };
  if (plan.has_condition && !keeps(1, 0)) return false;
  return std::all_of(plan.states.begin(), plan.states.end(),
                     [&](const TurnPlan::State& state) { return keeps(state.input, state.output); });
}

class TurnRunner {
 public:
  TurnRunner(EvaluateContext& context, const TurnPlan& plan, const std::vector<Datum>& inputs, NestedSession& session)
      : plan_(plan), session_(session) {
    if (plan.has_condition) {
      states_.emplace_back(context, TurnPlan::State{1, 0}, inputs[1].tensor(), session.hands_on(0, 1));
      session.bind_input(0, &turn_);
    }
    for (const auto& state : plan.states) {
      states_.emplace_back(context, state, inputs[state.input].tensor(), session.hands_on(state.output, state.input));
    }
    for (const auto& slice : plan.slices) slices_.emplace_back(context, slice, inputs[slice.input].tensor());
    const bool is_sure = !plan.has_condition;
    for (const auto& stack : plan.stacks) {
      stacks_.emplace_back(context, stack, session.output_type(stack.output), plan.num_turns, is_sure);
    }
  }

  std::vector<Datum> run() {
    do {
      AG_CHECK_USER(turn_ < kMaxTurns, BudgetError, "[loop] turns: more than {}", kMaxTurns);
      for (TurnState& state : states_) state.bind(session_);
      for (TurnSlice& slice : slices_) slice.bind(session_, turn_, plan_.num_turns);
      for (size_t k = 0; k < stacks_.size(); ++k) {
        session_.bind_output(plan_.stacks[k].output, stacks_[k].place_of(turn_));
      }
      session_.run();
      for (TurnState& state : states_) state.advance();
      ++turn_;
    } while (turn_ < plan_.num_turns && goes_on());
    std::vector<Datum> results;
    for (size_t k = plan_.has_condition ? 1 : 0; k < states_.size(); ++k) results.emplace_back(states_[k].current());
    for (Stacked& stack : stacks_) results.emplace_back(stack.finish(turn_));
    return results;
  }

 private:
  bool goes_on() const { return !plan_.has_condition || *static_cast<const bool*>(states_.front().current().raw()); }

  const TurnPlan& plan_;
  NestedSession& session_;
  std::vector<TurnState> states_;  // the condition first, where there is one
  std::vector<TurnSlice> slices_;
  std::vector<Stacked> stacks_;
  int64_t turn_ = 0;
};

}  // namespace

std::optional<std::vector<Datum>> run_turns(EvaluateContext& context, const TurnPlan& plan, std::vector<Datum> inputs) {
  for (const TurnPlan::Slice& slice : plan.slices) {
    inputs[slice.input] = take_slice(context, slice.whole, slice.axis, 0, 1, true);
  }
  if (plan.has_condition) inputs[0] = Tensor::scalar(int64_t{0});
  const auto is_plain = [](const Datum& datum) { return datum.is_tensor() && datum.tensor().dtype() != DType::string; };
  if (!std::all_of(inputs.begin(), inputs.end(), is_plain)) return std::nullopt;
  const auto* opener = dynamic_cast<const SessionOpener*>(&context);
  const std::unique_ptr<NestedSession> session = opener ? opener->open_nested("body", inputs) : nullptr;
  if (!session || !keeps_types(*session, plan, inputs)) return std::nullopt;
  return TurnRunner(context, plan, inputs, *session).run();
}

}  // namespace autograph
