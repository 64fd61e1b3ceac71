#include "io/onnx/import/import_graph.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "autograph/foreign_node.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "graph/schema.h"
#include "io/onnx/dtype_code.h"
#include "io/onnx/import/import_attribute.h"
#include "io/onnx/import/read_type.h"
#include "io/onnx/import/source_place.h"
#include "io/onnx/names.h"
#include "ops/defs.h"

namespace autograph {}  // namespace autograph

namespace autograph::io {
namespace {

void define(Scope& scope, const std::string& name, ValueId value) {
  AG_CHECK_USER(!name.empty(), FormatError, "[onnx] graph '{}': an input or initializer has no name",
                scope.graph.name());
  AG_CHECK_USER(scope.values.emplace(name, value).second, FormatError, "[onnx] value '{}': defined twice", name);
}

ValueId lookup(const Scope& scope, const std::string& name, const std::string& reader) {
  const auto it = scope.values.find(name);
  AG_CHECK_USER(it != scope.values.end(), FormatError, "[onnx] value '{}': used by {} but never defined", name, reader);
  return it->second;
}

// Number of outputs up to the last one that has a name.
size_t num_named_outputs(const onnx::NodeProto& node) {
  auto count = static_cast<size_t>(node.output_size());
  while (count > 0 && node.output(static_cast<int>(count) - 1).empty()) --count;
  return count;
}

std::string at_node(const onnx::NodeProto& node, const std::string& name) {
  return fmt::format("{} node \"{}\"", qualified_name(node.domain(), node.op_type()), name);
}

// `name`, which an input must have.
const std::string& checked_input(const onnx::GraphProto& proto, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& input : proto.input()) names.push_back(input.name());
  AG_CHECK_USER(std::find(names.begin(), names.end(), name) != names.end(), ValueError,
                "[onnx] input: the model has none named '{}'{}", name, nearest_or_all(name, names));
  return name;
}

// The messages of ops may name the node already.
[[noreturn]] void rethrow_as_format_error(const std::string& message, const onnx::NodeProto& node,
                                          const std::string& name) {
  if (message.find('"' + name + '"') != std::string::npos) throw FormatError(message);
  throw FormatError(fmt::format("{} ({})", message, at_node(node, name)));
}

}  // namespace

// What the nested graphs of one node take from outside.
struct GraphImporter::Captures {
  std::map<std::string, ValueId> constants;  ///< Copied in; invalid ids: inputs that a function was not given.
  std::map<std::string, size_t> slots;       ///< The others: position in `values`.
  std::vector<ValueId> values;               ///< Appended to the node's inputs.
};

Graph GraphImporter::import_root(const onnx::GraphProto& proto, const Opsets& opsets, const States& states) {
  std::set<std::string> given;
  for (const std::string& name : options_.given_inputs) given.insert(checked_input(proto, name));
  Graph graph(proto.name());
  Scope scope{graph};
  add_initializers(proto, scope, given, states);
  add_states(proto, scope, states);
  for (const auto& input : proto.input()) {
    Type type = read_type(input.type(), input.name());
    // An initializer for an input is what it is where a run does not give it; up to IR 3 every one was listed so.
    const auto it = scope.values.find(input.name());
    if (states.contains(input.name())) continue;
    if (it != scope.values.end() && graph.value(it->second).is_constant()) {
      optional_inputs_.emplace_back(input.name(), std::move(type));
      continue;
    }
    AG_CHECK_USER(type.kind() != Type::Kind::none, FormatError, "[onnx] input '{}': its type is missing", input.name());
    define(scope, input.name(), graph.add_input(std::move(type), input.name()));
  }
  import_nodes(proto.node(), scope, {opsets, ""});
  add_outputs(proto, scope, states);
  return graph;
}

void GraphImporter::add_states(const onnx::GraphProto& proto, Scope& scope, const States& states) {
  for (const auto& initializer : proto.initializer()) {
    const std::string& name = initializer.name();
    if (states.contains(name)) define(scope, name, scope.graph.add_state(tensors_.read(initializer, name), name));
  }
  for (const auto& [name, output] : states) {
    AG_CHECK_USER(scope.values.contains(name), FormatError, "[onnx] state '{}': no initializer has that name", name);
  }
}

void GraphImporter::add_outputs(const onnx::GraphProto& proto, Scope& scope, const States& states) {
  std::map<std::string, std::string> updates;  // state by output
  for (const auto& [state, output] : states) {
    AG_CHECK_USER(output.empty() || updates.emplace(output, state).second, FormatError,
                  "[onnx] states: output '{}' is the new value of two", output);
  }
  size_t found = 0;
  for (const auto& output : proto.output()) {
    const ValueId value = lookup(scope, output.name(), "the graph's outputs");
    const auto it = updates.find(output.name());
    if (it == updates.end()) {
      scope.graph.add_output(value, output.name());
    } else {
      scope.graph.set_update(scope.values.at(it->second), value);
      ++found;
    }
  }
  AG_CHECK_USER(found == updates.size(), FormatError, "[onnx] states: {} of their {} new values are outputs", found,
                updates.size());
}

void GraphImporter::add_initializers(const onnx::GraphProto& proto, Scope& scope, const std::set<std::string>& given,
                                     const States& states) {
  const auto add = [&](const std::string& name, Tensor tensor) {
    if (given.contains(name)) {
      input_defaults_.emplace(name, std::move(tensor));
    } else {
      define(scope, name, scope.graph.add_constant(std::move(tensor), name));
    }
  };
  for (const auto& initializer : proto.initializer()) {
    const std::string& name = initializer.name();
    if (!states.contains(name)) add(name, tensors_.read(initializer, name));
  }
  for (const auto& sparse : proto.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    if (!states.contains(name)) add(name, tensors_.read_sparse(sparse, name));
  }
}

void GraphImporter::import_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& scope,
                                 const Frame& frame) {
  for (const int i : build_order(nodes)) {
    const onnx::NodeProto& node = nodes.Get(i);
    AG_CHECK_USER(++num_nodes_ <= options_.max_nodes, BudgetError, "[onnx] nodes: more than the budget of {}",
                  options_.max_nodes);
    const std::string own = node.name().empty() ? fmt::format("{}_{}", node.op_type(), i) : node.name();
    const std::string name = frame.prefix.empty() ? own : frame.prefix + "/" + own;
    const std::vector<ValueId> outputs = import_node(node, name, scope, frame);
    for (size_t slot = 0; slot < num_named_outputs(node); ++slot) {
      const std::string& output = node.output(static_cast<int>(slot));
      if (output.empty()) continue;
      define(scope, output, outputs[slot]);
      if (outputs[slot].is_valid() && (scope.graph.value(outputs[slot]).name().empty() || functions_.find(node))) {
        scope.graph.set_value_name(outputs[slot], frame.prefix.empty() ? output : frame.prefix + "/" + output);
      }
    }
  }
}

std::vector<ValueId> GraphImporter::import_node(const onnx::NodeProto& node, const std::string& name, Scope& scope,
                                                const Frame& frame) {
  std::vector<ValueId> inputs;
  for (const auto& input : node.input()) {
    inputs.push_back(input.empty() ? ValueId{} : lookup(scope, input, at_node(node, name)));
  }
  const Function* function = functions_.find(node);
  std::vector<ValueId> outputs;
  if (function) {
    outputs = import_call(*function, node, name, std::move(inputs), scope, frame);
  } else {
    try {
      outputs = import_op(node, name, std::move(inputs), scope, frame);
    } catch (const FormatError& error) {
      throw;
    } catch (const BudgetError& error) {
      throw;
    } catch (const UserError& error) {
      rethrow_as_format_error(error.what(), node, name);
    } catch (const AttributeAccessError& error) {
      rethrow_as_format_error(error.what(), node, name);
    }
  }
  AG_CHECK_USER(outputs.size() >= num_named_outputs(node), FormatError,
                "[onnx] {}: expected at most {} outputs, got {}", at_node(node, name), outputs.size(),
                num_named_outputs(node));
  for (size_t slot = 0; !function && slot < num_named_outputs(node); ++slot) {
    const std::string& output = node.output(static_cast<int>(slot));
    if (output.empty() || outputs[slot].is_valid()) continue;
    throw UnsupportedError(fmt::format("[onnx] {}: output '{}' is not supported", at_node(node, name), output));
  }
  return outputs;
}

std::vector<ValueId> GraphImporter::import_op(const onnx::NodeProto& node, const std::string& name,
                                              std::vector<ValueId> inputs, Scope& scope, const Frame& frame) {
  const std::string domain = normal_domain(node.domain());
  const auto imported = frame.opsets.find(domain);
  AG_CHECK(imported != frame.opsets.end(), "domain '{}' was not checked", domain);
  const FormSearch search = find_form(domain, node.op_type(), imported->second);
  AG_CHECK(search.form, "op {} was not checked", node.op_type());
  const OpDef& op = *search.form->op;

  const std::vector<onnx::AttributeProto> protos = resolve_attributes(node, frame.arguments, at_node(node, name));
  const Captures captures = find_captures(protos, scope);
  std::vector<Type> input_types;
  for (const ValueId input : inputs) input_types.push_back(input.is_valid() ? scope.graph.type(input) : Type());
  const Frame nested{frame.opsets, name, frame.arguments};
  Attributes attributes;
  for (const auto& proto : protos) {
    AG_CHECK_USER(!attributes.contains(proto.name()), FormatError, "[onnx] {}: attribute '{}' is given twice",
                  at_node(node, name), proto.name());
    if (proto.type() == onnx::AttributeProto::GRAPH && &op == &if_def()) {
      attributes.set(proto.name(), import_branch(proto.g(), captures, scope.graph, nested));
    } else if (proto.type() == onnx::AttributeProto::GRAPH) {
      const std::vector<Type> captured = captured_types(captures, scope.graph);
      attributes.set(proto.name(), import_nested(proto.g(), input_types, captures, captured, scope.graph, nested));
    } else if (auto value = convert_attribute(proto, find_attribute(op, proto.name()), tensors_, at_node(node, name))) {
      attributes.set(proto.name(), std::move(*value));
    }
  }
  const size_t num_captured = captures.values.size();
  if (num_captured > 0) {
    inputs.resize(std::max(inputs.size(), num_fixed_inputs(op)));
    inputs.insert(inputs.end(), captures.values.begin(), captures.values.end());
  }
  ForeignNode foreign{.graph = scope.graph,
                      .op = op,
                      .op_type = node.op_type(),
                      .opset = imported->second,
                      .inputs = std::move(inputs),
                      .attributes = std::move(attributes),
                      .num_outputs = num_named_outputs(node),
                      .provenance = Provenance::named(name, source_place(node)),
                      .num_captured = num_captured};
  return search.form->name->import ? search.form->name->import(foreign) : foreign.emit();
}

std::vector<ValueId> GraphImporter::import_call(const Function& function, const onnx::NodeProto& node,
                                                const std::string& name, std::vector<ValueId> inputs, Scope& scope,
                                                const Frame& frame) {
  const onnx::FunctionProto& proto = *function.proto;
  const std::string where = at_node(node, name);
  AG_CHECK_USER(inputs.size() <= static_cast<size_t>(proto.input_size()), FormatError,
                "[onnx] {}: expected at most {} inputs, got {}", where, proto.input_size(), inputs.size());
  const auto arguments = bind_arguments(function, resolve_attributes(node, frame.arguments, where), where);
  inputs.resize(static_cast<size_t>(proto.input_size()));
  Scope body{scope.graph};
  for (int i = 0; i < proto.input_size(); ++i) define(body, proto.input(i), inputs[static_cast<size_t>(i)]);
  import_nodes(proto.node(), body, {function.opsets, name, &arguments});
  std::vector<ValueId> outputs;
  for (const auto& output : proto.output()) outputs.push_back(lookup(body, output, where));
  return outputs;
}

GraphImporter::Captures GraphImporter::find_captures(const std::vector<onnx::AttributeProto>& attributes,
                                                     const Scope& scope) const {
  std::set<std::string> names;
  for (const auto& attribute : attributes) {
    if (attribute.type() == onnx::AttributeProto::GRAPH) names.merge(free_names(attribute.g()));
  }
  Captures captures;
  std::map<ValueId, size_t> slots;
  for (const std::string& name : names) {
    const ValueId value = lookup(scope, name, "a nested graph");
    if (!value.is_valid() || scope.graph.value(value).is_constant()) {
      captures.constants[name] = value;
      continue;
    }
    const auto [slot, is_new] = slots.emplace(value, captures.values.size());
    if (is_new) captures.values.push_back(value);
    captures.slots[name] = slot->second;
  }
  return captures;
}

std::vector<Type> GraphImporter::captured_types(const Captures& captures, const Graph& outer) {
  std::vector<Type> types;
  for (const ValueId value : captures.values) types.push_back(outer.type(value));
  return types;
}

// A branch for other shapes than these is no mistake of the file: it is read without what is known of them, as are the
// branches inside it, and fails when it is taken.
GraphRef GraphImporter::import_branch(const onnx::GraphProto& proto, const Captures& captures, const Graph& outer,
                                      const Frame& frame) {
  std::vector<Type> types = captured_types(captures, outer);
  const int64_t num_nodes = num_nodes_;
  const int depth = depth_;
  std::exception_ptr first;
  if (!forgets_shapes_) {
    try {
      return import_nested(proto, {}, captures, types, outer, frame);
    } catch (const BudgetError&) {
      throw;
    } catch (const UserError&) {
      first = std::current_exception();
    }
  }
  for (Type& type : types) {
    if (type.is_tensor()) type = Type(type.dtype(), Shape::unknown());
  }
  num_nodes_ = num_nodes;
  depth_ = depth;
  const bool before = std::exchange(forgets_shapes_, true);
  try {
    GraphRef branch = import_nested(proto, {}, captures, types, outer, frame);
    forgets_shapes_ = before;
    return branch;
  } catch (const UserError&) {
    forgets_shapes_ = before;
    if (first) std::rethrow_exception(first);
    throw;
  }
}

GraphRef GraphImporter::import_nested(const onnx::GraphProto& proto, const std::vector<Type>& node_inputs,
                                      const Captures& captures, const std::vector<Type>& capture_types,
                                      const Graph& outer, const Frame& frame) {
  if (++depth_ > kMaxGraphDepth) throw_too_deep();
  auto graph = std::make_shared<Graph>(proto.name());
  Scope scope{*graph};
  add_initializers(proto, scope);
  for (int i = 0; i < proto.input_size(); ++i) {
    const auto& input = proto.input(i);
    if (scope.values.count(input.name()) > 0) continue;
    Type type = read_type(input.type(), input.name());
    // Bodies may leave types out; the ops that run graphs pair formal inputs with their own, position by position.
    if (type.kind() == Type::Kind::none && static_cast<size_t>(i) < node_inputs.size()) {
      type = node_inputs[static_cast<size_t>(i)];
      if (type.is_tensor()) type = Type(type.dtype(), Shape::unknown());
    }
    AG_CHECK_USER(type.kind() != Type::Kind::none, FormatError,
                  "[onnx] input '{}' of nested graph '{}': its type is missing", input.name(), proto.name());
    define(scope, input.name(), graph->add_input(std::move(type), input.name()));
  }
  std::vector<ValueId> captured;
  for (size_t i = 0; i < captures.values.size(); ++i) {
    captured.push_back(graph->add_input(capture_types[i], outer.value(captures.values[i]).name()));
  }
  for (const std::string& name : free_names(proto)) {
    const auto constant = captures.constants.find(name);
    if (constant == captures.constants.end()) {
      define(scope, name, captured[captures.slots.at(name)]);
    } else {
      define(scope, name,
             constant->second.is_valid() ? graph->add_constant(outer.value(constant->second).constant(), name)
                                         : ValueId{});
    }
  }
  import_nodes(proto.node(), scope, frame);
  for (const auto& output : proto.output()) {
    const ValueId value = lookup(scope, output.name(), "the outputs of nested graph '" + proto.name() + "'");
    AG_CHECK_USER(value.is_valid(), FormatError, "[onnx] nested graph '{}': output '{}' has no value", proto.name(),
                  output.name());
    graph->add_output(value, output.name());
  }
  infer_types(*graph);
  graph->erase_dead();
  --depth_;
  return graph;
}

}  // namespace autograph::io
