// Var: a handle on a value of a graph, so that models read like formulas: `relu(conv(x, w, b))`.
//
// The typed builder of each op is declared in autograph/ops/<family>.h.
#pragma once

#include <string>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// A value together with the graph it belongs to. Cheap to copy; the graph must outlive it.
class Var {
 public:
  /// "Not given": stands for a missing optional input.
  Var() = default;
  Var(Graph& graph, ValueId id) : graph_(&graph), id_(id) {}

  bool is_valid() const { return graph_ != nullptr && id_.is_valid(); }
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  const Type& type() const { return graph_->type(id_); }
  DType dtype() const { return type().dtype(); }
  const Shape& shape() const { return type().shape(); }
  int64_t rank() const { return shape().rank(); }
  /// Extent of `axis` (negative counts from the end); throws InternalError while it is unknown.
  int64_t dim(int64_t axis) const;

 private:
  Graph* graph_ = nullptr;
  ValueId id_;
};

/// Every node made while it lives gets the provenance "outer/inner/<op>": what `viz` groups by. One thread, nestable.
class ProvenanceScope {
 public:
  explicit ProvenanceScope(const std::string& name);
  ~ProvenanceScope();
  ProvenanceScope(const ProvenanceScope&) = delete;
  ProvenanceScope& operator=(const ProvenanceScope&) = delete;
  /// The current path, "" outside any scope.
  static const std::string& current();

 private:
  size_t previous_length_;
};

/// A graph input.
Var input(Graph& graph, DType dtype, Shape shape, std::string name);
/// A constant.
Var constant(Graph& graph, Tensor tensor, std::string name = "");
/// A scalar constant of the dtype of `like`.
Var scalar_like(Var like, double value);

/// Applies `op` and returns its first output. The graph is that of the first valid input.
Var apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes = {});
/// As apply(), returning all outputs; `num_outputs` as in NodeOptions.
std::vector<Var> apply_all(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes = {},
                           int num_outputs = -1);

}  // namespace autograph
