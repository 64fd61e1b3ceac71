// Rows computed a few at a time by primitives that serve any number of them: a product with a matrix, or a convolution
// of single pixels, is the same for each row. Such primitives are kept for all shapes, and they add in the same order
// as one that was made for the whole, so that they give the same bits.
#pragma once

#include <array>
#include <dnnl.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/onednn/implementation_lists.h"
#include "backends/cpu/onednn/movable_memory.h"
#include "backends/cpu/onednn/tiles.h"

namespace autograph::onednn {

/// A primitive that reads and writes so many rows of f32, made for one thread. Kernels of several shapes share it.
struct RowTile {
  dnnl::primitive primitive;
  dnnl::memory::desc src, weights, dst, scratchpad;
  dnnl::memory::desc scratchpad_of_all;  ///< Of a primitive for all rows of the first shape that it was made for.
  int64_t rows = 0;
  int64_t halo = 0;  ///< Rows that it reads besides those that it writes: a window slides along them.
};

/// Rows that follow each other, in lines of as many: windows do not reach from one line into the next.
struct RowLines {
  int64_t count = 1;
  int64_t in = 0, out = 0;  ///< Rows of a line that are read and written.
  int64_t pad = 0;          ///< Rows of zeros in front of it; others may be behind it.
};

/// A tile of a primitive made from `pd`.
template <class Descriptor>
RowTile row_tile(const dnnl::primitive& primitive, const Descriptor& pd, const dnnl::memory::desc& scratchpad_of_all,
                 int64_t rows, int64_t halo = 0) {
  return {.primitive = primitive,
          .src = pd.src_desc(),
          .weights = pd.weights_desc(),
          .dst = pd.dst_desc(),
          .scratchpad = pd.scratchpad_desc(),
          .scratchpad_of_all = scratchpad_of_all,
          .rows = rows,
          .halo = halo};
}

/// As which form of its weights a tile is kept; see PackedConstants.
std::string form_of_rows(std::string_view implementation, const ProblemKind& kind);

/// A tile with the memory that it works on.
struct BoundTile {
  const RowTile* tile;
  MovableMemory src, dst, scratchpad;
  std::vector<dnnl_exec_arg_t> args;

  /// `args` are those of a primitive for the whole.
  BoundTile(const RowTile& tile, std::span<const dnnl_exec_arg_t> args);
  void execute(const dnnl::stream& stream, const float* x, float* y, char* scratch);
};

class RowTiles : public Tiles {
 public:
  /// Both for the same weights: one for most of the rows, and one of as many rows or fewer for what is left.
  using Pair = std::array<std::shared_ptr<const RowTile>, 2>;

  /// `accumulates`: the primitives add to what lies in their output.
  RowTiles(Pair tiles, const RowLines& lines, bool accumulates, int threads);
  size_t scratch_bytes() const override;
  std::unique_ptr<State> new_state(std::span<const dnnl_exec_arg_t> args) const override;
  void run(State& state, const float* x, float* y, char* scratch) const override;

 private:
  // Of one thread.
  struct Worker {
    dnnl::stream stream;
    std::vector<BoundTile> tiles;  // one where both are the same
  };
  struct Workers;
  // Where things are in the scratch memory of a worker.
  size_t rows_in_at() const;
  size_t rows_out_at() const;
  size_t bytes_of_worker() const;
  void run_piece(Worker& worker, BoundTile& bound, int64_t first, const float* x, float* y, char* scratch) const;
  void run_at_end(Worker& worker, BoundTile& bound, int64_t first, const float* x, float* y, char* scratch) const;

  Pair tiles_;
  RowLines lines_;
  int64_t whole_;  // pieces of a line by the first tile; the second one computes the rows behind them
  bool accumulates_;
  int threads_;
  size_t in_row_, out_row_;  // elements
};

}  // namespace autograph::onednn
