#include "backends/gpu/emit/random/generator.h"

#include <bit>

namespace autograph::gpu {
namespace {

constexpr const char* kBlock = R"(DEVICE void philox_block(u32 number, u64 seed, u64 step, u32 id, u32* c) {
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
  c[0] = number;
  c[1] = (u32)step;
  c[2] = (u32)(step >> 32);
  c[3] = id;
  for (i32 round = 0; round < 10; ++round) {
    const u64 a = (u64)0xD2511F53u * c[0];
    const u64 b = (u64)0xCD9E8D57u * c[2];
    c[0] = (u32)(b >> 32) ^ c[1] ^ key0;
    c[1] = (u32)b;
    c[2] = (u32)(a >> 32) ^ c[3] ^ key1;
    c[3] = (u32)a;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}
)";

// Two numbers a block.
constexpr const char* kUniform = R"(DEVICE f64 uniform(u64 k) {{
  u32 c[4];
  philox_block((u32)(k / 2), {0}UL, k / 2 >> 32, 0, c);
  const u64 word = k % 2 == 0 ? (u64)c[0] << 32 | c[1] : (u64)c[2] << 32 | c[3];
  return (f64)(word >> 11) * (1.0 / 9007199254740992.0);
}}
)";

uint64_t seed_of(const Attributes& attributes) {
  const AttributeValue& seed = *attributes.find("seed");
  if (const float* real = std::get_if<float>(&seed)) return std::bit_cast<uint32_t>(*real);
  return static_cast<uint64_t>(std::get<int64_t>(seed));
}

}  // namespace

void write_philox(Writer& writer) { writer.function(kBlock); }

std::string why_not_drawn(const KernelCall& call, const Target& target) {
  if (!call.attributes.find("seed")) return "no seed: the operating system gives one for each run";
  return target.has_f64 ? "" : "numbers of 53 bits";
}

void write_uniform(Writer& writer, const KernelCall& call) {
  write_philox(writer);
  writer.function(fmt::format(kUniform, seed_of(call.attributes)));
}

}  // namespace autograph::gpu
