// What the states of graphs are between runs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "autograph/graph.h"
#include "autograph/tensor.h"

namespace autograph {

/// The tensors of states by name, shared by all executables that were compiled with the store: one that trains and one
/// that evaluates, say. Copies of a store are handles on the same tensors. Thread-safe; a run that updates states has
/// the store to itself, runs that only read them go on at the same time.
class StateStore {
 public:
  StateStore();

  /// Adds the states of `graph` that the store does not know yet, as they are before the first run. Throws TypeError or
  /// ShapeError, naming the state, where one of that name has another dtype or shape.
  void add(const Graph& graph);
  /// Makes what the states of `graph` are now what they are before its first run: for files, and before
  /// Graph::freeze(). Throws ValueError, TypeError or ShapeError, naming the state, where one is not here or is
  /// another; the graph is then as it was.
  void copy_to(Graph& graph) const;
  /// Names of all states, sorted.
  std::vector<std::string> names() const;
  /// Does the store have that state?
  bool contains(const std::string& name) const;
  /// What a state is, without a copy of it; ValueError with the nearest name when there is none.
  Type type(const std::string& name) const;
  /// Bytes of all states.
  size_t size_bytes() const;
  /// A copy of a state as it is now; ValueError with the nearest name when there is none.
  Tensor get(const std::string& name) const;
  /// Overwrites a state; throws as get() and add() do.
  void set(const std::string& name, const Tensor& tensor);

  /// Implementation, for the library itself.
  class Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace autograph
