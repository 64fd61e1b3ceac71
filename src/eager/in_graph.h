// Functions of C++ on values, as graphs: which graph nodes go to, and what stands there for a value.
#pragma once

#include <string_view>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// The graph that nodes go to; null: all values are eager, and are computed with.
Graph* graph_of(const std::vector<Var>& values);

/// What stands for a value in `graph`; throws ValueError, "[where] ...", for one that is not given or of another graph.
Var in_graph(const Var& value, Graph& graph, std::string_view where);
std::vector<Var> in_graph(std::vector<Var> values, Graph& graph, std::string_view where);

/// Further inputs of a nested graph, with the types of these.
std::vector<Var> add_inputs(Graph& body, const std::vector<Var>& like);
/// Declares what stands for these in a nested graph its next outputs.
void add_outputs(Graph& body, const std::vector<Var>& results, std::string_view where);

}  // namespace autograph
