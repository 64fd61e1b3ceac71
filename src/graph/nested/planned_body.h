// Nested graphs whose plans are part of the plan around them: nothing that they hold is found while running.
#pragma once

#include <cstddef>
#include <memory>

#include "base/function_ref.h"
#include "graph/nested/nested_session.h"

namespace autograph {

/// A session on memory of the caller's.
class PlannedSession : public NestedSession {
 public:
  /// Where the body works from here on: PlannedBody::memory_bytes(), 64-byte aligned.
  virtual void bind_memory(void* memory) = 0;
};

/// A nested graph compiled for inputs of certain types. May be used by any number of threads at once.
class PlannedBody {
 public:
  virtual ~PlannedBody() = default;
  /// Working memory of one session.
  virtual size_t memory_bytes() const = 0;
  /// Bytes of its constants, prepacked copies included.
  virtual size_t weight_bytes() const = 0;
  /// For one thread at a time; the body must outlive it. All inputs must be bound before the first run.
  virtual std::unique_ptr<PlannedSession> new_session() const = 0;
};

/// The nested graph `attribute` of a node compiled for inputs of these types, of which the last `num_captures` are the
/// last inputs of the node as they are; null where outputs are not tensors, or some extents are only known while
/// running.
using BodyPlanner =
    FunctionRef<const PlannedBody*(std::string_view attribute, const std::vector<Type>& inputs, size_t num_captures)>;

}  // namespace autograph
