// A convolution of two spatial axes computed a few lines of a few pixels at a time, by a primitive without padding that
// serves every extent. What it reads is copied, zeros where the padding is. Tiles at the end are moved back to where
// they fit, so that some pixels are computed twice.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/onednn/row_tiles.h"

namespace autograph::onednn {

/// Extents, strides and padding by axis: lines, then pixels of a line.
struct WindowGrid {
  int64_t images = 1;
  std::array<int64_t, 2> in{}, out{}, strides{}, pads{};
};

class WindowTiles : public Tiles {
 public:
  /// `tile` reads and writes channels-last images, the latter no larger than those of the grid.
  WindowTiles(std::shared_ptr<const RowTile> tile, const WindowGrid& grid, int threads);
  size_t scratch_bytes() const override;
  std::unique_ptr<State> new_state(std::span<const dnnl_exec_arg_t> args) const override;
  void run(State& state, const float* x, float* y, char* scratch) const override;

 private:
  // One image of channels-last pixels.
  struct Image {
    std::array<int64_t, 2> extents{};
    int64_t channels = 0;

    explicit Image(const dnnl::memory::desc& desc);
    size_t at(int64_t line, int64_t pixel) const { return static_cast<size_t>((line * extents[1] + pixel) * channels); }
  };
  struct Workers;
  using Place = std::array<int64_t, 2>;
  void copy_in(const Image& whole, const float* x, const Place& first, float* to) const;
  void copy_out(const Image& whole, const float* from, const Place& first, float* y) const;

  std::shared_ptr<const RowTile> tile_;
  WindowGrid grid_;
  int threads_;
  Image in_, out_;  // of the tile
};

}  // namespace autograph::onednn
