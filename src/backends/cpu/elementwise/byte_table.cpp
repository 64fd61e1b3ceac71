// What is computed of one byte, element by element, is a table of 256 entries: dequantize_linear, an activation that a
// model spells out, quantize_linear. The table is what the definition says for every byte there is.
//
// With AVX512-VBMI a whole table of bytes lies in four registers, which look up 64 bytes at once. With AVX2 it lies in
// 16 registers or the first cache, each of which is asked for all bytes.
#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define AG_HAS_X86_TABLES 1
#endif

#include "autograph/op_def.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/quantize/is_byte.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/unpadded_layouts.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

constexpr int64_t kBytes = 256;

void look_up(const uint8_t* __restrict table, const uint8_t* from, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

#ifdef AG_HAS_X86_TABLES
// Each of two look-ups takes the low seven bits of an index; the highest bit chooses between them.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_vbmi(const uint8_t* __restrict table,
                                                                         const uint8_t* from, uint8_t* to,
                                                                         int64_t count) {
  constexpr int64_t kStep = 64;
  const __m512i t0 = _mm512_loadu_si512(table);
  const __m512i t1 = _mm512_loadu_si512(table + kStep);
  const __m512i t2 = _mm512_loadu_si512(table + 2 * kStep);
  const __m512i t3 = _mm512_loadu_si512(table + 3 * kStep);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m512i index = _mm512_loadu_si512(from + i);
    const __m512i low = _mm512_permutex2var_epi8(t0, index, t1);
    const __m512i high = _mm512_permutex2var_epi8(t2, index, t3);
    _mm512_storeu_si512(to + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
  }
  look_up(table, from + i, to + i, count - i);
}

// Of 16 entries, a look-up takes the lowest four bits of an index, and gives 0 where its highest bit is set. Indices
// are made smaller by 16 until it is: all parts up to that of the index have been asked then, and the exclusive or of
// what they gave is its entry, when each part holds the exclusive or of its entries and those of the one before.
__attribute__((target("avx2"))) void look_up_avx2(const uint8_t* __restrict table, const uint8_t* from, uint8_t* to,
                                                  int64_t count) {
  constexpr int64_t kParts = 8, kPart = 16;  // of each half of the table
  constexpr int64_t kStep = 32;
  __m256i parts[2 * kParts];
  for (int64_t p = 0; p < 2 * kParts; ++p) {
    const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + p * kPart));
    const __m128i before =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + std::max<int64_t>(p - 1, 0) * kPart));
    parts[p] = _mm256_broadcastsi128_si256(p % kParts == 0 ? entries : _mm_xor_si128(entries, before));
  }
  const __m256i part = _mm256_set1_epi8(kPart), highest_bit = _mm256_set1_epi8(static_cast<char>(0x80));
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    __m256i high = _mm256_xor_si256(low, highest_bit);
    __m256i entries = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int64_t p = 0; p < kParts; ++p) {
      entries = _mm256_xor_si256(entries, _mm256_shuffle_epi8(parts[p], low));
      entries = _mm256_xor_si256(entries, _mm256_shuffle_epi8(parts[kParts + p], high));
      low = _mm256_subs_epi8(low, part);
      high = _mm256_subs_epi8(high, part);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), entries);
  }
  look_up(table, from + i, to + i, count - i);
}

bool has_vbmi() {
  static const bool kHasVbmi = __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return kHasVbmi;
}
#endif

using LookUp = void (*)(const uint8_t*, const uint8_t*, uint8_t*, int64_t);

LookUp best_look_up() {
#ifdef AG_HAS_X86_TABLES
  if (has_vbmi()) return look_up_vbmi;
  if (__builtin_cpu_supports("avx2")) return look_up_avx2;
#endif
  return look_up;
}

// Every node works element by element, with nothing but known numbers beside what comes from the input.
std::string why_not_body(const Graph& body) {
  for (const ValueId v : body.constants()) {
    if (body.value(v).constant().num_elements() != 1) return "a tensor of constants in the body";
  }
  for (const NodeId id : body.nodes()) {
    const Node& node = body.node(id);
    const bool quantizes = &node.op() == &quantize_linear_def() || &node.op() == &dequantize_linear_def();
    if (quantizes || (node.op().traits.elementwise && node.op().scalar)) continue;
    return std::string(node.op().name) + " in the body";
  }
  return "";
}

std::string why_not(const KernelCall& call) {
  if (call.inputs.size() != 1 || call.outputs.size() != 1) return "more than one input or output";
  const DType y = call.outputs[0].dtype();
  const bool is_f32 = y == DType::f32;
  if (!is_byte(call.inputs[0].dtype()) || !(is_byte(y) || is_f32)) {
    return "an input of other than 8 bits, or an output of other than 8 bits and f32";
  }
  if (call.inputs[0].shape() != call.outputs[0].shape()) return "an output of other dims";
  const Graph& body = *call.attributes.get<GraphRef>("body");
  // Vectors compute this while a table of floats gives one element.
  constexpr size_t kFewNodes = 2;
  if (is_f32 && body.num_nodes() <= kFewNodes) return "two nodes, which are computed as fast";
  return why_not_body(body);
}

// One byte is read and one element written, through a table that stays in the first cache.
class ByteTable : public Kernel {
 public:
  explicit ByteTable(const KernelCall& call)
      : count_(*call.outputs[0].shape().num_elements()),
        threads_(useful_threads(call.threads, count_)),
        gives_floats_(call.outputs[0].dtype() == DType::f32) {
    std::array<uint8_t, kBytes> all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    // Of the rank of the input, to which constants such as a slope [1, 1, 1] broadcast.
    Dims dims(std::max<size_t>(1, call.input_dims(0).size()), 1);
    dims.back() = kBytes;
    const Tensor input = Tensor::wrap(call.inputs[0].dtype(), dims, all.data(), nullptr);
    const Type output(call.outputs[0].dtype(), input.type().shape());
    const std::vector<Tensor> results = run_reference(call.op, call.attributes, {&input, 1}, {&output, 1});
    void* const table = gives_floats_ ? static_cast<void*>(floats_.data()) : table_.data();
    std::memcpy(table, results[0].raw(), results[0].size_bytes());
  }

  std::vector<uint32_t> in_place_inputs() const override {
    return gives_floats_ ? std::vector<uint32_t>() : std::vector<uint32_t>{0};
  }

  void run(const KernelArgs& args) const override {
    const auto* from = static_cast<const uint8_t*>(args.inputs[0].raw());
    void* const to = args.outputs[0].raw();
    for_shares(threads_, count_, [&](int64_t begin, int64_t end, int) {
      if (gives_floats_) {
        for (int64_t i = begin; i < end; ++i) static_cast<float*>(to)[i] = floats_[from[i]];
      } else {
        look_up_(table_.data(), from + begin, static_cast<uint8_t*>(to) + begin, end - begin);
      }
    });
  }

 private:
  const LookUp look_up_ = best_look_up();
  int64_t count_;
  int threads_;
  bool gives_floats_;
  std::array<uint8_t, kBytes> table_{};
  std::array<float, kBytes> floats_{};
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<ByteTable>(call), ""}; }

// Elements may lie in any order, as long as there is no padding.
std::vector<KernelVariant> variants(const KernelCall& call) {
  // By the scale of tile_variants(), whose programs a table always beats.
  constexpr double kBytesPerUs = 4e4;
  const double us = 0.25 + static_cast<double>(size_of(call.inputs[0]) + size_of(call.outputs[0])) / (2 * kBytesPerUs);
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  for (const Layout layout : unpadded_layouts(call.output_dims(0))) {
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us});
  }
  return result;
}

}  // namespace

KernelDef byte_table_kernel() {
  return {
      .name = "cpu.byte_table", .op = fused_def().name, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace autograph
