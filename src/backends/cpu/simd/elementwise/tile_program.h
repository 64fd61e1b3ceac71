// Programs over tiles: elementwise ops evaluated a few kilobytes at a time, so that what one instruction writes is
// still in the first cache when the next one reads it. A single elementwise op is a program of one instruction.
//
// All values have the shape of the outputs, to which the inputs broadcast. Values are f32 while they are worked on:
// bool and 8-bit inputs are widened when they are read, truth values become bool when they are written. i32 values stay
// what they are: they are added and multiplied, or become f32.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograph/kernel.h"
#include "backends/cpu/simd/elementwise/tile_ops.h"

namespace autograph::simd {

/// A value of a program: an input (of the call, or behind those a constant tensor of the program), a number, or the
/// result of an instruction.
struct TileValue {
  enum class Kind : uint8_t { none, input, number, result };
  Kind kind = Kind::none;
  uint32_t index = 0;  ///< Which input, number or instruction.

  bool operator==(const TileValue&) const = default;
};

/// One step of a program; its result is the value {result, own index}.
struct TileInstruction {
  TileOp op = kTileOp<formulas::Identity>;
  std::array<TileValue, 3> operands;
  float p = 0;
  float q = 0;
};

/// What is computed, apart from shapes.
struct TileProgram {
  std::vector<TileInstruction> instructions;
  std::vector<float> numbers;  ///< Or integers, by their bits.
  std::vector<Tensor> constants;
  std::vector<TileValue> outputs;  ///< One per output.

  TileValue number(float value);
  TileValue integer(int32_t value);
  TileValue emit(TileInstruction instruction);
};

/// One elementwise node that is to become part of a program.
struct TileNode {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Type> inputs;         ///< Kind::none where not given.
  const Type& output;                   ///< Its only output.
  std::span<const TileValue> operands;  ///< Parallel to inputs.
  std::span<const Tensor> constants;    ///< Parallel to inputs: known elements, else absent.
};

/// What bytes of this type hold of whole numbers: a quantization in the middle of a program.
TileValue append_saturation(TileProgram& program, TileValue x, DType bytes);

/// quantize_linear or dequantize_linear: elementwise where they have one scale.
bool is_quantization(const OpDef& op);

/// Appends the instructions of `node` and sets `result`. Returns why that cannot be done, or "".
std::string append_node(TileProgram& program, const TileNode& node, TileValue& result);

/// Runs `program` for the inputs and outputs of `call`. Reasons for not doing so: why_not_tiles().
std::unique_ptr<Kernel> make_tile_kernel(const KernelCall& call, TileProgram program);

/// A program that computes some elements of its only output at a time, for kernels that go on with them in cache.
class TileRange {
 public:
  virtual ~TileRange() = default;
  /// Elements that compute() needs for itself.
  virtual int64_t scratch_elements() const = 0;
  /// Computes the elements from `begin` to `end` > begin into `to`, which has room for end - begin and two tiles more;
  /// returns where the first one lies.
  virtual const float* compute(std::span<const TensorView> inputs, int64_t begin, int64_t end, float* scratch,
                               float* to) const = 0;
};

/// Elements of a tile.
inline constexpr int64_t kTileElements = 1024;

/// As make_tile_kernel(), for one row-major f32 output.
std::unique_ptr<TileRange> make_tile_range(const KernelCall& call, TileProgram program);

/// Row-major, and the layouts that tensors of the output's dims may have when the program runs on them as they are.
std::vector<KernelVariant> tile_variants(const KernelCall& call);

/// Can inputs and outputs of a program have this dtype: f32, bool, u8, i8 or i32?
bool is_tile_type(DType dtype);

/// "" when the types fit: outputs of one shape; inputs and constants that broadcast to it.
std::string why_not_tiles(const KernelCall& call, const TileProgram& program);

}  // namespace autograph::simd
