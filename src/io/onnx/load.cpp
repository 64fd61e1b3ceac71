// Loading ONNX models: file to bytes, bytes to messages, messages to a typed graph.
//
// What the file says is checked in this order: is it protobuf; are all versions and ops known (all missing ones are
// reported at once); do names, shapes and dtypes fit (while nodes are built); are types consistent (one more pass of
// inference with known values, which also resolves shape arithmetic).
#include <algorithm>
#include <set>

#include "autograph/model_io.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/join.h"
#include "base/rethrow.h"
#include "io/onnx/contrib/blocked_channels.h"
#include "io/onnx/import/functions.h"
#include "io/onnx/import/import_graph.h"
#include "io/onnx/import/model_bytes.h"
#include "io/onnx/import/old_opsets.h"
#include "io/onnx/names.h"
#include "io/onnx/op_index.h"

namespace autograph {
namespace io {
namespace {

constexpr int kNewestOpset = 28;
constexpr int64_t kNewestIrVersion = 14;

Opsets model_opsets(const onnx::ModelProto& model) {
  Opsets opsets = read_opsets(model.opset_import());
  if (opsets.empty() && model.functions_size() == 0) opsets[""] = 1;  // before IR 3 there were no versions
  opsets.emplace("com.microsoft", 1);  // tf2onnx leaves it out, and ONNX Runtime knows it unasked
  return opsets;
}

// Walks over all nodes that the model can reach and counts those without an op.
class MissingOpFinder {
 public:
  explicit MissingOpFinder(const FunctionTable& functions) : functions_(functions) {}

  void visit(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const Opsets& opsets) {
    for_each_node(nodes, [&](const onnx::NodeProto& node) { visit_node(node, opsets); });
  }

  std::vector<MissingOp> missing() const {
    std::vector<MissingOp> list;
    for (const auto& [key, op] : missing_) list.push_back(op);
    return list;
  }

 private:
  void visit_node(const onnx::NodeProto& node, const Opsets& opsets) {
    if (const Function* function = functions_.find(node)) {
      if (visited_.insert(function).second) visit(function->proto->node(), function->opsets);
      return;
    }
    const std::string domain = normal_domain(node.domain());
    AG_CHECK_USER(!node.op_type().empty(), FormatError, "[onnx] node '{}': op_type is missing", node.name());
    const auto imported = opsets.find(domain);
    AG_CHECK_USER(imported != opsets.end(), FormatError, "[onnx] node '{}' ({}): its domain is not in opset_import",
                  node.name(), qualified_name(domain, node.op_type()));
    const std::string reason = reason_against(domain, node.op_type(), imported->second);
    if (reason.empty()) return;
    const std::string name = qualified_name(domain, node.op_type());
    MissingOp& op = missing_[{name, imported->second}];
    op.op = name;
    op.opset = imported->second;
    op.reason = reason;
    ++op.count;
  }

  static std::string reason_against(const std::string& domain, const std::string& op_type, int opset) {
    const FormSearch search = find_form(domain, op_type, opset);
    const bool is_old = domain.empty() && opset < kOldestOpset && !is_unchanged_since(op_type, opset);
    if (is_old && search.earliest > 0 && search.earliest <= kOldestOpset) {
      return fmt::format("its form of before opset {} is not supported", kOldestOpset);
    }
    if (search.form) return "";
    if (search.earliest > 0) return fmt::format("the op appears in opset {}", search.earliest);
    return "no such op";
  }

  const FunctionTable& functions_;
  std::set<const Function*> visited_;
  std::map<std::pair<std::string, int>, MissingOp> missing_;
};

void check_header(const onnx::ModelProto& model) {
  AG_CHECK_USER(model.ir_version() >= 1, FormatError, "[onnx] model: ir_version: expected 1 or more, got {}",
                model.ir_version());
}

void throw_if_missing(const std::vector<MissingOp>& missing) {
  if (missing.empty()) return;
  std::vector<std::string> parts;
  parts.reserve(missing.size());
  for (const MissingOp& op : missing) {
    parts.push_back(
        fmt::format("{} (opset {}): {} node{}, {}", op.op, op.opset, op.count, op.count == 1 ? "" : "s", op.reason));
  }
  throw UnsupportedError(fmt::format("[onnx] {} op{} missing: {}", missing.size(),
                                     missing.size() == 1 ? " is" : "s are", join(parts, "; ")));
}

std::vector<std::string> find_warnings(const onnx::ModelProto& model, const Opsets& opsets) {
  std::vector<std::string> warnings;
  const auto main = opsets.find("");
  if (main != opsets.end() && main->second > kNewestOpset) {
    warnings.push_back(fmt::format("opset {} is newer than {}, the newest that this build knows; all its ops are known",
                                   main->second, kNewestOpset));
  }
  if (model.ir_version() > kNewestIrVersion) {
    warnings.push_back(fmt::format("IR version {} is newer than {}, the newest that this build knows",
                                   model.ir_version(), kNewestIrVersion));
  }
  if (model.training_info_size() > 0) warnings.emplace_back("training_info is ignored");
  return warnings;
}

void fill_header(const onnx::ModelProto& proto, const Opsets& opsets, Model& model) {
  model.opsets = opsets;
  model.ir_version = proto.ir_version();
  model.producer = proto.producer_name();
  if (!proto.producer_version().empty()) model.producer += " " + proto.producer_version();
  model.doc = proto.doc_string();
  for (const auto& entry : proto.metadata_props()) {
    if (!entry.key().starts_with(kStateMark)) model.metadata[entry.key()] = entry.value();
  }
  model.warnings = find_warnings(proto, opsets);
}

// By name of an initializer that is a state: the output that is its new value, "" where there is none.
std::map<std::string, std::string> marked_states(const onnx::ModelProto& proto) {
  std::map<std::string, std::string> states;
  for (const auto& entry : proto.metadata_props()) {
    if (entry.key().starts_with(kStateMark)) states[entry.key().substr(kStateMark.size())] = entry.value();
  }
  return states;
}

// Inference with known values; what it finds wrong is the file's fault.
void refine_types(Graph& graph) {
  try {
    infer_types(graph);
  } catch (const FormatError&) {
    throw;
  } catch (const BudgetError&) {
    throw;
  } catch (const UserError& error) {
    throw FormatError(error.what());
  }
  graph.erase_dead();
}

// The model and what it says about itself, with all ops known to be there.
Model import_model(const ModelBytes& bytes, const std::string& directory, const LoadOptions& options) {
  onnx::ModelProto proto = parse_model(bytes);
  check_header(proto);
  mark_channel_blocks(proto, options.channel_block);
  const Opsets opsets = model_opsets(proto);
  const FunctionTable functions(proto, opsets);
  MissingOpFinder finder(functions);
  finder.visit(proto.graph().node(), opsets);
  throw_if_missing(finder.missing());

  ExternalFiles files(directory, bytes.file ? bytes.file->name() : "", options.allow_hard_links);
  TensorReader tensors(files, options, bytes);
  GraphImporter importer(functions, tensors, options);
  Model model;
  model.graph = importer.import_root(proto.graph(), opsets, marked_states(proto));
  model.optional_inputs = importer.optional_inputs();
  model.input_defaults = importer.input_defaults();
  refine_types(model.graph);
  fill_header(proto, opsets, model);
  return model;
}

}  // namespace
}  // namespace io

Model parse_onnx(std::string_view bytes, const std::string& directory, const LoadOptions& options) {
  return with_printable_messages([&] { return io::import_model({.memory = bytes}, directory, options); });
}

Model load_onnx(const std::string& path, const LoadOptions& options) {
  const size_t slash = path.find_last_of('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return with_printable_messages(
      [&] { return io::import_model({.file = std::make_shared<const io::InputFile>(path)}, directory, options); });
}

std::vector<MissingOp> find_missing_ops(const std::string& path) {
  return with_printable_messages([&] {
    const onnx::ModelProto proto = io::parse_model({.file = std::make_shared<const io::InputFile>(path)});
    io::check_header(proto);
    const io::Opsets opsets = io::model_opsets(proto);
    const io::FunctionTable functions(proto, opsets);
    io::MissingOpFinder finder(functions);
    finder.visit(proto.graph().node(), opsets);
    return finder.missing();
  });
}

}  // namespace autograph
