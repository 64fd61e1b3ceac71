// random_uniform, random_normal, their _like forms, and bernoulli: one work item a number.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/random/generator.h"
#include "ops/defs.h"

namespace autograph::gpu {

Emitted emit_random(const KernelCall& call, const Target& target) {
  const DType dtype = call.outputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  if (const std::string reason = why_not_drawn(call, target); !reason.empty()) return refused(reason);
  const bool is_uniform = &call.op == &random_uniform_def() || &call.op == &random_uniform_like_def();
  const auto real = [&](const char* name) { return static_cast<double>(call.attributes.real(name)); };
  Writer writer(target);
  writer.index().cover(num_elements(call.output_dims(0)));
  write_uniform(writer, call);
  writer.begin_items({output_parameter("y", storage_type(dtype))}, num_elements(call.output_dims(0)));
  if (is_uniform) {
    writer.line("const f64 v = {} + {} * uniform(i);", literal(DType::f64, real("low")),
                literal(DType::f64, real("high") - real("low")));
  } else {
    writer.line("const f64 radius = sqrt(-2 * log(1 - uniform(2 * (u64)i)));");
    writer.line("const f64 angle = 6.283185307179586 * uniform(2 * (u64)i + 1);");
    writer.line("const f64 v = {} + {} * (radius * cos(angle));", literal(DType::f64, real("mean")),
                literal(DType::f64, real("scale")));
  }
  writer.line("{}", store(dtype, "y", "i", fmt::format("({})v", compute_type(dtype))));
  writer.end();
  return writer.finish();
}

Emitted emit_bernoulli(const KernelCall& call, const Target& target) {
  const DType x = call.inputs[0].dtype(), y = call.outputs[0].dtype();
  if (!can_compute(x, target) || !can_compute(y, target)) return refused("dtype");
  if (const std::string reason = why_not_drawn(call, target); !reason.empty()) return refused(reason);
  Writer writer(target);
  cover_operands(writer.index(), call);
  write_uniform(writer, call);
  writer.begin_items({input_parameter("x", storage_type(x), 0), output_parameter("y", storage_type(y))},
                     num_elements(call.output_dims(0)));
  writer.line("{}", store(y, "y", "i", fmt::format("uniform(i) < (f64){} ? 1 : 0", load(x, "x", "i"))));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
