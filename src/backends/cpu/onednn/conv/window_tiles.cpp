#include "backends/cpu/onednn/conv/window_tiles.h"

#include <algorithm>

#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"

namespace autograph::onednn {

WindowTiles::Image::Image(const dnnl::memory::desc& desc)
    : extents{desc.dims()[2], desc.dims()[3]}, channels(desc.dims()[1]) {}

// One for each thread.
struct WindowTiles::Workers : Tiles::State {
  struct Worker {
    dnnl::stream stream;
    BoundTile tile;
  };
  std::vector<Worker> list;
};

WindowTiles::WindowTiles(std::shared_ptr<const RowTile> tile, const WindowGrid& grid, int threads)
    : tile_(std::move(tile)), grid_(grid), threads_(threads), in_(tile_->src), out_(tile_->dst) {}

size_t WindowTiles::scratch_bytes() const {
  const size_t of_worker = aligned_size(tile_->scratchpad.get_size()) + aligned_size(tile_->src.get_size()) +
                           aligned_size(tile_->dst.get_size());
  return static_cast<size_t>(threads_) * of_worker;
}

std::unique_ptr<Tiles::State> WindowTiles::new_state(std::span<const dnnl_exec_arg_t> args) const {
  auto workers = std::make_unique<Workers>();
  for (int t = 0; t < threads_; ++t) workers->list.push_back({dnnl::stream(cpu_engine()), BoundTile(*tile_, args)});
  return workers;
}

void WindowTiles::run(State& state, const float* x, float* y, char* scratch) const {
  Image x_image = in_, y_image = out_;
  x_image.extents = grid_.in;
  y_image.extents = grid_.out;
  std::array<int64_t, 2> pieces;
  for (size_t axis = 0; axis < 2; ++axis) {
    pieces[axis] = (grid_.out[axis] + out_.extents[axis] - 1) / out_.extents[axis];
  }
  const size_t in_at = aligned_size(tile_->scratchpad.get_size());
  const size_t out_at = in_at + aligned_size(tile_->src.get_size());
  for_shares(threads_, grid_.images * pieces[0] * pieces[1], [&](int64_t begin, int64_t end, int thread) {
    char* own = scratch + static_cast<size_t>(thread) * (scratch_bytes() / static_cast<size_t>(threads_));
    auto* in = reinterpret_cast<float*>(own + in_at);
    auto* out = reinterpret_cast<float*>(own + out_at);
    auto& [stream, tile] = static_cast<Workers&>(state).list[static_cast<size_t>(thread)];
    for (int64_t k = begin; k < end; ++k) {
      const int64_t image = k / (pieces[0] * pieces[1]);
      const Place piece{k / pieces[1] % pieces[0], k % pieces[1]};
      Place first;
      for (size_t axis = 0; axis < 2; ++axis) {
        first[axis] = std::min(piece[axis] * out_.extents[axis], grid_.out[axis] - out_.extents[axis]);
      }
      copy_in(x_image, x + x_image.at(image * grid_.in[0], 0), first, in);
      tile.execute(stream, in, out, own);
      copy_out(y_image, out, first, y + y_image.at(image * grid_.out[0], 0));
    }
  });
}

// What windows of the pixels from `first` on see of an image.
void WindowTiles::copy_in(const Image& whole, const float* x, const Place& first, float* to) const {
  const int64_t top = first[0] * grid_.strides[0] - grid_.pads[0], left = first[1] * grid_.strides[1] - grid_.pads[1];
  const int64_t from = std::clamp<int64_t>(-left, 0, in_.extents[1]);
  const int64_t end = std::clamp<int64_t>(whole.extents[1] - left, from, in_.extents[1]);
  for (int64_t i = 0; i < in_.extents[0]; ++i) {
    float* line = to + in_.at(i, 0);
    const int64_t read = top + i;
    if (read < 0 || read >= whole.extents[0]) {
      std::fill_n(line, in_.at(1, 0), 0.0F);
      continue;
    }
    float* at = std::fill_n(line, in_.at(0, from), 0.0F);
    at = std::copy_n(x + whole.at(read, left + from), in_.at(0, end - from), at);
    std::fill(at, line + in_.at(1, 0), 0.0F);
  }
}

void WindowTiles::copy_out(const Image& whole, const float* from, const Place& first, float* y) const {
  for (int64_t i = 0; i < out_.extents[0]; ++i) {
    std::copy_n(from + out_.at(i, 0), out_.at(1, 0), y + whole.at(first[0] + i, first[1]));
  }
}

}  // namespace autograph::onednn
