// Elementwise nodes and chains of them: one work item an element.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/chain.h"

namespace autograph::gpu {

Emitted emit_elementwise(const KernelCall& call, const Target& target) {
  Chain chain(call);
  if (!chain.refusal().empty()) return refused(chain.refusal());
  if (chain.reduction()) return refused("a reduction at the end");
  Writer writer(target);
  chain.cover(writer.index());
  std::vector<Parameter> parameters = chain.parameters();
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const std::string_view type = storage_type(call.outputs[k].dtype());
    if (type.empty()) return refused(fmt::format("elements of {}", to_string(call.outputs[k].dtype())));
    parameters.push_back(output_parameter(fmt::format("y{}", k), type, k));
  }
  writer.begin_items(parameters, num_elements(chain.dims()));
  const std::vector<std::string> results = chain.write(writer, "i");
  if (!chain.refusal().empty()) return refused(chain.refusal());
  for (size_t k = 0; k < results.size(); ++k) {
    writer.line("{}", store(call.outputs[k].dtype(), fmt::format("y{}", k), "i", results[k]));
  }
  writer.end();
  writer.in_place_inputs = chain.in_place_inputs();
  return writer.finish();
}

}  // namespace autograph::gpu
