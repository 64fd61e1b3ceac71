// adagrad, adam, momentum: a launch for each tensor, of one work item an element. See ops/training/optimizers.cpp for
// the formulas and the order of the tensors.
#include "backends/gpu/emit/families.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

constexpr size_t kFirstTensor = 2;  // after the learning rate and the step count

std::string number(const KernelCall& call, const char* name) {
  return literal(DType::f32, static_cast<double>(call.attributes.real(name)));
}

// From x, g (with the norm term), s0 and s1 of type `T`, rate and steps.
void write_adagrad(Writer& writer, const KernelCall& call) {
  writer.line("s0 += g * g;");
  writer.line("x -= rate / (1 + steps * {}) * g / (sqrt(s0) + {});", number(call, "decay_factor"),
              number(call, "epsilon"));
}

void write_momentum(Writer& writer, const KernelCall& call) {
  const std::string alpha = number(call, "alpha");
  writer.line("s0 = {} * s0 + (steps > 0 ? {} : 1) * g;", alpha, number(call, "beta"));
  if (call.attributes.text("mode") == "nesterov") {
    writer.line("x -= rate * (g + {} * s0);", alpha);
  } else {
    writer.line("x -= rate * s0;");
  }
}

void write_adam(Writer& writer, const KernelCall& call, const std::string& type) {
  const std::string alpha = number(call, "alpha");
  const std::string beta = number(call, "beta");
  writer.line("s0 = {0} * s0 + (1 - {0}) * g;", alpha);
  writer.line("s1 = {0} * s1 + (1 - {0}) * g * g;", beta);
  writer.line("const {0} r = steps > 0 ? rate * sqrt(1 - pow(({0}){2}, steps)) / (1 - pow(({0}){1}, steps)) : rate;",
              type, alpha, beta);
  writer.line("x = (1 - {}) * (x - r * s0 / (sqrt(s1) + {}));", number(call, "norm_coefficient_post"),
              number(call, "epsilon"));
}

}  // namespace

Emitted emit_optimizer(const KernelCall& call, const Target& target) {
  const size_t groups = &call.op == &adam_def() ? 4 : 3;
  const size_t count = (call.inputs.size() - kFirstTensor) / groups;
  Writer writer(target);
  for (const Type& type : call.outputs) {
    if (!type.is_tensor() || !is_float(type.dtype()) || !can_compute(type.dtype(), target)) return refused("dtype");
    writer.index().cover(*type.shape().num_elements());
  }
  const DType rate = call.inputs[0].dtype();
  if (!can_compute(rate, target)) return refused("dtype");
  for (size_t n = 0; n < count; ++n) {
    const DType dtype = call.inputs[kFirstTensor + n].dtype();
    // Sums of small steps: more digits where they cost nothing to have.
    const std::string type(target.has_f64 ? "f64" : "f32");
    std::vector<Parameter> parameters{input_parameter("rates", storage_type(rate), 0),
                                      input_parameter("counts", "i64", 1)};
    for (size_t group = 0; group < groups; ++group) {
      parameters.push_back(
          input_parameter(fmt::format("in{}", group), storage_type(dtype), kFirstTensor + group * count + n));
    }
    for (size_t group = 0; group + 1 < groups; ++group) {
      parameters.push_back(output_parameter(fmt::format("out{}", group), storage_type(dtype), group * count + n));
    }
    writer.begin_items(parameters, num_elements(call.output_dims(n)));
    writer.line("const {0} rate = {1}, steps = ({0})counts[0];", type, load(rate, "rates", "0"));
    writer.line("{} x = {}, s0 = {};", type, load(dtype, "in0", "i"), load(dtype, "in2", "i"));
    if (groups == 4) writer.line("{} s1 = {};", type, load(dtype, "in3", "i"));
    writer.line("const {} g = {} * x + {};", type, number(call, "norm_coefficient"), load(dtype, "in1", "i"));
    if (&call.op == &adam_def()) {
      write_adam(writer, call, type);
    } else if (&call.op == &momentum_def()) {
      write_momentum(writer, call);
    } else {
      write_adagrad(writer, call);
    }
    writer.line("{}", store(dtype, "out0", "i", "x"));
    writer.line("{}", store(dtype, "out1", "i", "s0"));
    if (groups == 4) writer.line("{}", store(dtype, "out2", "i", "s1"));
    writer.end();
  }
  return writer.finish();
}

}  // namespace autograph::gpu
