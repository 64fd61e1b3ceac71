// philox: one work item a block of four words, by the same counters as on every device (ops/random/philox.h).
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/random/generator.h"

namespace autograph::gpu {
namespace {

// Word w, or words 2 u and 2 u + 1, as a number in [0, 1).
std::string unit(DType dtype, int number) {
  if (dtype == DType::f64) {
    return fmt::format("(f64)((((u64)c[{}] << 32) | c[{}]) >> 11) * (1.0 / 9007199254740992.0)", 2 * number,
                       2 * number + 1);
  }
  return fmt::format("(f32)(c[{}] >> 8) * (1.0f / 16777216.0f)", number);
}

// Neighbouring numbers u, v become sqrt(-2 log(1 - u)) times cosine and sine of 2 pi v: in f64 where there is one.
void write_normal(Writer& writer, int per_block) {
  const std::string type = writer.target().has_f64 ? "f64" : "f32";
  for (int k = 0; k < per_block; k += 2) {
    writer.open("");
    writer.line("const {0} radius = sqrt(-2 * log(1 - ({0})v{1}));", type, k);
    writer.line("const {0} angle = ({0})6.283185307179586 * v{1};", type, k + 1);
    writer.line("v{} = radius * cos(angle);", k);
    writer.line("v{} = radius * sin(angle);", k + 1);
    writer.close();
  }
}

}  // namespace

Emitted emit_philox(const KernelCall& call, const Target& target) {
  const DType dtype = call.outputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const int64_t count = num_elements(call.output_dims(0));
  const int per_block = dtype == DType::f64 ? 2 : 4;
  const int64_t blocks = (count + per_block - 1) / per_block;
  if (blocks > int64_t{1} << 32) return refused("more words than a step has");
  const std::string& distribution = call.attributes.text("distribution");
  Writer writer(target);
  writer.index().cover(count + per_block);
  write_philox(writer);
  writer.begin_items({input_parameter("seed", "i64", 1), input_parameter("step", "i64", 2),
                      output_parameter("y", storage_type(dtype))},
                     blocks);
  writer.line("u32 c[4];");
  writer.line("philox_block((u32)i, (u64)seed[0], (u64)step[0], (u32){}L, c);", call.attributes.integer("id"));
  for (int k = 0; k < per_block; ++k) {
    writer.line("{} v{} = {};", compute_type(dtype), k, dtype == DType::u32 ? fmt::format("c[{}]", k) : unit(dtype, k));
  }
  if (distribution == "normal") write_normal(writer, per_block);
  for (int k = 0; k < per_block; ++k) {
    writer.line("if (i * {0} + {1} < {2}) y[i * {0} + {1}] = v{1};", per_block, k, writer.index().literal(count));
  }
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
