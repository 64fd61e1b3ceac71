#include "support/record_op.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "autograph/op_def.h"

namespace autograph {
namespace {

std::mutex record_mutex;
std::vector<int64_t> record;

void append_to_record(const OpCall& call) {
  std::memcpy(call.output(0).raw(), call.input(0).raw(), call.input(0).size_bytes());
  const std::lock_guard lock(record_mutex);
  record.push_back(call.attributes.integer("tag"));
}

OpDef make_def(std::string_view name, std::string_view onnx_name, Traits traits) {
  return {
      .name = name,
      .doc = "y = x; appends tag to the record.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kF32}},
      .attributes = {{.name = "tag", .type = AttributeType::integer, .doc = "What to append.", .required = true}},
      .infer = [](InferContext& context) { context.set_output(0, context.input(0)); },
      .reference = append_to_record,
      .traits = traits,
      .onnx = {{.name = onnx_name, .domain = "autograph.test"}},
  };
}

const OpDef& record_def() {
  static const OpDef def = make_def("record", "Record", {.pure = false, .effect = true});
  static const bool is_registered = (register_op(def), true);
  (void)is_registered;
  return def;
}

const OpDef& collective_record_def() {
  static const OpDef def = make_def("collective_record", "CollectiveRecord", {.pure = false, .collective = true});
  static const bool is_registered = (register_op(def), true);
  (void)is_registered;
  return def;
}

}  // namespace

Var add_record(Var x, int64_t tag) { return apply(record_def(), {std::move(x)}, {{"tag", tag}}); }

Var add_collective_record(Var x, int64_t tag) { return apply(collective_record_def(), {std::move(x)}, {{"tag", tag}}); }

std::vector<int64_t> take_record() {
  const std::lock_guard lock(record_mutex);
  return std::exchange(record, {});
}

}  // namespace autograph
