#include "backends/cpu/shape/piece_copies.h"

#include <cstring>

#include "backends/cpu/multiversion.h"

namespace autograph {
namespace {

template <class Copy>
inline __attribute__((always_inline)) void for_each_piece(const Pieces& p, const Copy& copy) {
  char* to = p.to;
  const char* from = p.from;
  for (int64_t i = 0; i < p.count; ++i, to += p.to_step, from += p.from_step) copy(to, from);
}

template <size_t kBytes>
inline __attribute__((always_inline)) void copy_of_size(const Pieces& pieces) {
  for_each_piece(pieces, [](char* to, const char* from) { std::memcpy(to, from, kBytes); });
}

// In blocks of kBlock; the last one may overlap with the one before. `pieces` have at least a block.
template <int64_t kBlock>
inline __attribute__((always_inline)) void copy_in_blocks(const Pieces& pieces) {
  const int64_t last = pieces.bytes - kBlock;
  for_each_piece(pieces, [=](char* to, const char* from) {
    for (int64_t at = 0; at < last; at += kBlock) std::memcpy(to + at, from + at, kBlock);
    std::memcpy(to + last, from + last, kBlock);
  });
}

// What memcpy itself copies faster.
constexpr int64_t kLarge = 4096;

}  // namespace

AG_MULTIVERSION void copy_pieces(const Pieces& pieces) {
  switch (pieces.bytes) {
    case 1: return copy_of_size<1>(pieces);
    case 2: return copy_of_size<2>(pieces);
    case 4: return copy_of_size<4>(pieces);
    case 8: return copy_of_size<8>(pieces);
    case 12: return copy_of_size<12>(pieces);
    case 64: return copy_of_size<64>(pieces);
    case 128: return copy_of_size<128>(pieces);
    default: break;
  }
  if (pieces.bytes >= 64 && pieces.bytes <= kLarge) return copy_in_blocks<64>(pieces);
  if (pieces.bytes >= 16 && pieces.bytes < 64) return copy_in_blocks<16>(pieces);
  const auto bytes = static_cast<size_t>(pieces.bytes);
  for_each_piece(pieces, [=](char* to, const char* from) { std::memcpy(to, from, bytes); });
}

}  // namespace autograph
