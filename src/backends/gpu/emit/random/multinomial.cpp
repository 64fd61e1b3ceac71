// multinomial: one work item a sample, which walks over the classes of its row as the reference does.
#include <algorithm>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/random/generator.h"
#include "backends/gpu/emit/text/checked_index.h"

namespace autograph::gpu {

Emitted emit_multinomial(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  if (const std::string reason = why_not_drawn(call, target); !reason.empty()) return refused(reason);
  const Dims x = call.input_dims(0), y = call.output_dims(0);
  const std::string_view index_type = storage_type(call.outputs[0].dtype());
  Writer writer(target);
  cover_operands(writer.index(), call);
  write_uniform(writer, call);
  const std::string classes = writer.index().literal(x[1]);
  const std::string weight = fmt::format("exp((f64){} - largest)", load(dtype, "x", "first + c"));
  writer.fault = "[multinomial] x: expected a finite largest element in each row, got none in row ";
  writer.begin_items(
      {input_parameter("x", storage_type(dtype), 0), output_parameter("y", index_type), fault_parameter("faults")},
      num_elements(y));
  writer.line("const Index first = i / {} * {};", writer.index().literal(std::max<int64_t>(y[1], 1)), classes);
  writer.line("f64 largest = {};", load(dtype, "x", "first"));
  writer.line("for (Index c = 1; c < {}; ++c) largest = fmax(largest, (f64){});", classes,
              load(dtype, "x", "first + c"));
  writer.open("if (!(fabs(largest) < INFINITY))");
  write_fault(writer, fmt::format("first / {}", classes), "return");
  writer.close();
  const auto write_sum = [&](const char* name) {
    writer.line("f64 w = {};", weight);
    writer.line("if (!isnan(w)) {} += w;", name);
  };
  writer.line("f64 total = 0, cumulated = 0;");
  writer.open("for (Index c = 0; c < {}; ++c)", classes);
  write_sum("total");
  writer.close();
  // The first class whose sum is above the number drawn.
  writer.line("const f64 drawn = uniform(i) * total;");
  writer.line("Index c = 0;");
  writer.open("for (; c < {} - 1; ++c)", classes);
  write_sum("cumulated");
  writer.line("if (cumulated > drawn) break;");
  writer.close();
  writer.line("y[i] = ({})c;", index_type);
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
