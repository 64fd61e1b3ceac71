// Nested graphs that are built by functions of C++: what these take from around them becomes inputs of the nested
// graph.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// While it lives, what the calling thread builds from values of `body`, of `parent` or of the graphs around that goes
/// into `body`. Nestable: then `parent` is the body of the scope around, or one further out.
class BodyScope {
 public:
  BodyScope(Graph& body, Graph& parent);
  ~BodyScope();
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

  Graph& body() const { return body_; }
  /// Is `graph` the body, or one around it?
  bool encloses(const Graph& graph) const;
  /// What stands in the body for a value of it or of a graph around it: a copy of a constant, else a further input.
  Var bring_in(const Var& value);
  /// Values of the parent that further inputs of the body stand for, in their order.
  const std::vector<Var>& captured() const { return captured_; }

  /// Of the calling thread; null: none.
  static BodyScope* innermost();

 private:
  Graph& body_;
  Graph& parent_;
  BodyScope* const outer_;
  std::vector<Var> captured_;
  std::map<std::pair<const Graph*, uint32_t>, ValueId> inside_;
};

}  // namespace autograph
