// dropout: a copy but in training, which may be known only while the model runs.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/random/generator.h"

namespace autograph::gpu {
namespace {

constexpr size_t kRatio = 1, kTraining = 2;
constexpr double kDefaultRatio = 0.5;

bool may_train(const KernelCall& call) {
  if (!call.has_input(kTraining)) return false;
  const Tensor* known = call.constant(kTraining);
  return !known || known->to_f64()[0] != 0;
}

std::string why_not_trained(const KernelCall& call, const Target& target) {
  if (call.has_input(kRatio) && !call.constant(kRatio)) return "a ratio that is computed";
  const double ratio = call.has_input(kRatio) ? call.constant(kRatio)->to_f64()[0] : kDefaultRatio;
  if (!(ratio >= 0 && ratio < 1)) return "a ratio outside of [0, 1)";
  if (!can_compute(call.inputs[0].dtype(), target)) return "dtype";
  return why_not_drawn(call, target);
}

}  // namespace

Emitted emit_dropout(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  const bool trains = may_train(call);
  if (trains) {
    if (const std::string reason = why_not_trained(call, target); !reason.empty()) return refused(reason);
  }
  const std::string_view type = trains ? storage_type(dtype) : raw_type(dtype);
  const bool has_mask = call.outputs.size() > 1 && call.outputs[1].is_tensor();
  Writer writer(target);
  cover_operands(writer.index(), call);
  std::vector<Parameter> parameters{input_parameter("x", type, 0)};
  if (trains) parameters.push_back(input_parameter("training", "u8", kTraining));
  parameters.push_back(output_parameter("y", type));
  if (has_mask) parameters.push_back(output_parameter("mask", "u8", 1));
  if (trains) write_uniform(writer, call);
  writer.begin_items(parameters, num_elements(call.output_dims(0)));
  if (trains) {
    const double ratio = call.has_input(kRatio) ? call.constant(kRatio)->to_f64()[0] : kDefaultRatio;
    writer.open("if (training[0])");
    writer.line("const i32 is_kept = uniform(i) >= {};", literal(DType::f64, ratio));
    writer.line("{}", store(dtype, "y", "i",
                            fmt::format("is_kept ? ({})((f64){} / {}) : 0", compute_type(dtype), load(dtype, "x", "i"),
                                        literal(DType::f64, 1 - ratio))));
    if (has_mask) writer.line("mask[i] = is_kept;");
    writer.line("return;");
    writer.close();
  }
  writer.line("y[i] = x[i];");
  if (has_mask) writer.line("mask[i] = 1;");
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
