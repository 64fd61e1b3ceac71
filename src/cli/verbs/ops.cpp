// `autograph ops [NAME]`: the operators of this build, or all about one of them.
#include <fmt/core.h>

#include <algorithm>

#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "report/backend_summary.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  std::string name;
};

std::string gradient(const OpDef& op) {
  if (op.vjp) return "yes";
  if (op.decompose && op.no_grad.empty()) return "of its body";
  return op.no_grad.empty() ? "no" : "none";
}

// How the op computes without a kernel of a device.
std::string reference_form(const OpDef& op) {
  if (op.scalar) return "scalar";
  if (op.reference) return "loops";
  return op.evaluate ? "evaluate" : "decomposed";
}

std::string onnx_names(const OpDef& op) {
  std::vector<std::string> names;
  for (const OnnxName& name : op.onnx) {
    if (name.name.empty()) continue;
    const std::string domain = name.domain.empty() ? "" : std::string(name.domain) + "::";
    names.push_back(fmt::format("{}{}-{}", domain, name.name, name.since));
  }
  return join(names, " ");
}

std::string dtype_text(const OpDef& op) {
  std::vector<std::string> parts;
  for (const TypeVar& variable : op.types) {
    parts.push_back(
        fmt::format("{}:{}", variable.name, variable.allowed == dtypes::kAll ? "any" : to_string(variable.allowed)));
  }
  return join(parts, " ");
}

Json onnx_json(const OpDef& op) {
  Json list = Json::array();
  for (const OnnxName& name : op.onnx) {
    if (name.name.empty()) continue;
    list.push(Json::object(
        {{"name", name.name}, {"domain", name.domain}, {"since", name.since}, {"import_only", name.import_only}}));
  }
  return list;
}

Json dtypes_json(const OpDef& op) {
  Json object = Json::object();
  for (const TypeVar& variable : op.types) {
    Json list = Json::array();
    for (int i = 1; i < kNumDTypes; ++i) {
      if (variable.allowed.contains(static_cast<DType>(i))) list.push(to_string(static_cast<DType>(i)));
    }
    object.add(std::string(variable.name), std::move(list));
  }
  return object;
}

std::string_view arity_text(Arity arity) {
  switch (arity) {
    case Arity::single: return "single";
    case Arity::optional:
    case Arity::internal: return "optional";
    case Arity::variadic: return "variadic";
  }
  return "";
}

Json params_json(const std::vector<Param>& params) {
  Json list = Json::array();
  for (const Param& param : params) {
    list.push(Json::object(
        {{"name", param.name}, {"type", param.type_var}, {"arity", arity_text(param.arity)}, {"doc", param.doc}}));
  }
  return list;
}

// Devices with a kernel made for this op; the others compute it by loops.
std::vector<std::string> devices_with_kernel(const std::vector<BackendSummary>& backends, const OpDef& op) {
  std::vector<std::string> names;
  for (const BackendSummary& backend : backends) {
    if (std::find(backend.ops.begin(), backend.ops.end(), op.name) != backend.ops.end()) names.push_back(backend.name);
  }
  return names;
}

Json attributes_json(const OpDef& op) {
  Json attributes = Json::array();
  for (const AttributeSpec& spec : op.attributes) {
    attributes.push(Json::object(
        {{"name", spec.name}, {"type", to_string(spec.type)}, {"required", spec.required}, {"doc", spec.doc}}));
  }
  return attributes;
}

Json op_json(const OpDef& op, const std::vector<BackendSummary>& backends) {
  return Json::object({{"name", op.name},
                       {"doc", op.doc},
                       {"onnx", onnx_json(op)},
                       {"dtypes", dtypes_json(op)},
                       {"reference", reference_form(op)},
                       {"own_kernels", devices_with_kernel(backends, op)},
                       {"on_gpu", to_string(on_gpu(op))},
                       {"gradient", gradient(op)},
                       {"inputs", params_json(op.inputs)},
                       {"outputs", params_json(op.outputs)},
                       {"attributes", attributes_json(op)}});
}

Json other_domains_json(const std::vector<OtherDomainOp>& ops) {
  Json list = Json::array();
  for (const OtherDomainOp& op : ops) {
    list.push(Json::object({{"name", op.name},
                            {"domain", op.domain},
                            {"since", op.since},
                            {"becomes", op.becomes},
                            {"inputs", params_json(op.schema->inputs)},
                            {"outputs", params_json(op.schema->outputs)},
                            {"attributes", attributes_json(*op.schema)}}));
  }
  return list;
}

std::string other_domains_text(const Session& session, const std::vector<OtherDomainOp>& ops) {
  if (ops.empty()) return "";
  Table table({{"of other domains"}, {"domain"}, {"read as"}});
  for (const OtherDomainOp& op : ops) {
    table.add(
        {std::string(op.name), std::string(op.domain), op.becomes.empty() ? "what it reads" : join(op.becomes, " ")});
  }
  return "\n" + table.to_string(session.stdout_escapes());
}

std::string params_text(const std::string& title, const std::vector<Param>& params) {
  if (params.empty()) return "";
  std::string text = "\n" + title + ":\n";
  for (const Param& param : params) {
    const std::string arity = param.arity == Arity::single ? "" : fmt::format(" ({})", arity_text(param.arity));
    const bool says_nothing = param.type_var.empty() && param.doc.empty();  // parameters of other domains
    const std::string type =
        says_nothing ? "" : fmt::format(": {}", param.type_var.empty() ? "any value" : param.type_var);
    text += fmt::format("  {}{}{}\n", param.name, type, arity);
    if (!param.doc.empty()) text += fmt::format("      {}\n", param.doc);
  }
  return text;
}

std::string schema_text(const OpDef& op) {
  std::string text = params_text("inputs", op.inputs) + params_text("outputs", op.outputs);
  if (!op.attributes.empty()) text += "\nattributes:\n";
  for (const AttributeSpec& spec : op.attributes) {
    text += fmt::format("  {}: {}{}\n", spec.name, to_string(spec.type), spec.required ? " (required)" : "");
    if (!spec.doc.empty()) text += fmt::format("      {}\n", spec.doc);
  }
  return text;
}

std::string op_page(const OpDef& op, const std::vector<BackendSummary>& backends) {
  const std::string no_grad = op.no_grad.empty() ? "" : fmt::format(" ({})", op.no_grad);
  return fmt::format("{}\n  {}\n\n", op.name, op.doc) +
         pairs_to_string({{"ONNX", onnx_names(op)},
                          {"dtypes", dtype_text(op)},
                          {"reference", reference_form(op)},
                          {"own kernel", join(devices_with_kernel(backends, op), " ")},
                          {"on a GPU", std::string(to_string(on_gpu(op)))},
                          {"gradient", gradient(op) + no_grad}}) +
         schema_text(op);
}

// What a user may have meant: an op of ours, ops of other domains, or both.
struct Found {
  const OpDef* op = nullptr;
  std::vector<OtherDomainOp> others;
};

// By our name, or by the name that ONNX has for it: "Softmax", "ai.onnx::Softmax", "com.microsoft::FusedConv".
Found resolve(const std::string& name) {
  Found found{.op = find_op(name), .others = {}};
  std::vector<std::string> names;
  for (const OpDef* op : all_ops()) {
    names.emplace_back(op->name);
    for (const OnnxName& onnx : op->onnx) {
      names.emplace_back(onnx.name);
      const bool is_of_onnx = !onnx.name.empty() && onnx.domain.empty();
      const bool is_meant = onnx.name == name || (is_of_onnx && fmt::format("ai.onnx::{}", onnx.name) == name);
      if (!found.op && !name.empty() && is_meant) found.op = op;
    }
  }
  for (const OtherDomainOp& other : other_domain_ops()) {
    names.emplace_back(other.name);
    const bool is_meant = other.name == name || fmt::format("{}::{}", other.domain, other.name) == name;
    if (is_meant) found.others.push_back(other);
  }
  AG_CHECK_USER(found.op || !found.others.empty(), UnsupportedError, "[ops] op '{}': unknown{}", name,
                did_you_mean(name, names));
  return found;
}

int print_one(Session& session, const std::string& name, const std::vector<BackendSummary>& backends) {
  const Found found = resolve(name);
  Json list = Json::array();
  if (found.op) list.push(op_json(*found.op, backends));
  std::string text = found.op ? op_page(*found.op, backends) : "";
  text += other_domains_text(session, found.others);
  if (!found.op) text += schema_text(*found.others.front().schema);
  session.print({{"ops", std::move(list)}, {"other_domains", other_domains_json(found.others)}}, text);
  return 0;
}

int run(Session& session, const Options& options) {
  const std::vector<BackendSummary> backends = summarize_backends();
  if (!options.name.empty()) return print_one(session, options.name, backends);
  Json list = Json::array();
  Table table({{"op"}, {"ONNX"}, {"reference"}, {"own kernel"}, {"on a GPU"}, {"gradient"}, {"dtypes"}});
  for (const OpDef* op : all_ops()) {
    list.push(op_json(*op, backends));
    table.add({std::string(op->name), onnx_names(*op), reference_form(*op),
               join(devices_with_kernel(backends, *op), " "), std::string(to_string(on_gpu(*op))), gradient(*op),
               dtype_text(*op)});
  }
  const std::vector<OtherDomainOp> others = other_domain_ops();
  session.print({{"ops", std::move(list)}, {"other_domains", other_domains_json(others)}},
                table.to_string(session.stdout_escapes()) + fmt::format("{} ops\n", all_ops().size()) +
                    other_domains_text(session, others) + fmt::format("{} ops of other domains\n", others.size()));
  return 0;
}

}  // namespace

Command ops_command() {
  auto options = std::make_shared<Options>();
  return {
      .name = "ops",
      .doc = "operators: ONNX names and versions, dtypes, kernels, gradients",
      .details =
          "ONNX names are followed by the first opset whose form is understood. Ops of other domains, what ONNX "
          "Runtime's optimiser and quantiser write among them, follow with the ops that do their work in their place; "
          "those that move, convert or mask elements are left out there. On a GPU, whether there is one here or not, "
          "an "
          "op has a kernel, is taken apart into other ops, has nothing to compute, or runs on the host.",
      .examples = {{"autograph ops", "All operators."},
                   {"autograph ops Softmax", "Inputs, outputs and attributes of one."},
                   {"autograph ops FusedConv", "As what an op of ONNX Runtime is read."}},
      .options = {{.names = "NAME",
                   .doc = "An operator, by our name or ONNX's, with or without a domain: com.microsoft::FusedConv.",
                   .target = &options->name,
                   .kind = ValueKind::op}},
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
