// The bodies of function ops: what they compute, in other ops.
#pragma once

#include <cstddef>
#include <vector>

#include "autograph/builder.h"
#include "autograph/graph.h"
#include "autograph/op_def.h"

namespace autograph {

/// Adds the body of `op` to the graph of `context` and gives its outputs. Bodies may ask for any input of the schema:
/// those behind the ones that are given are added as absent.
std::vector<Var> add_body(const OpDef& op, DecomposeContext& context);

/// A body as a graph of its own.
struct FunctionBody {
  Graph graph{"body"};
  std::vector<size_t> inputs = {};   ///< The slots of the node that the graph's inputs stand for.
  std::vector<size_t> outputs = {};  ///< Likewise; what the body leaves out is not there.

  /// One for each slot of the node: what the graph gave where it is an output, else empty.
  template <class T>
  std::vector<T> by_slot(std::vector<T> results, size_t num_outputs) const {
    std::vector<T> all(num_outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] < num_outputs) all[outputs[i]] = std::move(results[i]);
    }
    return all;
  }
};

/// The body of a node whose inputs have these types; those of kind none are not given. Throws InternalError for an op
/// without one.
FunctionBody body_of(const Node& node, const std::vector<Type>& types);

}  // namespace autograph
