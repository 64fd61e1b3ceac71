#include "models/weights.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/hash.h"
#include "base/parallel_for.h"

namespace autograph {
namespace {

// The finalizer of SplitMix64: a bijection of 64 bits whose outputs for consecutive counters pass the usual tests.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Inference may look at the elements of small constants: those are drawn in outlines, too.
constexpr int64_t kSmall = 4096;
thread_local bool draws_all = true;

// Elements that a thread draws at a time: what takes about 1 ms.
constexpr uint64_t kPiece = 1 << 18;
constexpr unsigned kMostThreads = 4;

// draw(i) in every element i, whichever thread draws it.
template <class Draw>
void fill(Tensor& tensor, const Draw& draw) {
  float* out = tensor.mutable_data<float>();
  const auto count = static_cast<uint64_t>(tensor.num_elements());
  const uint64_t pieces = (count + kPiece - 1) / kPiece;
  const auto threads = static_cast<int>(std::min(std::thread::hardware_concurrency(), kMostThreads));
  parallel_for(pieces, threads, [&](size_t piece) {
    const uint64_t end = std::min(count, (piece + 1) * kPiece);
    for (uint64_t i = piece * kPiece; i < end; ++i) out[i] = draw(i);
  });
}

bool is_drawn(const Tensor& tensor) { return draws_all || tensor.num_elements() <= kSmall; }

}  // namespace

UndrawnWeights::UndrawnWeights() { draws_all = false; }
UndrawnWeights::~UndrawnWeights() { draws_all = true; }

uint64_t Weights::key(std::string_view parameter) const {
  return Hasher().add(std::string_view(model_)).add(parameter).finish().low;
}

uint64_t Weights::bits(std::string_view parameter, uint64_t index) const { return mix(key(parameter) + index); }

Tensor Weights::normal(std::string_view parameter, const Dims& dims, float mean, float deviation) const {
  Tensor tensor = Tensor::empty(DType::f32, dims);
  if (!is_drawn(tensor)) return tensor;
  const uint64_t start = key(parameter);
  // The sum of four uniforms on 0..65535 has mean 131070 and variance 4 * (65536^2 - 1) / 12.
  const double scale = static_cast<double>(deviation) / std::sqrt((65536.0 * 65536.0 - 1.0) / 3.0);
  fill(tensor, [=](uint64_t i) {
    const uint64_t drawn = mix(start + i);
    const auto sum =
        static_cast<int64_t>((drawn & 0xFFFF) + (drawn >> 16 & 0xFFFF) + (drawn >> 32 & 0xFFFF) + (drawn >> 48));
    return static_cast<float>(mean + static_cast<double>(sum - 131070) * scale);
  });
  return tensor;
}

Tensor Weights::uniform(std::string_view parameter, const Dims& dims, float low, float high) const {
  Tensor tensor = Tensor::empty(DType::f32, dims);
  if (!is_drawn(tensor)) return tensor;
  const uint64_t start = key(parameter);
  const double scale = (static_cast<double>(high) - low) / 16777216.0;  // 24 bits: every f32 in [0, 1) of that grid
  fill(tensor, [=](uint64_t i) { return static_cast<float>(low + static_cast<double>(mix(start + i) >> 40) * scale); });
  return tensor;
}

}  // namespace autograph
