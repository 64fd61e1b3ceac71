#include "report/type_json.h"

namespace autograph {

Json shape_json(const Shape& shape) {
  if (!shape.has_rank()) return {};
  Json list = Json::array();
  for (const Dim& dim : shape.dims()) {
    list.push(dim.is_known() ? Json(dim.value()) : dim.is_unknown() ? Json() : Json(dim.name()));
  }
  return list;
}

Json value_json(const std::string& name, const Type& type) {
  return Json::object({{"name", name},
                       {"dtype", type.is_tensor() ? std::string(to_string(type.dtype())) : to_string(type)},
                       {"shape", type.is_tensor() ? shape_json(type.shape()) : Json()}});
}

Json inputs_json(const Graph& graph) {
  Json list = Json::array();
  for (const ValueId id : graph.inputs()) list.push(value_json(graph.value(id).name(), graph.type(id)));
  return list;
}

Json states_json(const Graph& graph) {
  Json list = Json::array();
  for (const ValueId id : graph.states()) list.push(value_json(graph.value(id).name(), graph.type(id)));
  return list;
}

Json outputs_json(const Graph& graph) {
  Json list = Json::array();
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    list.push(value_json(graph.output_name(i), graph.type(graph.outputs()[i])));
  }
  return list;
}

}  // namespace autograph
