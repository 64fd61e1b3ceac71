#include "random_graph/idioms/contrib_call.h"

#include <algorithm>

#include "autograph/ops/elementwise.h"
#include "base/check.h"

namespace autograph {

std::vector<Var> contrib_outputs(IdiomGraph& g, std::string_view op, const std::vector<Var>& inputs,
                                 Attributes attributes, size_t num_outputs, std::string_view domain) {
  const auto& rows = io::contrib_ops();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const io::ContribOp& candidate) {
    return candidate.name == op && candidate.onnx.front().domain == domain;
  });
  AG_CHECK(row != rows.end(), "idioms: no op '{}' of {}", op, domain);
  ForeignNode node{.graph = g.graph(),
                   .op = *row,
                   .op_type = std::string(op),
                   .opset = 1,
                   .inputs = {},
                   .attributes = std::move(attributes),
                   .num_outputs = num_outputs,
                   .provenance = {}};
  for (const Var& v : inputs) node.inputs.push_back(v.is_valid() ? v.id() : ValueId());
  std::vector<Var> outputs;
  for (const ValueId v : row->onnx.front().import(node)) outputs.push_back(v.is_valid() ? Var(g.graph(), v) : Var());
  outputs.resize(num_outputs);
  return outputs;
}

Var contrib(IdiomGraph& g, std::string_view op, const std::vector<Var>& inputs, Attributes attributes,
            std::string_view domain) {
  return contrib_outputs(g, op, inputs, std::move(attributes), 1, domain).front();
}

Var in_f32(Var x) { return x.dtype() == DType::f32 ? x : cast(x, DType::f32); }

}  // namespace autograph
