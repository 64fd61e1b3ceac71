#include "cli/options/names.h"

#include "autograph/compile.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/tasks.h"
#include "autograph/zoo.h"
#include "cli/options/run_options.h"

namespace autograph::cli {

std::vector<std::string> names_of(ValueKind kind) {
  std::vector<std::string> names;
  switch (kind) {
    case ValueKind::op:
      for (const OpDef* op : all_ops()) names.emplace_back(op->name);
      for (const OtherDomainOp& op : other_domain_ops()) names.emplace_back(op.name);
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      break;
    case ValueKind::strategy: names = strategy_names(); break;
    case ValueKind::device: names = available_devices(); break;
    case ValueKind::model:
      for (const ZooEntry& entry : zoo_models()) names.push_back("zoo:" + entry.name);
      break;
    case ValueKind::zoo_model:
      for (const ZooEntry& entry : zoo_models()) names.push_back(entry.name);
      break;
    case ValueKind::task:
      for (const TaskInfo& task : training_tasks()) names.push_back(task.name);
      break;
    case ValueKind::text:
    case ValueKind::file:
    case ValueKind::directory:
    case ValueKind::choice: break;
  }
  return names;
}

std::vector<std::string> closed_names(ValueKind kind) {
  const bool closed = kind == ValueKind::strategy || kind == ValueKind::device;
  return closed ? names_of(kind) : std::vector<std::string>();
}

std::string_view dynamic_kind(ValueKind kind) {
  switch (kind) {
    case ValueKind::model: return "model";
    case ValueKind::zoo_model: return "zoo_model";
    case ValueKind::task: return "task";
    case ValueKind::op: return "op";
    case ValueKind::strategy: return "strategy";
    case ValueKind::device: return "device";
    case ValueKind::text:
    case ValueKind::file:
    case ValueKind::directory:
    case ValueKind::choice: break;
  }
  return "";
}

}  // namespace autograph::cli
