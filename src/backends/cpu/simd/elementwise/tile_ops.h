// The instructions of elementwise programs: each is one loop over a tile of f32 elements, or of i32 elements, whose
// bits stand where those of floats would.
//
// Truth values are 0 and 1. An operand is either as long as the tile or one element that stands for all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/elementwise/formula/formulas.h"

namespace autograph::simd {

/// What an instruction computes from its operands and parameters p and q: the place of a formula among all formulas,
/// and behind these one of TilesOfIntegers.
enum class TileOp : uint8_t {};

/// i32 elements that wrap around, and what makes f32 elements of them.
struct IntegerSum {
  static constexpr FormulaInfo kInfo{.operands = 2};
};
struct IntegerDifference {
  static constexpr FormulaInfo kInfo{.operands = 2};
};
struct IntegerProduct {
  static constexpr FormulaInfo kInfo{.operands = 2};
};
struct FloatOfInteger {
  static constexpr FormulaInfo kInfo{.operands = 1};
};
using TilesOfIntegers = FormulaList<IntegerSum, IntegerDifference, IntegerProduct, FloatOfInteger>;

constexpr size_t kTileOpCount = formulas::Formulas::kSize + TilesOfIntegers::kSize;

/// The instruction that computes F.
template <class F>
inline constexpr TileOp kTileOp{index_in<F>(formulas::Formulas())};
template <class F>
inline constexpr TileOp kIntegerTileOp{formulas::Formulas::kSize + index_in<F>(TilesOfIntegers())};

/// An operand: `step` is 1, or 0 for one element that stands for all.
struct TileOperand {
  const float* data = nullptr;
  int64_t step = 1;
};

/// One instruction on one tile; `y` may be one of the operands.
struct TileCall {
  std::array<TileOperand, 3> operands;
  float p = 0;
  float q = 0;
  float* y = nullptr;
  int64_t count = 0;
};

using TileFunction = void (*)(const TileCall&);

/// The loops by TileOp, for the best instruction set of this CPU.
const std::array<TileFunction, kTileOpCount>& tile_functions();

/// Elements of bool or 8-bit tensors as f32.
void widen_bytes(const uint8_t* from, float* to, int64_t count);

/// Elements of i8 tensors as f32.
void widen_signed_bytes(const int8_t* from, float* to, int64_t count);

/// Whole numbers as u8, those beyond its range and NaN as its ends.
void narrow_to_bytes(const float* from, uint8_t* to, int64_t count);

/// The same for i8.
void narrow_to_signed_bytes(const float* from, int8_t* to, int64_t count);

/// f32 to bool: anything but 0 is true.
void narrow_to_bool(const float* from, uint8_t* to, int64_t count);

}  // namespace autograph::simd
