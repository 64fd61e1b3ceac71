#include "backends/cpu/onednn/bf16.h"

#include <fmt/core.h>

#include "tensor/size_of.h"

namespace autograph {
namespace {

std::string isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41: return "SSE4.1";
    case dnnl::cpu_isa::avx: return "AVX";
    case dnnl::cpu_isa::avx2: return "AVX2";
    case dnnl::cpu_isa::avx2_vnni: return "AVX2 with VNNI";
    case dnnl::cpu_isa::avx512_core: return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni: return "AVX-512 with VNNI";
    default: return "another instruction set";
  }
}

}  // namespace

std::string why_no_bf16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  if (isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx) return "";
  return fmt::format("a CPU without avx512_bf16 and amx_bf16 ({})", isa_name());
}

namespace onednn {

double speedup(std::string_view implementation) {
  if (implementation.find("bf16") == std::string_view::npos) return 1;
  return implementation.find("amx") != std::string_view::npos ? 6 : 1.5;
}

double conversion_us(const Type& type, DataType operands, int threads) {
  constexpr double kBytesPerUsAndThread = 8e3;
  if (operands == DataType::f32) return 0;
  return 1 + static_cast<double>(size_of(type)) * 1.5 / kBytesPerUsAndThread / threads;
}

}  // namespace onednn
}  // namespace autograph
