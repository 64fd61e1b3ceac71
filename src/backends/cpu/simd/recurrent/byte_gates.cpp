#include "backends/cpu/simd/recurrent/byte_gates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/recurrent/byte_gates.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/byte_products-inl.h"

#ifndef AG_SIMD_BYTE_GATES_ONCE
#define AG_SIMD_BYTE_GATES_ONCE
namespace autograph::simd {
namespace {

// Panels end on four bytes of the depth, which VNNI multiplies at once.
constexpr int64_t kQuad = 4;
// Rows end on a cache line.
constexpr int64_t kLine = 64;
// A row is q * scale with q from -kLargest to kLargest. Rounding may add 1, or 128 where low bytes are left out.
constexpr int32_t kMiddle = 1 << 23;
constexpr float kLargest = kMiddle - 256;
// Rounding errors of 16 bits are 9e-6 of the number that kLargest stands for. Up to this ratio of it to the root mean
// square they are less than those of other kernels (accuracy/scaled_tensor.h: 1e-4). Numbers beyond are peaks: what
// they have beyond is multiplied by itself. Rows with more peaks than one number of kFewPeaks keep their low bytes.
constexpr float kLargestRatio = 8;
constexpr int64_t kFewPeaks = 16;
// Once peaks are set apart, there may be others among the rest.
constexpr int kMostCuts = 4;
// Rows below this are zero: the reciprocal of their scale would be infinite.
constexpr float kSmallest = 1e-30F;
// Mean squares below this may have lost too much to tell how large a row is.
constexpr float kSmallestSquare = 1e-30F;
// Numbers up to this much above kLargest are no peaks: products with the factor are rounded.
constexpr float kSlack = 8;

constexpr int64_t padded_depth(int64_t depth) { return (depth + kLine - 1) / kLine * kLine; }
constexpr int64_t num_quads(int64_t depth) { return (depth + kQuad - 1) / kQuad; }

// What stands before the bytes of a row.
struct alignas(kLine) RowHead {
  float scale;
  float sum;      // of all q
  bool is_wide;   // are there low bytes other than those of 0?
  int64_t peaks;  // stand behind the numbers
};

// What a number of a row that is not wide has beyond +-kLargest.
struct Peak {
  int64_t k;
  float excess;
};
static_assert(sizeof(Peak) == kFewPeaks);  // so that those of a row take a byte for each number

// What stands before the bytes of a panel: for each column -128 * sum w, the scale and the zero point.
constexpr int64_t kHeadFields = 3;

}  // namespace
}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define AG_HAS_BYTE_PRODUCTS (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2)
// Of a number of a row. With VNNI there stand all high bytes of a row, all middle ones and all low ones; without, high
// parts and low ones of 16 bits.
template <class Layout>
constexpr int64_t kNumberBytes = std::is_same_v<Layout, Quads> ? 3 : 4;

// Bytes before the peaks of a row.
template <class Layout>
constexpr int64_t peaks_offset(int64_t depth) {
  return static_cast<int64_t>(sizeof(RowHead)) + kNumberBytes<Layout> * padded_depth(depth);
}
template <class Layout>
constexpr int64_t row_size(int64_t depth) {
  return (peaks_offset<Layout>(depth) + padded_depth(depth)) / 4;
}

#if AG_HAS_BYTE_PRODUCTS

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;

constexpr int kVectors = 2;  // of columns in a panel
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kHead = kHeadFields * kVectors * kLanes * 4;

HWY_INLINE VF load_row(const float* x, int64_t rest) {
  const DF d;
  return rest >= kLanes ? hn::LoadU(d, x) : hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(rest)), d, x);
}

struct Magnitudes {
  float largest;  // NaN where there is a NaN or infinity
  float squares;
};

HWY_INLINE Magnitudes magnitudes(const float* x, int64_t depth) {
  const DF d;
  // Two of each, so that they need not wait for themselves.
  VF largest[2] = {hn::Zero(d), hn::Zero(d)}, poison[2] = {hn::Zero(d), hn::Zero(d)};
  VF squares[2] = {hn::Zero(d), hn::Zero(d)};
  const auto add = [&](VF v, int i) HWY_ATTR {
    largest[i] = hn::Max(largest[i], hn::Abs(v));
    poison[i] = hn::MulAdd(v, hn::Zero(d), poison[i]);
    squares[i] = hn::MulAdd(v, v, squares[i]);
  };
  int64_t k = 0;
  for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {
    add(hn::LoadU(d, x + k), 0);
    add(hn::LoadU(d, x + k + kLanes), 1);
  }
  for (; k < depth; k += kLanes) add(load_row(x + k, depth - k), 0);
  return {hn::GetLane(hn::MaxOfLanes(d, hn::Max(largest[0], largest[1]))) +
              hn::GetLane(hn::SumOfLanes(d, hn::Add(poison[0], poison[1]))),
          hn::GetLane(hn::SumOfLanes(d, hn::Add(squares[0], squares[1])))};
}

#if AG_MAY_HAVE_VNNI

// The lowest byte of each lane.
HWY_INLINE void store_lowest_bytes(VI v, uint8_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(v.raw));
}

// Bytes of q + kMiddle.
HWY_INLINE void store_numbers(Quads, VI q, int64_t k, int64_t depth, void* to) {
  const VI shifted = hn::Add(q, hn::Set(DI(), kMiddle));
  auto* const at = static_cast<uint8_t*>(to) + k;
  store_lowest_bytes(hn::ShiftRight<16>(shifted), at);
  store_lowest_bytes(hn::ShiftRight<8>(shifted), at + padded_depth(depth));
  store_lowest_bytes(shifted, at + 2 * padded_depth(depth));
}

#endif

// q = 256 * high + low.
HWY_INLINE void store_numbers(Pairs, VI q, int64_t k, int64_t depth, void* to) {
  const DI d;
  const hn::Rebind<int16_t, DI> half;
  const VI high = hn::ShiftRight<8>(hn::Add(q, hn::Set(d, 128)));
  auto* const at = static_cast<int16_t*>(to) + k;
  hn::StoreU(hn::DemoteTo(half, high), half, at);
  hn::StoreU(hn::DemoteTo(half, hn::Sub(q, hn::ShiftLeft<8>(high))), half, at + padded_depth(depth));
}

// Of the numbers up to `top`, and how many there are beyond.
struct MagnitudesBelow {
  float largest;
  float squares;
  int64_t beyond;
};

HWY_INLINE MagnitudesBelow magnitudes_below(float top, const float* x, int64_t depth) {
  const DF d;
  VF largest = hn::Zero(d), squares = hn::Zero(d);
  int64_t beyond = 0;
  for (int64_t k = 0; k < depth; k += kLanes) {
    VF v = hn::Abs(load_row(x + k, depth - k));
    const auto is_beyond = hn::Gt(v, hn::Set(d, top));
    beyond += static_cast<int64_t>(hn::CountTrue(d, is_beyond));
    v = hn::IfThenZeroElse(is_beyond, v);
    largest = hn::Max(largest, v);
    squares = hn::MulAdd(v, v, squares);
  }
  return {hn::GetLane(hn::MaxOfLanes(d, largest)), hn::GetLane(hn::SumOfLanes(d, squares)), beyond};
}

// The number that kLargest stands for, and whether low bytes are kept up to it.
struct RowTop {
  float top;
  bool is_wide;
};

HWY_INLINE RowTop find_top(const float* x, int64_t depth, bool keeps_low) {
  const auto [largest, squares] = magnitudes(x, depth);
  if (keeps_low || !(largest < std::numeric_limits<float>::infinity())) return {largest, keeps_low};
  float top = largest, rest = squares;
  for (int cut = 0; cut <= kMostCuts; ++cut) {
    const float square = rest / static_cast<float>(depth), limit = kLargestRatio * std::sqrt(square);
    if (!(square > kSmallestSquare && limit < top)) return {top, false};
    const MagnitudesBelow below = magnitudes_below(limit, x, depth);
    if (below.beyond * kFewPeaks > depth) break;
    // Where nothing is left that has a size, the limit is as good.
    top = below.squares > kSmallestSquare ? below.largest : limit;
    rest = below.squares;
  }
  return {largest, true};
}

// Cuts numbers to what has a place, and notes what is cut off.
template <class Layout>
HWY_NOINLINE VF cut_peaks(VF v, int64_t k, int64_t depth, RowHead* head) {
  const DF d;
  HWY_ALIGN float numbers[kLanes];
  hn::Store(v, d, numbers);
  auto* const peaks = reinterpret_cast<Peak*>(reinterpret_cast<char*>(head) + peaks_offset<Layout>(depth));
  for (int64_t i = 0; i < kLanes; ++i) {
    if (!(std::fabs(numbers[i]) > kLargest + kSlack)) continue;
    const float cut = std::copysign(kLargest, numbers[i]);
    peaks[head->peaks++] = {k + i, numbers[i] - cut};
    numbers[i] = cut;
  }
  return hn::Load(d, numbers);
}

template <class Layout>
void prepare_row(const float* x, int64_t depth, bool keeps_low, float* prepared) {
  const DF d;
  const DI di;
  const auto [top, is_wide] = find_top(x, depth, keeps_low);
  auto* head = reinterpret_cast<RowHead*>(prepared);
  head->is_wide = is_wide;
  head->peaks = 0;
  const bool is_zero = !(top > kSmallest);  // or NaN
  const VF factor = hn::Set(d, is_zero ? 0.0F : kLargest / top), most = hn::Set(d, kLargest + kSlack);
  const VI half = hn::Set(di, is_wide ? 0 : 128), kept = hn::Set(di, is_wide ? -1 : -256);
  VF sum = hn::Zero(d);
  for (int64_t k = 0; k < padded_depth(depth); k += kLanes) {
    VF v = k < depth ? hn::Mul(load_row(x + k, depth - k), factor) : hn::Zero(d);
    if (!hn::AllFalse(d, hn::Gt(hn::Abs(v), most))) v = cut_peaks<Layout>(v, k, depth, head);
    const VI q = hn::And(hn::Add(hn::NearestInt(v), half), kept);
    sum = hn::Add(sum, hn::ConvertTo(d, q));
    store_numbers(Layout(), q, k, depth, head + 1);
  }
  head->scale = is_zero && top == top ? 0.0F : top / kLargest;
  head->sum = hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class Layout>
struct ByteTile {
  const float* rows;
  int64_t row_size;
  int64_t depth;
  const uint8_t* panel;
  float* c;
  int64_t c_stride;

  HWY_INLINE const RowHead& head(int64_t row) const { return *reinterpret_cast<const RowHead*>(rows + row * row_size); }
  HWY_INLINE const Peak* peaks(int64_t row) const {
    return reinterpret_cast<const Peak*>(reinterpret_cast<const char*>(&head(row)) + peaks_offset<Layout>(depth));
  }
  HWY_INLINE const uint8_t* bytes(int64_t row) const { return reinterpret_cast<const uint8_t*>(&head(row) + 1); }
};

// The bytes of one vector of columns, each group widened to 32 bits.
HWY_INLINE VI load_group(Pairs, const uint8_t* group) {
  return hn::BitCast(DI(), load_pairs(reinterpret_cast<const int8_t*>(group)));
}

#if AG_MAY_HAVE_VNNI
HWY_INLINE VI load_group(Quads, const uint8_t* group) {
  return hn::BitCast(DI(), hn::LoadU(hn::Repartition<uint8_t, DI>(), group));
}
#endif

// One byte of each column.
template <class Layout>
HWY_INLINE VF load_weights(const ByteTile<Layout>& tile, int64_t k, int vector) {
  constexpr int64_t kGroup = Layout::kGroup;
  constexpr int kBits = 32 / kGroup;  // that a byte has to itself
  const uint8_t* const group = tile.panel + kHead + (k / kGroup * kVectors + vector) * kLanes * kGroup;
  const auto above = static_cast<int>((kGroup - 1 - k % kGroup) * kBits);
  return hn::ConvertTo(DF(), hn::ShiftRight<32 - kBits>(hn::ShiftLeftSame(load_group(Layout(), group), above)));
}

// Sums of q times bytes to c.
template <class Layout>
HWY_INLINE void finish_tile(const ByteTile<Layout>& tile, int64_t row, int vector, VF sum) {
  const DF d;
  const auto* head = reinterpret_cast<const float*>(tile.panel) + vector * kLanes;
  const VF scale = hn::LoadU(d, head + kVectors * kLanes);
  const VF zero = hn::LoadU(d, head + 2 * kVectors * kLanes);
  const RowHead& of_row = tile.head(row);
  sum = hn::NegMulAdd(zero, hn::Set(d, of_row.sum), sum);
  const Peak* const peaks = tile.peaks(row);
  for (int64_t i = 0; i < of_row.peaks; ++i) {
    const VF weights = hn::Sub(load_weights(tile, peaks[i].k, vector), zero);
    sum = hn::MulAdd(hn::Set(d, peaks[i].excess), weights, sum);
  }
  hn::StoreU(hn::Mul(sum, hn::Mul(scale, hn::Set(d, of_row.scale))), d, tile.c + row * tile.c_stride + vector * kLanes);
}

#if AG_MAY_HAVE_VNNI

constexpr int kBytes = 3;  // of a number

// Of sums of high, middle and, where there are kUsed of them, low bytes.
template <int kUsed>
HWY_INLINE VF join_sums(const VI* sums) {
  const DF d;
  const VF base = hn::Set(d, 256.0F);
  VF sum = hn::ConvertTo(d, sums[0]);
  for (int i = 1; i < kUsed; ++i) sum = hn::MulAdd(sum, base, hn::ConvertTo(d, sums[i]));
  return kUsed < kBytes ? hn::Mul(sum, base) : sum;
}

// kParts sums for each element hide how long a multiplication takes where there are few rows.
template <int kUsed, int kRows, int kParts>
HWY_NOINLINE void multiply_tile(const ByteTile<Quads>& tile) {
  const DI d;
  VI sums[kRows][kParts][kVectors][kUsed];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const auto* start = reinterpret_cast<const int32_t*>(tile.panel) + v * kLanes;
#pragma GCC unroll 3
        for (int i = 0; i < kUsed; ++i) sums[r][p][v][i] = p + i == 0 ? hn::LoadU(d, start) : hn::Zero(d);
      }
    }
  }
  const auto* weights = reinterpret_cast<const int8_t*>(tile.panel + kHead);
  const int64_t stride = padded_depth(tile.depth);
  const int64_t quads = num_quads(tile.depth);
  const auto step = [&](int64_t quad, int p) HWY_ATTR {
    VI columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = QuadDots::load(weights + (quad * kVectors + v) * kLanes * kQuad);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
      for (int i = 0; i < kUsed; ++i) {
        const VI bytes = QuadDots::broadcast(tile.bytes(r) + i * stride + quad * kQuad);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[r][p][v][i] = QuadDots::add(sums[r][p][v][i], bytes, columns[v]);
      }
    }
  };
  int64_t quad = 0;
  for (; quad + kParts <= quads; quad += kParts) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) step(quad + p, p);
  }
  for (; quad < quads; ++quad) step(quad, 0);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
      for (int p = 1; p < kParts; ++p) {
#pragma GCC unroll 3
        for (int i = 0; i < kUsed; ++i) sums[r][0][v][i] = hn::Add(sums[r][0][v][i], sums[r][p][v][i]);
      }
      finish_tile(tile, r, v, join_sums<kUsed>(sums[r][0][v]));
    }
  }
}

// So many rows that their sums, weights and one factor fit the registers. Returns how many it took.
HWY_INLINE int64_t multiply_rows(const ByteTile<Quads>& tile, int64_t rows) {
  constexpr int64_t kMostWide = 4, kMost = 6;
  rows = std::min(rows, kMost);
  bool is_wide = false;
  for (int64_t r = 0; r < rows; ++r) is_wide |= tile.head(r).is_wide;
  if (is_wide) rows = std::min(rows, kMostWide);
  switch (is_wide ? -rows : rows) {
    case 1: multiply_tile<2, 1, 4>(tile); break;
    case 2: multiply_tile<2, 2, 2>(tile); break;
    case 3: multiply_tile<2, 3, 2>(tile); break;
    case 4: multiply_tile<2, 4, 1>(tile); break;
    case 5: multiply_tile<2, 5, 1>(tile); break;
    case kMost: multiply_tile<2, kMost, 1>(tile); break;
    case -1: multiply_tile<kBytes, 1, 4>(tile); break;
    case -2: multiply_tile<kBytes, 2, 2>(tile); break;
    case -3: multiply_tile<kBytes, 3, 1>(tile); break;
    case -kMostWide: multiply_tile<kBytes, kMostWide, 1>(tile); break;
  }
  return rows;
}

#endif

// High parts times bytes; with kIsWide low ones, too. Sums of so many pairs fit 32 bits.
template <bool kIsWide, int kRows>
HWY_NOINLINE void multiply_tile(const ByteTile<Pairs>& tile) {
  constexpr int64_t kMostPairs = 256;
  const DF d;
  const int64_t pairs = kQuad / 2 * num_quads(tile.depth), stride = 2 * tile.row_size;
  const auto* const rows = reinterpret_cast<const int16_t*>(tile.bytes(0));
  const auto* const panel = reinterpret_cast<const int8_t*>(tile.panel + kHead);
  VF totals[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) totals[r][0] = totals[r][1] = hn::Zero(d);
  for (int64_t p = 0; p < pairs; p += kMostPairs) {
#pragma GCC unroll 2
    for (int part = 0; part < (kIsWide ? 2 : 1); ++part) {
      VI sums[kRows][kVectors];
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(DI());
      add_pair_products<kRows>(rows + part * padded_depth(tile.depth) + 2 * p, stride,
                               panel + p * 2 * kVectors * kLanes, std::min(kMostPairs, pairs - p), sums);
      const VF unit = hn::Set(d, part == 0 ? 256.0F : 1.0F);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          totals[r][v] = hn::MulAdd(hn::ConvertTo(d, sums[r][v]), unit, totals[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) finish_tile(tile, r, v, totals[r][v]);
  }
}

// Returns how many it took.
HWY_INLINE int64_t multiply_rows(const ByteTile<Pairs>& tile, int64_t rows) {
  constexpr int64_t kMost = 6;
  rows = std::min(rows, kMost);
  bool is_wide = false;
  for (int64_t r = 0; r < rows; ++r) is_wide |= tile.head(r).is_wide;
  switch (is_wide ? -rows : rows) {
    case 1: multiply_tile<false, 1>(tile); break;
    case 2: multiply_tile<false, 2>(tile); break;
    case 3: multiply_tile<false, 3>(tile); break;
    case 4: multiply_tile<false, 4>(tile); break;
    case 5: multiply_tile<false, 5>(tile); break;
    case kMost: multiply_tile<false, kMost>(tile); break;
    case -1: multiply_tile<true, 1>(tile); break;
    case -2: multiply_tile<true, 2>(tile); break;
    case -3: multiply_tile<true, 3>(tile); break;
    case -4: multiply_tile<true, 4>(tile); break;
    case -5: multiply_tile<true, 5>(tile); break;
    case -kMost: multiply_tile<true, kMost>(tile); break;
  }
  return rows;
}

void prepare_rows(const GateRows& rows, int64_t depth, bool keeps_low, float* prepared) {
  with_byte_layout([&]<class Layout>(Layout) HWY_ATTR {
    for (int64_t r = 0; r < rows.count; ++r) {
      prepare_row<Layout>(rows.values + r * rows.stride, depth, keeps_low, prepared + r * row_size<Layout>(depth));
    }
  });
}

template <class Layout>
void multiply_panels_of(const ByteProduct& product, int64_t panel_size) {
  for (int64_t p = 0; p < product.num_panels; ++p) {
    ByteTile<Layout> tile{product.rows,
                          row_size<Layout>(product.depth),
                          product.depth,
                          product.panels + p * panel_size,
                          product.c + p * kVectors * kLanes,
                          product.c_stride};
    for (int64_t rest = product.count; rest > 0;) {
      const int64_t done = multiply_rows(tile, rest);
      tile.rows += done * tile.row_size;
      tile.c += done * product.c_stride;
      rest -= done;
    }
  }
}

void multiply_panels(const ByteProduct& product, int64_t panel_size) {
  with_byte_layout([&]<class Layout>(Layout) HWY_ATTR { multiply_panels_of<Layout>(product, panel_size); });
}

#else

void prepare_rows(const GateRows&, int64_t, bool, float*) { AG_CHECK(false, "no byte products on this CPU"); }
void multiply_panels(const ByteProduct&, int64_t) { AG_CHECK(false, "no byte products on this CPU"); }

#endif

bool are_byte_products_here() { return AG_HAS_BYTE_PRODUCTS; }
int64_t row_size_of_target(int64_t depth) {
  return with_byte_layout([&]<class Layout>(Layout) HWY_ATTR { return row_size<Layout>(depth); });
}
int64_t group_of_target() {
  return with_byte_layout([]<class Layout>(Layout) HWY_ATTR { return Layout::kGroup; });
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(are_byte_products_here);
HWY_EXPORT(row_size_of_target);
HWY_EXPORT(group_of_target);
HWY_EXPORT(prepare_rows);
HWY_EXPORT(multiply_panels);

bool has_byte_products() { return HWY_DYNAMIC_DISPATCH(are_byte_products_here)(); }

int64_t byte_row_size(int64_t depth) { return HWY_DYNAMIC_DISPATCH(row_size_of_target)(depth); }

void prepare_byte_rows(const GateRows& rows, int64_t depth, bool keeps_low, float* prepared) {
  HWY_DYNAMIC_DISPATCH(prepare_rows)(rows, depth, keeps_low, prepared);
}

int64_t byte_panel_size(int64_t depth) { return gate_width() * 4 * (kHeadFields + num_quads(depth)); }

void pack_byte_panel(const ByteColumns& columns, int64_t depth, uint8_t* panel) {
  const int64_t width = gate_width(), group = HWY_DYNAMIC_DISPATCH(group_of_target)();
  std::memset(panel, 0, static_cast<size_t>(byte_panel_size(depth)));
  auto* start = reinterpret_cast<int32_t*>(panel);
  auto* scales = reinterpret_cast<float*>(panel) + width;
  float* zeros = scales + width;
  auto* bytes = reinterpret_cast<int8_t*>(panel + kHeadFields * width * 4);
  const auto as_signed = [&](uint8_t byte) {
    return columns.is_signed ? static_cast<int8_t>(byte) : static_cast<int8_t>(byte - 128);
  };
  for (int64_t j = 0; j < columns.count; ++j) {
    scales[j] = columns.scales[j * columns.scale_step];
    zeros[j] = static_cast<float>(as_signed(columns.zeros[j * columns.scale_step]));
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < columns.count; ++j) {
      const int8_t w = as_signed(columns.bytes[k * columns.row_stride + j]);
      bytes[(k / group * width + j) * group + k % group] = w;
      start[j] -= 128 * w;
    }
  }
}

void multiply_bytes(const ByteProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply_panels)(product, byte_panel_size(product.depth));
}

bool is_finite_row(const float* prepared) { return !std::isnan(reinterpret_cast<const RowHead*>(prepared)->scale); }

void multiply_row_by_panel(const float* row, int64_t depth, const uint8_t* panel, float* c) {
  const int64_t width = gate_width(), group = HWY_DYNAMIC_DISPATCH(group_of_target)();
  const auto* scales = reinterpret_cast<const float*>(panel) + width;
  const float* zeros = scales + width;
  const auto* bytes = reinterpret_cast<const int8_t*>(panel + kHeadFields * width * 4);
  for (int64_t j = 0; j < width; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t at = (k / group * width + j) * group + k % group;
      sum += row[k] * (static_cast<float>(bytes[at]) - zeros[j]) * scales[j];
    }
    c[j] = sum;
  }
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
