#include "graph/nested/body_scope.h"

#include "base/check.h"

namespace autograph {
namespace {

thread_local BodyScope* innermost_scope = nullptr;

}  // namespace

BodyScope::BodyScope(Graph& body, Graph& parent) : body_(body), parent_(parent), outer_(innermost_scope) {
  innermost_scope = this;
}

BodyScope::~BodyScope() { innermost_scope = outer_; }

BodyScope* BodyScope::innermost() { return innermost_scope; }

bool BodyScope::encloses(const Graph& graph) const {
  return &graph == &body_ || &graph == &parent_ || (outer_ && outer_->encloses(graph));
}

Var BodyScope::bring_in(const Var& value) {
  Graph& from = value.graph();
  if (&from == &body_) return value;
  const auto [place, is_new] = inside_.try_emplace({&from, value.id().index});
  if (!is_new) return {body_, place->second};
  if (const Tensor* elements = value.known()) {
    place->second = body_.add_constant(*elements);
    return {body_, place->second};
  }
  // From further out it comes by way of the graphs between.
  Var outside = value;
  if (&from != &parent_) {
    AG_CHECK(outer_ && outer_->encloses(from), "a value of another graph in the nested graph '{}'", body_.name());
    outside = outer_->bring_in(value);
  }
  captured_.push_back(outside);
  place->second = body_.add_input(outside.type());
  return {body_, place->second};
}

}  // namespace autograph
