#include "ops/control/planned_turns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ops/shape/axes.h"

namespace autograph {
namespace {

class PlannedTurns final : public NestedRun {
 public:
  PlannedTurns(TurnLoop loop, size_t first_input, std::optional<int64_t> num_turns)
      : loop_(std::move(loop)), first_input_(first_input), num_turns_(num_turns) {}

  size_t scratch_bytes() const override { return loop_.scratch_bytes(); }

  void run(const Args& args) const override {
    Memory memory(args, first_input_, loop_.plan().states.size());
    loop_.run(*args.sessions.front(), num_turns_ ? *num_turns_ : limit(args.inputs[0]), memory);
  }

 private:
  class Memory final : public TurnMemory {
   public:
    Memory(const Args& args, size_t first_input, size_t num_states)
        : args_(args), first_input_(first_input), num_states_(num_states) {}
    const void* input(size_t i) override {
      static const bool kHolds = true;  // a condition that is not given
      const TensorView& view = args_.inputs[first_input_ + i];
      return view.is_present() ? view.raw() : &kHolds;
    }
    void* state(size_t k) override { return args_.outputs[k].raw(); }
    void* stack(size_t k, int64_t /*turn*/) override { return args_.outputs[num_states_ + k].raw(); }
    void* scratch() override { return args_.scratch; }

   private:
    const Args& args_;
    size_t first_input_, num_states_;
  };

  static int64_t limit(const TensorView& view) {
    return view.is_present() ? *view.data<int64_t>() : std::numeric_limits<int64_t>::max();
  }

  TurnLoop loop_;
  size_t first_input_;
  std::optional<int64_t> num_turns_;
};

// Does the loop give what the node is said to give?
bool gives(const NestedCall& call, const TurnWiring& wiring, const NestedSession& session) {
  const TurnPlan& turns = wiring.turns;
  for (size_t k = 0; k < turns.states.size(); ++k) {
    if (!(session.output_type(turns.states[k].output) == call.outputs[k])) return false;
  }
  for (size_t k = 0; k < turns.stacks.size(); ++k) {
    const TurnPlan::Stack& stack = turns.stacks[k];
    std::vector<Dim> dims = session.output_type(stack.output).shape().dims();
    dims.insert(dims.begin() + front_axis(stack.axis, std::ssize(dims) + 1), Dim(wiring.num_turns.value_or(0)));
    if (!(Shape(std::move(dims)) == call.outputs[turns.states.size() + k].shape())) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<NestedRun> plan_turns(const NestedCall& call, TurnWiring wiring) {
  std::vector<Type> inputs(call.inputs.begin() + static_cast<int64_t>(wiring.first_input), call.inputs.end());
  if (wiring.turns.has_condition && !inputs[1].is_tensor()) inputs[1] = Type(DType::boolean, {});
  const PlannedBody* body = call.plan_body("body", types_in_turn(wiring.turns, inputs),
                                           static_cast<size_t>(call.attributes.integer("num_captures")));
  if (!body) return nullptr;
  const std::unique_ptr<PlannedSession> session = body->new_session();
  if (!gives(call, wiring, *session)) return nullptr;
  TurnLoop loop(std::move(wiring.turns), inputs, *session);
  if (!loop.keeps_types()) return nullptr;
  return std::make_unique<PlannedTurns>(std::move(loop), wiring.first_input, wiring.num_turns);
}

}  // namespace autograph
