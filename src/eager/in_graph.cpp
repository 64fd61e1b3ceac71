#include "eager/in_graph.h"

#include "base/check.h"
#include "eager/capture/recording.h"
#include "eager/modes.h"
#include "graph/nested/body_scope.h"

namespace autograph {

Graph* graph_of(const std::vector<Var>& values) {
  if (Recording* capture = modes().capture) return &capture->graph();
  for (const Var& value : values) {
    if (!value.is_valid() || value.is_eager()) continue;
    BodyScope* nested = BodyScope::innermost();
    return nested && nested->encloses(value.graph()) ? &nested->body() : &value.graph();
  }
  return nullptr;
}

Var in_graph(const Var& value, Graph& graph, std::string_view where) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[{}] values: expected all to be given", where);
  if (value.is_eager()) return value.eager().in_graph(graph);
  if (&value.graph() == &graph) return value;
  BodyScope* nested = BodyScope::innermost();
  AG_CHECK_USER(nested && nested->encloses(value.graph()), ValueError, "[{}] values: from different graphs", where);
  return nested->bring_in(value);
}

std::vector<Var> in_graph(std::vector<Var> values, Graph& graph, std::string_view where) {
  for (Var& value : values) value = in_graph(value, graph, where);
  return values;
}

std::vector<Var> add_inputs(Graph& body, const std::vector<Var>& like) {
  std::vector<Var> inputs;
  for (const Var& value : like) inputs.emplace_back(body, body.add_input(value.type()));
  return inputs;
}

void add_outputs(Graph& body, const std::vector<Var>& results, std::string_view where) {
  for (const Var& result : in_graph(results, body, where)) body.add_output(result.id());
}

}  // namespace autograph
