// Elementwise nodes and chains of them: one work item an element, or four neighbours where there are many.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/chain.h"

namespace autograph::gpu {
namespace {

// Below this there would be too few items.
constexpr int64_t kElementsForFours = 1 << 14;

// Results of four elements leave together; behind the last four are `count` % 4 more.
void store_four(Writer& writer, size_t output, int64_t count) {
  const std::string end = writer.index().literal(count);
  if (count % 4 != 0) writer.open("if (first + 4 <= {})", end);
  writer.line("STORE4(y{0} + first, result{0});", output);
  if (count % 4 == 0) return;
  writer.close();
  writer.open("else");
  writer.line("for (i32 j = 0; first + j < {0}; ++j) y{1}[first + j] = result{1}[j];", end, output);
  writer.close();
}

// All loads, all results, all stores, so that a load does not wait for a store.
void write_fours(Writer& writer, const KernelCall& call, Chain& chain, const std::vector<Parameter>& parameters) {
  const int64_t count = num_elements(chain.dims());
  writer.index().cover(count + 4);
  writer.begin_items(parameters, (count + 3) / 4);
  writer.line("const Index first = i * 4;");
  chain.read_four(writer, "first", count);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    writer.line("{} result{}[4];", storage_type(call.outputs[k].dtype()), k);
  }
  writer.line("#pragma unroll");
  writer.open("for (i32 j = 0; j < 4; ++j)");
  const std::vector<std::string> results = chain.write(writer, "j");
  for (size_t k = 0; k < results.size(); ++k) {
    writer.line("{}", store(call.outputs[k].dtype(), fmt::format("result{}", k), "j", results[k]));
  }
  writer.close();
  for (size_t k = 0; k < call.outputs.size(); ++k) store_four(writer, k, count);
  writer.end();
}

void write_single(Writer& writer, const KernelCall& call, Chain& chain, const std::vector<Parameter>& parameters) {
  writer.begin_items(parameters, num_elements(chain.dims()));
  const std::vector<std::string> results = chain.write(writer, "i");
  for (size_t k = 0; k < results.size(); ++k) {
    writer.line("{}", store(call.outputs[k].dtype(), fmt::format("y{}", k), "i", results[k]));
  }
  writer.end();
}

}  // namespace

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
  for (const Parameter& parameter : parameters) {
    if (parameter.type.empty()) return refused("elements that are no numbers");
  }
  const bool are_many = num_elements(chain.dims()) >= kElementsForFours;
  (are_many ? write_fours : write_single)(writer, call, chain, parameters);
  if (!chain.refusal().empty()) return refused(chain.refusal());
  writer.in_place_inputs = chain.in_place_inputs();
  return writer.finish();
}

}  // namespace autograph::gpu
