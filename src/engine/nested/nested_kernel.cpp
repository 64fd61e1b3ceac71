#include "engine/nested/nested_kernel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograph/device.h"
#include "autograph/error.h"
#include "engine/nested/plan_session.h"
#include "schedule/memory/memory_plan.h"

namespace autograph {
namespace {

class Body final : public PlannedBody {
 public:
  Body(std::shared_ptr<const Executable::Impl> impl, std::shared_ptr<PlanEntry> entry)
      : impl_(std::move(impl)), entry_(std::move(entry)) {}
  size_t memory_bytes() const override { return entry_->compiled()->plan.arena_bytes; }
  size_t weight_bytes() const override { return entry_->compiled()->memory.weight_bytes; }
  std::unique_ptr<PlannedSession> new_session() const override { return PlanSession::on_given_arena(*impl_, entry_); }

 private:
  std::shared_ptr<const Executable::Impl> impl_;
  std::shared_ptr<PlanEntry> entry_;
};

using Bodies = std::vector<std::unique_ptr<const Body>>;

struct Sessions final : KernelState {
  std::vector<std::unique_ptr<PlannedSession>> sessions;
};

class NestedKernel final : public Kernel {
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
  const auto plan_body = [&](std::string_view attribute, const std::vector<Type>& types) -> const PlannedBody* {
    std::shared_ptr<const Executable::Impl> impl = find(call.attributes.get<GraphRef>(attribute));
    std::shared_ptr<PlanEntry> entry = impl->entry_for(types);
    if (!is_all_planned(*entry->compiled())) return nullptr;
    return bodies.emplace_back(std::make_unique<const Body>(std::move(impl), std::move(entry))).get();
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
