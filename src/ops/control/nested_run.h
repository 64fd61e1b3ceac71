// Ops that run nested graphs, where all that they read, write and keep lies in memory that was planned: the extents of
// everything are known, and nothing is allocated. What their evaluate function does for everything else.
#pragma once

#include <memory>
#include <span>

#include "autograph/op_def.h"
#include "graph/nested/planned_body.h"

namespace autograph {

/// One node of such an op.
class NestedRun {
 public:
  /// Sessions on the bodies that the BodyPlanner was asked for, in that order.
  using Sessions = std::span<const std::unique_ptr<PlannedSession>>;
  /// What a run reads and writes; inputs that are not given are absent.
  struct Args {
    Sessions sessions;
    std::span<const TensorView> inputs, outputs;
    void* scratch = nullptr;
  };

  virtual ~NestedRun() = default;
  /// Working memory beside that of the bodies, of which one runs at a time.
  virtual size_t scratch_bytes() const { return 0; }
  virtual void run(const Args& args) const = 0;
};

/// A node as it is planned: static tensor types, but for inputs that are not given.
struct NestedCall {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Type> inputs, outputs;
  BodyPlanner plan_body;
};

/// How to run the node; null where its op cannot, or not with these types.
std::unique_ptr<NestedRun> plan_nested_run(const NestedCall& call);

/// The same for one op each.
std::unique_ptr<NestedRun> plan_if(const NestedCall& call);
std::unique_ptr<NestedRun> plan_loop(const NestedCall& call);
std::unique_ptr<NestedRun> plan_scan(const NestedCall& call);

}  // namespace autograph
