// Types of values as JSON.
#pragma once

#include "autograph/graph.h"
#include "report/json.h"

namespace autograph {

/// [2, "batch", null]: numbers, names of symbolic extents, null for unknown ones; null for an unknown rank.
Json shape_json(const Shape& shape);

/// {"name", "dtype", "shape"}; a sequence or optional has its whole type as dtype and a null shape.
Json value_json(const std::string& name, const Type& type);

/// Inputs, states and outputs of a graph as lists of value_json().
Json inputs_json(const Graph& graph);
Json states_json(const Graph& graph);
Json outputs_json(const Graph& graph);

}  // namespace autograph
