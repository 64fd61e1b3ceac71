#include "io/onnx/export_graph.h"

#include <algorithm>
#include <set>

#include "autograph/builder.h"
#include "base/check.h"
#include "base/join.h"
#include "base/printable.h"
#include "graph/nested/replace_by_body.h"
#include "io/onnx/dtype_code.h"
#include "io/onnx/import/read_tensor.h"
#include "io/onnx/import/read_type.h"

namespace autograph::io {
namespace {

constexpr int kMaxRounds = 32;

const OnnxName* export_form(const OpDef& op) {
  for (const OnnxName& name : op.onnx) {
    if (!name.name.empty() && !name.import_only) return &name;
  }
  return nullptr;
}

// Has it outputs that its ONNX form has not?
bool has_internal_outputs(const Node& node) {
  const std::vector<Param>& params = node.op().outputs;
  const size_t count = std::min(params.size(), node.outputs().size());
  return std::any_of(params.begin(), params.begin() + static_cast<ptrdiff_t>(count),
                     [](const Param& param) { return param.arity == Arity::internal; });
}

void expand_nested(Graph& graph, NodeId id) {
  const Attributes attributes = graph.node(id).attributes();
  for (const auto& [name, value] : attributes) {
    const auto* nested = std::get_if<GraphRef>(&value);
    if (nested) graph.set_attribute(id, name, std::make_shared<const Graph>(with_onnx_forms(**nested)));
  }
}

// The node as it stands, without names of values.
ExportNode plain_copy(const Graph& graph, NodeId id, int opset) {
  const Node& node = graph.node(id);
  const OnnxName& form = *export_form(node.op());
  return {.graph = graph,
          .node = node,
          .opset = opset,
          .op_type = std::string(form.name),
          .domain = std::string(form.domain),
          .inputs = {},
          .outputs = {},
          .attributes = node.attributes(),
          .num_captured = 0,
          .add_initializer = {}};
}

// The opset that the attributes of a node ask for: its export function raises the opset of a trial that nobody reads.
int attributes_need(const Graph& graph, NodeId id, int opset) {
  const OnnxName& form = *export_form(graph.node(id).op());
  if (!form.export_node) return opset;
  ExportNode trial = plain_copy(graph, id, opset);
  trial.inputs.resize(graph.node(id).inputs().size());
  trial.outputs.resize(graph.node(id).outputs().size());
  trial.add_initializer = [](const Tensor&) { return std::string("constant"); };
  form.export_node(trial);
  return trial.opset;
}

void add_needs(const Graph& graph, Opsets& opsets) {
  for (const NodeId id : graph.nodes()) {
    const OnnxName& form = *export_form(graph.node(id).op());
    int& version = opsets[std::string(form.domain)];
    version = std::max({version, form.export_since > 0 ? form.export_since : form.since, 1});
    version = std::max(version, attributes_need(graph, id, version));
    for (const auto& [name, value] : graph.node(id).attributes()) {
      if (const auto* nested = std::get_if<GraphRef>(&value)) add_needs(**nested, opsets);
    }
  }
}

void write_value_info(const std::string& name, const Type& type, onnx::ValueInfoProto& proto) {
  proto.set_name(name);
  write_type(type, *proto.mutable_type());
}

}  // namespace

Graph with_onnx_forms(const Graph& graph) {
  Graph result = graph;
  bool changed = true;
  for (int round = 0; changed; ++round) {
    AG_CHECK(round < kMaxRounds, "bodies of function ops go in circles");
    changed = false;
    std::set<std::string> missing;
    for (const NodeId id : result.nodes()) {
      const OpDef& op = result.node(id).op();
      if (export_form(op) && !has_internal_outputs(result.node(id))) continue;
      if (op.decompose) {
        replace_by_body(result, id);
        changed = true;
      } else {
        missing.insert(std::string(op.name));
      }
    }
    AG_CHECK_USER(missing.empty(), UnsupportedError, "[onnx] export: these ops have no ONNX form: {}",
                  join(missing, ", "));
  }
  for (const NodeId id : result.nodes()) expand_nested(result, id);
  return result;
}

Opsets needed_opsets(const Graph& graph, int opset) {
  Opsets opsets{{"", opset}};
  add_needs(graph, opsets);
  return opsets;
}

void write_tensor(const Tensor& tensor, onnx::TensorProto& proto) {
  AG_CHECK_USER(tensor.raw() || tensor.size_bytes() == 0, ValueError,
                "[onnx] constant: {} has no elements, they were released (compile without release_weights to save)",
                to_string(tensor.type()));
  proto.set_data_type(code_of(tensor.dtype()));
  for (const int64_t d : tensor.dims()) proto.add_dims(d);
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.elements<std::string>()) proto.add_string_data(text);
  } else {
    proto.set_raw_data(pack(tensor));
  }
}

std::string UniqueNames::take(const std::string& wanted) {
  int& copies = copies_[wanted];
  std::string name = wanted;
  // Somebody may have asked for "x_2" itself; references into the map outlive insertions.
  while (++copies > 1) {
    name = fmt::format("{}_{}", wanted, copies);
    if (copies_.emplace(name, 1).second) break;
  }
  return name;
}

void GraphExporter::name_inputs(const Graph& graph, const std::vector<std::string>& captured, onnx::GraphProto& proto,
                                Names& names) {
  AG_CHECK(captured.size() <= graph.inputs().size(), "nested graph '{}': {} inputs, {} captured values", graph.name(),
           graph.inputs().size(), captured.size());
  const size_t formal = graph.inputs().size() - captured.size();
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId input = graph.inputs()[i];
    std::string& name = names[input.index];
    if (i >= formal) {
      name = captured[i - formal];
      continue;
    }
    const std::string& own = graph.value(input).name();
    name = value_names_.take(own.empty() ? fmt::format("input_{}", i) : own);
    write_value_info(name, graph.type(input), *proto.add_input());
  }
}

std::vector<std::string> GraphExporter::name_outputs(const Graph& graph, const std::vector<ValueId>& outputs,
                                                     Names& names) {
  std::vector<std::string> result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& value = graph.value(outputs[i]);
    std::string own = value.name();
    if (i >= graph.outputs().size()) {
      own = graph.value(graph.updates()[i - graph.outputs().size()].state).name() + "_new";
    } else if (!graph.output_name(i).empty()) {
      own = graph.output_name(i);
    }
    std::string& name = names[outputs[i].index];
    result.push_back(value_names_.take(own.empty() ? fmt::format("output_{}", i) : own));
    if (name.empty() && value.producer().is_valid()) name = result.back();
  }
  return result;
}

void GraphExporter::export_states(const Graph& graph, onnx::GraphProto& proto, Names& names) {
  for (const ValueId id : graph.states()) {
    const Value& value = graph.value(id);
    names[id.index] = value_names_.take(value.name());
    onnx::TensorProto& initializer = *proto.add_initializer();
    initializer.set_name(names[id.index]);
    sink_.store(value.initial(), initializer);
    write_value_info(names[id.index], value.type(), *proto.add_input());
    states_[names[id.index]] = "";
  }
}

void GraphExporter::export_constants(const Graph& graph, onnx::GraphProto& proto, Names& names) {
  for (const ValueId id : graph.constants()) {
    const Value& value = graph.value(id);
    if (value.uses().empty() && graph.num_output_uses(id) == 0) continue;
    names[id.index] = value_names_.take(value.name().empty() ? "constant" : value.name());
    onnx::TensorProto& initializer = *proto.add_initializer();
    initializer.set_name(names[id.index]);
    sink_.store(value.constant(), initializer);
  }
}

void GraphExporter::export_defaults(const std::map<std::string, Tensor>& defaults, onnx::GraphProto& proto) {
  std::set<std::string> inputs;
  for (const auto& input : proto.input()) inputs.insert(input.name());
  for (const auto& [name, tensor] : defaults) {
    AG_CHECK_USER(inputs.contains(name), ValueError, "[onnx] default of input '{}': the graph has none of that name",
                  printable(name));
    onnx::TensorProto& initializer = *proto.add_initializer();
    initializer.set_name(name);
    sink_.store(tensor, initializer);
  }
}

void GraphExporter::export_graph(const Graph& graph, const std::vector<std::string>& captured,
                                 onnx::GraphProto& proto) {
  proto.set_name(graph.name().empty() ? "graph" : graph.name());
  Names names(graph.value_capacity());
  std::vector<ValueId> values = graph.outputs();
  for (const StateUpdate& update : graph.updates()) values.push_back(update.value);
  export_states(graph, proto, names);  // first: stores know them by their names
  name_inputs(graph, captured, proto, names);
  const std::vector<std::string> outputs = name_outputs(graph, values, names);
  export_constants(graph, proto, names);
  for (const NodeId id : graph.topological_order()) export_node(graph, id, names, proto);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId id = values[i];
    if (i >= graph.outputs().size()) {
      states_[names[graph.updates()[i - graph.outputs().size()].state.index]] = outputs[i];
    }
    write_value_info(outputs[i], graph.type(id), *proto.add_output());
    // A value has one name in ONNX: inputs, constants and values that are output twice are passed on by a node.
    if (names[id.index] == outputs[i]) continue;
    onnx::NodeProto& node = *proto.add_node();
    node.set_op_type("Identity");
    node.set_name(outputs[i]);
    node.add_input(names[id.index]);
    node.add_output(outputs[i]);
  }
}

void GraphExporter::export_node(const Graph& graph, NodeId id, Names& names, onnx::GraphProto& proto) {
  const Node& node = graph.node(id);
  const OnnxName& form = *export_form(node.op());
  ExportNode to = plain_copy(graph, id, opsets_.at(std::string(form.domain)));
  for (const ValueId input : node.inputs()) to.inputs.push_back(input.is_valid() ? names[input.index] : "");
  for (const ValueId output : node.outputs()) {
    std::string& name = names[output.index];
    const std::string& own = graph.value(output).name();
    if (name.empty()) name = value_names_.take(own.empty() ? fmt::format("{}_{}", form.name, output.index) : own);
    to.outputs.push_back(name);
  }
  to.add_initializer = [&](const Tensor& tensor) {
    onnx::TensorProto& initializer = *proto.add_initializer();
    initializer.set_name(value_names_.take(to.outputs.empty() ? "constant" : to.outputs.front() + "_constant"));
    sink_.store(tensor, initializer);
    return initializer.name();
  };
  if (form.export_node) form.export_node(to);

  AG_CHECK(to.num_captured <= to.inputs.size(), "[{}] {} captured values of {} inputs", node.op().name, to.num_captured,
           to.inputs.size());
  const std::vector<std::string> captured(to.inputs.end() - static_cast<std::ptrdiff_t>(to.num_captured),
                                          to.inputs.end());
  to.inputs.resize(to.inputs.size() - to.num_captured);
  while (!to.inputs.empty() && to.inputs.back().empty()) to.inputs.pop_back();
  onnx::NodeProto out;
  out.set_op_type(to.op_type);
  out.set_domain(to.domain);
  // A model is invalid when two nodes have one name; several nodes may come from one place.
  if (!node.provenance().empty()) out.set_name(node_names_.take(node.provenance().to_string()));
  for (const std::string& input : to.inputs) out.add_input(input);
  for (const std::string& output : to.outputs) out.add_output(output);
  for (const auto& [name, value] : to.attributes) export_attribute(name, value, captured, out);
  *proto.add_node() = std::move(out);
}

void GraphExporter::export_attribute(const std::string& name, const AttributeValue& value,
                                     const std::vector<std::string>& captured, onnx::NodeProto& node) {
  using Proto = onnx::AttributeProto;
  Proto& proto = *node.add_attribute();
  proto.set_name(name);
  switch (type_of(value)) {
    case AttributeType::integer:
      proto.set_type(Proto::INT);
      proto.set_i(std::get<int64_t>(value));
      break;
    case AttributeType::real:
      proto.set_type(Proto::FLOAT);
      proto.set_f(std::get<float>(value));
      break;
    case AttributeType::text:
      proto.set_type(Proto::STRING);
      proto.set_s(std::get<std::string>(value));
      break;
    case AttributeType::integers:
      proto.set_type(Proto::INTS);
      for (const int64_t v : std::get<std::vector<int64_t>>(value)) proto.add_ints(v);
      break;
    case AttributeType::reals:
      proto.set_type(Proto::FLOATS);
      for (const float v : std::get<std::vector<float>>(value)) proto.add_floats(v);
      break;
    case AttributeType::texts:
      proto.set_type(Proto::STRINGS);
      for (const std::string& v : std::get<std::vector<std::string>>(value)) proto.add_strings(v);
      break;
    case AttributeType::dtype:
      proto.set_type(Proto::INT);
      proto.set_i(code_of(std::get<DType>(value)));
      break;
    case AttributeType::tensor:
      proto.set_type(Proto::TENSOR);
      write_tensor(std::get<Tensor>(value), *proto.mutable_t());
      break;
    case AttributeType::graph:
      proto.set_type(Proto::GRAPH);
      export_graph(*std::get<GraphRef>(value), captured, *proto.mutable_g());
      break;
  }
}

}  // namespace autograph::io
