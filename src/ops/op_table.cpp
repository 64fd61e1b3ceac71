// The table of all ops: those of the words in ops/CMakeLists.txt, and what a program registers. Nothing here registers
// itself.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "ops/defs.h"

namespace autograph {
namespace {

using Table = std::vector<const OpDef*>;

void sort(Table& ops) {
  std::sort(ops.begin(), ops.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
}

Table own_ops() {
  Table ops{
#define AG_OP(name) &name##_def(),
#include "ops/op_list.inc"
#undef AG_OP
  };
  sort(ops);
  return ops;
}

// Tables that were replaced stay, and are kept track of: somebody may be reading them.
std::atomic<const Table*>& table() {
  static std::atomic<const Table*> current = new Table(own_ops());
  return current;
}

bool is_snake_case(std::string_view name) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' && std::all_of(name.begin(), name.end(), is_word);
}

// Why an op cannot be registered; "" when it can.
std::string complaint_about(const OpDef& op) {
  if (!is_snake_case(op.name)) return "a name of small letters, digits and underscores, such as my_op";
  if (find_op(op.name)) return "a name that no other op has";
  if (!op.infer && !op.decompose) return "infer, which gives the types of the outputs";
  const int ways = (op.scalar != nullptr) + (op.reference != nullptr) + (op.evaluate != nullptr);
  if (ways > 1) return "one of scalar, reference and evaluate";
  if (ways == 0 && !op.decompose) return "scalar, reference or evaluate, which compute it, or decompose";
  const bool has_effect = op.traits.effect || op.traits.collective;
  if (has_effect && op.traits.pure) return "traits.pure to be false, since it has an effect";
  return op.outputs.empty() ? "outputs" : "";
}

}  // namespace

std::span<const OpDef* const> all_ops() { return *table().load(std::memory_order_acquire); }

void register_op(const OpDef& op) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string complaint = complaint_about(op);
  if (!complaint.empty()) {
    throw ValueError(
        fmt::format("[ops] op '{}' cannot be registered: expected {} (autograph/op_def.h says what each "
                    "field means)",
                    op.name, complaint));
  }
  const auto ops = all_ops();
  auto more = std::make_unique<Table>(ops.begin(), ops.end());
  more->push_back(&op);
  sort(*more);
  static auto& replaced = *new std::vector<const Table*>;
  replaced.push_back(table().exchange(more.release(), std::memory_order_acq_rel));
}

}  // namespace autograph
