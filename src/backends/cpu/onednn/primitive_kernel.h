// A kernel around one oneDNN primitive: reorders between our row-major layout and the primitive's, constants reordered
// once at prepare, scratch memory in the plan's arena.
//
// oneDNN fixes the number of threads when a primitive is made: make and run it on threads that have called
// set_cpu_threads() with the same number. Fewer may be allowed while it runs: see team_primitive.h.
#pragma once

#include <dnnl.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/onednn/cpu_engine.h"
#include "backends/cpu/onednn/late_primitive.h"
#include "backends/cpu/onednn/team/team_primitive.h"
#include "backends/cpu/onednn/tiles.h"
#include "backends/cpu/simd/elementwise/activation_pass.h"
#include "runtime/packing_kernel.h"

namespace autograph::onednn {

using DataType = dnnl::memory::data_type;

/// oneDNN's name for f32, bf16, i32, i8 or u8; undef for others.
DataType data_type_of(DType dtype);

/// Row-major memory of these dims.
dnnl::memory::desc row_major(const dnnl::memory::dims& dims, DataType type = DataType::f32);

/// Memory of these dims in one of our layouts.
dnnl::memory::desc desc_in(Layout layout, const dnnl::memory::dims& dims, DataType type = DataType::f32);

/// The blocked layout that the widest vectors of this machine like.
Layout native_block();

/// Copies elements from one layout to another, on this thread alone; allocates.
void reorder(const void* from, const dnnl::memory::desc& from_desc, void* to, const dnnl::memory::desc& to_desc);

/// Any layout that the primitive likes.
dnnl::memory::desc any_layout(const dnnl::memory::dims& dims, DataType type = DataType::f32);

/// What a descriptor is for: to list implementations, or to make a primitive; see make_implementation().
enum class Use : uint8_t { list, run };

/// Attributes, for primitives with scratchpad memory given by their user.
dnnl::primitive_attr new_attributes(Use use = Use::run);

/// oneDNN's name of the implementation that a primitive runs.
std::string implementation_of(const dnnl::primitive& primitive);

/// The descriptor that names this implementation; `describe` gives that of the first one. Throws dnnl::error when there
/// is none.
template <class Describe>
auto describe_implementation(std::string_view name, Describe&& describe) {
  auto pd = describe();
  while (pd.impl_info_str() != name) {
    if (!pd.next_impl()) throw dnnl::error(dnnl_unimplemented, "no such implementation");
  }
  return pd;
}

/// A primitive of the implementation of this name, with the descriptor it was made from. See describe_implementation().
///
/// oneDNN 2.6 keeps primitives by the number of the step at which next_impl() met them, and a step that finds its
/// number there does not move on: those behind it come again, under other numbers. What comes after how many steps thus
/// depends on what was made before. Names do not; and lists have attributes of their own, with which nothing is made.
///
/// `described` is what describe_implementation() gave, where it has been asked already.
template <class Primitive, class Describe>
std::pair<Primitive, typename Primitive::primitive_desc> make_implementation(
    std::string_view name, Describe&& describe, typename Primitive::primitive_desc described = {}) {
  // More than one where another thread makes one of its own at the same step.
  constexpr int kAttempts = 8;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto pd = described ? std::exchange(described, {}) : describe_implementation(name, describe);
    Primitive primitive(pd);
    if (implementation_of(primitive) == name) return {std::move(primitive), std::move(pd)};
  }
  throw dnnl::error(dnnl_unimplemented, "no such implementation");
}

/// Slot of arguments that are no tensors of the call: their elements are known.
inline constexpr size_t kNoInput = std::numeric_limits<size_t>::max();

/// One argument of a primitive.
struct Argument {
  int id = 0;                 ///< DNNL_ARG_*
  bool is_output = false;     ///< An output of the call, else an input.
  size_t slot = 0;            ///< Which.
  dnnl::memory::desc given;   ///< Layout of our tensor.
  dnnl::memory::desc wanted;  ///< Layout that the primitive takes.
  Tensor constant = {};       ///< Elements, when they are known: reordered once.
};

class PrimitiveKernel : public PackingKernel {
 public:
  /// `scratchpad` is the primitive descriptor's; `packed` see KernelCall.
  PrimitiveKernel(dnnl::primitive primitive, std::vector<Argument> arguments, const dnnl::memory::desc& scratchpad,
                  PackedConstants* packed = nullptr);

  /// Has a sum post-op: before the primitive runs, what becomes output 0 must hold input `slot`, which is given in the
  /// layout of output 0 and has elements of the same size.
  void set_accumulated_input(size_t slot);
  /// Has a pass over output 0 behind the primitive, which also adds input `residual` where that is not negative; it is
  /// given in the layout of output 0 and has elements of the same size.
  void set_last_pass(const simd::ActivationPass& pass, int residual, int threads);
  /// The primitive that was given is empty: `tiles` run in place of `late` until that is made, always where it is null.
  /// The arguments are a source and an output without reorders, and others that are the same for each pixel.
  void set_tiles(std::unique_ptr<Tiles> tiles, std::unique_ptr<LatePrimitive> late);
  std::vector<uint32_t> in_place_inputs() const override;

  /// Is a constant in the form that this argument wants, for kernels that are there?
  static bool is_packed(const Argument& argument, PackedConstants* packed);

  void run(const KernelArgs& args) const override;
  size_t scratch_bytes() const override { return scratch_bytes_; }
  size_t weight_bytes() const override { return weight_bytes_; }
  bool reads_input(size_t slot) const override;
  std::unique_ptr<KernelState> new_state() const override;
  bool renew(std::span<const StateContents> inputs, PackedConstants* packed) override;

 private:
  struct State;
  // An argument that needs a reorder on every run has a place in the scratch memory.
  struct Bound {
    Argument argument;
    std::optional<TeamPrimitive> reorder;  // given -> wanted for inputs, wanted -> given for outputs
    size_t scratch_offset = 0;
    bool is_known = false;                       // a constant
    std::shared_ptr<const dnnl::memory> packed;  // of a constant
  };

  bool has_argument(size_t slot) const;
  bool knows_weights() const;
  static void pack(Bound& bound, PackedConstants* packed, int threads, dnnl::memory room);
  void accumulate(const KernelArgs& args, State& state) const;
  void compute(const KernelArgs& args, State& state) const;
  size_t reserve(size_t bytes);

  TeamPrimitive primitive_;
  std::vector<Bound> bound_;
  dnnl::memory::desc scratchpad_;
  size_t scratchpad_offset_ = 0;
  std::unique_ptr<LatePrimitive> late_;  // in place of primitive_
  std::unique_ptr<Tiles> tiles_;         // which run until late_ is made
  size_t tiles_offset_ = 0;
  size_t scratch_bytes_ = 0;
  size_t weight_bytes_ = 0;
  size_t output_bytes_ = 0;
  int accumulated_input_ = -1;
  simd::ActivationPass last_pass_;
  int added_input_ = -1;
  int last_pass_threads_ = 1;
  std::optional<TeamPrimitive> accumulated_reorder_;  // where output 0 is written in another layout first
};

/// Calls `make`, turning an exception of oneDNN into a refusal.
template <class Make>
Prepared try_prepare(Make&& make) {
  try {
    return {make(), ""};
  } catch (const dnnl::error& error) {
    return {nullptr, std::string("oneDNN: ") + error.what()};
  }
}

}  // namespace autograph::onednn
