#include "engine/nested/nested_kernel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograph/device.h"
#include "autograph/error.h"
#include "base/aligned_size.h"
#include "engine/nested/plan_session.h"
#include "runtime/packing_kernel.h"

namespace autograph {
namespace {

// What kernels of a body may know of its inputs.
struct Captured {
  Captured(const KernelCall& call, size_t num_inputs, size_t num_captures)
      : first(num_inputs - num_captures), first_of_node(call.inputs.size() - num_captures), by_input(num_inputs) {
    for (size_t k = 0; k < num_captures; ++k) {
      if (const Tensor* known = call.constant(first_of_node + k)) by_input[first + k].tensor = *known;
    }
  }

  bool is_any_known() const {
    return std::any_of(by_input.begin(), by_input.end(), [](const StateContents& c) { return c.tensor.is_present(); });
  }
  // What inputs of the node hold now, where they are known and were written.
  void take(std::span<const StateContents> inputs) {
    for (size_t i = first; i < by_input.size(); ++i) {
      const StateContents& now = inputs[first_of_node + i - first];
      if (now.tensor.is_present()) by_input[i] = now;
    }
  }

  size_t first, first_of_node;  // captured inputs of the body and of the node
  std::vector<StateContents> by_input;
};

class Body final : public PlannedBody {
 public:
  Body(std::shared_ptr<const Executable::Impl> impl, std::shared_ptr<PlanEntry> entry, Captured captured)
      : impl_(std::move(impl)), entry_(std::move(entry)), captured_(std::move(captured)) {}
  size_t memory_bytes() const override { return entry_->compiled()->plan.arena_bytes; }
  size_t weight_bytes() const override { return entry_->compiled()->memory.weight_bytes; }
  std::unique_ptr<PlannedSession> new_session() const override { return PlanSession::on_given_arena(*impl_, entry_); }

  void renew(std::span<const StateContents> inputs) {
    captured_.take(inputs);
    impl_->renew_kernels(*entry_->compiled(), captured_.by_input);
  }

 private:
  std::shared_ptr<const Executable::Impl> impl_;
  std::shared_ptr<PlanEntry> entry_;
  Captured captured_;
};

using Bodies = std::vector<std::unique_ptr<Body>>;

struct Sessions final : KernelState {
  std::vector<std::unique_ptr<PlannedSession>> sessions;
};

class NestedKernel final : public PackingKernel {
 public:
  NestedKernel(std::unique_ptr<NestedRun> nested, Bodies bodies)
      : nested_(std::move(nested)), bodies_(std::move(bodies)) {
    for (const auto& body : bodies_) body_bytes_ = std::max(body_bytes_, body->memory_bytes());
  }

  // One body runs at a time.
  size_t scratch_bytes() const override { return first_body() + body_bytes_; }

  size_t weight_bytes() const override {
    size_t bytes = 0;
    for (const auto& body : bodies_) bytes += body->weight_bytes();
    return bytes;
  }

  std::unique_ptr<KernelState> new_state() const override {
    auto state = std::make_unique<Sessions>();
    for (const auto& body : bodies_) state->sessions.push_back(body->new_session());
    return state;
  }

  // Bodies share packed constants with what is around them.
  bool renew(std::span<const StateContents> inputs, PackedConstants* /*packed*/) override {
    for (const auto& body : bodies_) body->renew(inputs);
    return true;
  }

  void run(const KernelArgs& args) const override {
    if (args.stream) args.stream->wait();
    auto& sessions = static_cast<Sessions*>(args.state)->sessions;
    for (const auto& session : sessions) session->bind_memory(static_cast<char*>(args.scratch) + first_body());
    nested_->run({sessions, args.inputs, args.outputs, args.scratch});
  }

 private:
  size_t first_body() const { return aligned_size(nested_->scratch_bytes()); }

  std::unique_ptr<NestedRun> nested_;
  Bodies bodies_;
  size_t body_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_nested_kernel(const KernelCall& call, const Device& device, FindNested find) {
  if (device.memory()) return nullptr;
  Bodies bodies;
  const auto plan_body = [&](std::string_view attribute, const std::vector<Type>& types,
                             size_t num_captures) -> const PlannedBody* {
    std::shared_ptr<const Executable::Impl> impl = find(call.attributes.get<GraphRef>(attribute));
    Captured captured(call, types.size(), num_captures);
    std::shared_ptr<PlanEntry> entry =
        captured.is_any_known() ? impl->entry_knowing(types, captured.by_input) : impl->entry_for(types);
    if (!is_all_planned(*entry->compiled())) return nullptr;
    return bodies.emplace_back(std::make_unique<Body>(std::move(impl), std::move(entry), std::move(captured))).get();
  };
  try {
    std::unique_ptr<NestedRun> nested =
        plan_nested_run({call.op, call.attributes, call.inputs, call.outputs, plan_body});
    return nested ? std::make_unique<NestedKernel>(std::move(nested), std::move(bodies)) : nullptr;
  } catch (const UserError&) {
    return nullptr;  // a body that may not be run, or not in a way that fails: a run tells
  }
}

}  // namespace autograph
