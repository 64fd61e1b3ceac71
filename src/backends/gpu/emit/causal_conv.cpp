// causal_conv_with_state: one work item an output element, which reads the past where the input has not begun.
#include "backends/gpu/emit/families.h"

namespace autograph::gpu {
namespace {

constexpr size_t kSequence = 0, kTaps = 1, kShift = 2, kPast = 3;

// Declares `name`: element `at` of row "row" of the past with the input behind it.
void write_past_or_input(Writer& writer, const KernelCall& call, std::string_view name, std::string_view at) {
  const DType dtype = call.inputs[kSequence].dtype();
  const std::string kept = writer.index().literal(call.input_dims(kTaps)[2] - 1);
  const std::string length = writer.index().literal(call.input_dims(kSequence)[2]);
  const std::string past =
      call.has_input(kPast) ? load(dtype, "past", fmt::format("row * {} + {}", kept, at)) : literal(dtype, 0.0);
  writer.line("const {} {} = {} < {} ? {} : {};", compute_type(dtype), name, at, kept, past,
              load(dtype, "x", fmt::format("row * {} + {} - {}", length, at, kept)));
}

std::vector<Parameter> sequence_parameters(const KernelCall& call) {
  const std::string_view type = storage_type(call.inputs[kSequence].dtype());
  std::vector<Parameter> list{input_parameter("x", type, kSequence)};
  if (call.has_input(kPast)) list.push_back(input_parameter("past", type, kPast));
  return list;
}

void write_causal_sums(Writer& writer, const KernelCall& call) {
  const DType dtype = call.inputs[kSequence].dtype();
  const Dims x = call.input_dims(kSequence);
  const std::string taps = writer.index().literal(call.input_dims(kTaps)[2]);
  std::vector<Parameter> parameters = sequence_parameters(call);
  parameters.push_back(input_parameter("weight", storage_type(dtype), kTaps));
  if (call.has_input(kShift)) parameters.push_back(input_parameter("bias", storage_type(dtype), kShift));
  parameters.push_back(output_parameter("y", storage_type(dtype)));
  writer.begin_items(parameters, num_elements(x));
  writer.line("const Index row = i / {0}, step = i % {0};", writer.index().literal(x[2]));
  writer.line("const Index channel = {};", coordinate(writer.index(), "i", x, 1));
  writer.line("{} total = {};", compute_type(dtype),
              call.has_input(kShift) ? load(dtype, "bias", "channel") : literal(dtype, 0.0));
  writer.open("for (Index tap = 0; tap < {}; ++tap)", taps);
  writer.line("const Index at = step + tap;");
  write_past_or_input(writer, call, "v", "at");
  writer.line("total += {} * v;", load(dtype, "weight", fmt::format("channel * {} + tap", taps)));
  writer.close();
  const bool is_silu = call.attributes.text("activation") != "none";
  writer.line("{}", store(dtype, "y", "i", is_silu ? "total / (1 + exp(-total))" : "total"));
  writer.end();
}

void write_causal_state(Writer& writer, const KernelCall& call) {
  const DType dtype = call.inputs[kSequence].dtype();
  std::vector<Parameter> parameters = sequence_parameters(call);
  parameters.push_back(output_parameter("state", storage_type(dtype), 1));
  writer.begin_items(parameters, num_elements(call.output_dims(1)));
  writer.line("const Index row = i / {0}, at = i % {0} + {1};", writer.index().literal(call.output_dims(1)[2]),
              writer.index().literal(call.input_dims(kSequence)[2]));
  write_past_or_input(writer, call, "v", "at");
  writer.line("{}", store(dtype, "state", "i", "v"));
  writer.end();
}

}  // namespace

Emitted emit_causal_conv(const KernelCall& call, const Target& target) {
  if (!can_compute(call.inputs[kSequence].dtype(), target)) return refused("dtype");
  Writer writer(target);
  cover_operands(writer.index(), call);
  writer.index().cover(call.input_dims(kSequence)[2] + call.input_dims(kTaps)[2]);
  const auto has_elements = [&](size_t k) {
    return k < call.outputs.size() && call.outputs[k].is_tensor() && num_elements(call.output_dims(k)) > 0;
  };
  if (has_elements(0)) write_causal_sums(writer, call);
  if (has_elements(1)) write_causal_state(writer, call);
  return writer.finish();
}

}  // namespace autograph::gpu
