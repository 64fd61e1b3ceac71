#include "graph/nested/run_body.h"

#include <cstring>
#include <unordered_map>

#include "autograph/builder.h"
#include "base/check.h"
#include "graph/nested/function_body.h"
#include "graph/run_reference.h"

namespace autograph {
namespace {

Tensor copy_of(const TensorView& view) {
  Tensor tensor = Tensor::empty(view.dtype(), Dims(view.dims().begin(), view.dims().end()));
  if (view.size_bytes() > 0) std::memcpy(tensor.mutable_raw(), view.raw(), view.size_bytes());
  return tensor;
}

// Runs the nodes of a body whose inputs are constants.
class BodyRun {
 public:
  explicit BodyRun(const Graph& body) : body_(body) {}

  Tensor value(ValueId id) {
    const Value& value = body_.value(id);
    if (value.constant().is_present()) return value.constant();
    if (!values_.contains(id.index)) run(value.producer());
    return values_.at(id.index);
  }

 private:
  void run(NodeId id) {
    const Node& node = body_.node(id);
    std::vector<Tensor> inputs;
    for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? value(v) : Tensor());
    std::vector<Type> types;
    for (const ValueId v : node.outputs()) {
      AG_CHECK_USER(body_.type(v).is_static(), UnsupportedError, "[{}] body: the shape of its {} depends on elements",
                    body_.name(), node.op().name);
      types.push_back(body_.type(v));
    }
    const std::vector<Tensor> outputs = run_reference(node.op(), node.attributes(), inputs, types);
    for (size_t k = 0; k < outputs.size(); ++k) values_[node.output(k).index] = outputs[k];
  }

  const Graph& body_;
  std::unordered_map<uint32_t, Tensor> values_;
};

}  // namespace

void call_body(const OpDef& op, const OpCall& call) {
  Graph body{std::string(op.name)};
  DecomposeContext context{body, call.attributes, {}, call.outputs.size()};
  for (const TensorView& input : call.inputs) {
    context.inputs.push_back(input.is_present() ? constant(body, copy_of(input)) : Var());
  }
  const std::vector<Var> results = add_body(op, context);
  BodyRun run(body);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (!call.has_output(k)) continue;
    AG_CHECK(k < results.size() && results[k].is_valid(), "[{}] decompose left out output {}", op.name, k);
    const Tensor result = run.value(results[k].id());
    AG_CHECK(result.size_bytes() == call.outputs[k].size_bytes(), "[{}] body: output {} has {} bytes, expected {}",
             op.name, k, result.size_bytes(), call.outputs[k].size_bytes());
    if (result.size_bytes() > 0) std::memcpy(call.outputs[k].raw(), result.raw(), result.size_bytes());
  }
}

}  // namespace autograph
