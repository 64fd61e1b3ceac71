#include "backends/cpu/onednn/row_tiles.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "base/check.h"

namespace autograph::onednn {
namespace {

size_t elements_of_row(const dnnl::memory::desc& desc, int64_t rows) {
  return desc.get_size() / sizeof(float) / static_cast<size_t>(rows);
}

}  // namespace

std::string form_of_rows(std::string_view implementation, const ProblemKind& kind) {
  std::string form = "onednn rows ";
  form.append(implementation);
  form.append(reinterpret_cast<const char*>(kind.key().data()), kind.key().size() * sizeof(int64_t));
  return form;
}

BoundTile::BoundTile(const RowTile& tile, std::span<const dnnl_exec_arg_t> given)
    : tile(&tile), src(tile.src), dst(tile.dst), scratchpad(tile.scratchpad), args(given.begin(), given.end()) {
  for (dnnl_exec_arg_t& arg : args) {
    if (arg.arg == DNNL_ARG_SRC) arg.memory = src.memory.get();
    if (arg.arg == DNNL_ARG_DST) arg.memory = dst.memory.get();
    if (arg.arg == DNNL_ARG_SCRATCHPAD) arg.memory = scratchpad.memory.get();
  }
}

void BoundTile::execute(const dnnl::stream& stream, const float* x, float* y, char* scratch) {
  src.move_to(const_cast<float*>(x));
  dst.move_to(y);
  scratchpad.move_to(scratch);
  const dnnl_status_t status =
      dnnl_primitive_execute(tile->primitive.get(), stream.get(), static_cast<int>(args.size()), args.data());
  AG_CHECK(status == dnnl_success, "oneDNN execute of a tile of {} rows gave status {}", tile->rows,
           static_cast<int>(status));
}

RowTiles::RowTiles(Pair tiles, const RowLines& lines, bool accumulates, int threads)
    : tiles_(std::move(tiles)),
      lines_(lines),
      whole_(lines.out / tiles_[0]->rows),
      accumulates_(accumulates),
      threads_(threads),
      in_row_(elements_of_row(tiles_[0]->src, tiles_[0]->rows + tiles_[0]->halo)),
      out_row_(elements_of_row(tiles_[0]->dst, tiles_[0]->rows)) {}

size_t RowTiles::rows_in_at() const {
  return std::max(aligned_size(tiles_[0]->scratchpad.get_size()), aligned_size(tiles_[1]->scratchpad.get_size()));
}
size_t RowTiles::rows_out_at() const { return rows_in_at() + aligned_size(tiles_[0]->src.get_size()); }
size_t RowTiles::bytes_of_worker() const { return rows_out_at() + aligned_size(tiles_[0]->dst.get_size()); }
size_t RowTiles::scratch_bytes() const { return static_cast<size_t>(threads_) * bytes_of_worker(); }

struct RowTiles::Workers : Tiles::State {
  std::vector<Worker> list;  // one for each thread
};

std::unique_ptr<Tiles::State> RowTiles::new_state(std::span<const dnnl_exec_arg_t> args) const {
  auto workers = std::make_unique<Workers>();
  for (int t = 0; t < threads_; ++t) {
    Worker& worker = workers->list.emplace_back(Worker{.stream = dnnl::stream(cpu_engine()), .tiles = {}});
    worker.tiles.emplace_back(*tiles_[0], args);
    if (tiles_[1] != tiles_[0]) worker.tiles.emplace_back(*tiles_[1], args);
  }
  return workers;
}

void RowTiles::run(State& state, const float* x, float* y, char* scratch) const {
  const int64_t first_of_rest = whole_ * tiles_[0]->rows, small = tiles_[1]->rows;
  const int64_t pieces = whole_ + (lines_.out - first_of_rest + small - 1) / small;
  for_shares(threads_, lines_.count * pieces, [&](int64_t begin, int64_t end, int thread) {
    char* own = scratch + static_cast<size_t>(thread) * bytes_of_worker();
    Worker& worker = static_cast<Workers&>(state).list[static_cast<size_t>(thread)];
    for (int64_t k = begin; k < end; ++k) {
      const int64_t line = k / pieces, piece = k % pieces;
      const bool is_whole = piece < whole_;
      const int64_t first = is_whole ? piece * tiles_[0]->rows : first_of_rest + (piece - whole_) * small;
      BoundTile& tile = is_whole ? worker.tiles.front() : worker.tiles.back();
      run_piece(worker, tile, first, x + static_cast<size_t>(line * lines_.in) * in_row_,
                y + static_cast<size_t>(line * lines_.out) * out_row_, own);
    }
  });
}

// `x` and `y` are those of a line, from row `first` of which on is written.
void RowTiles::run_piece(Worker& worker, BoundTile& bound, int64_t first, const float* x, float* y,
                         char* scratch) const {
  const int64_t begin = first - lines_.pad, end = begin + bound.tile->rows + bound.tile->halo;
  const bool lies_inside = begin >= 0 && end <= lines_.in && first + bound.tile->rows <= lines_.out;
  if (!lies_inside) return run_at_end(worker, bound, first, x, y, scratch);
  bound.execute(worker.stream, x + static_cast<size_t>(begin) * in_row_, y + static_cast<size_t>(first) * out_row_,
                scratch);
}

// At the end of a line there are fewer rows than the primitive takes, at its begin there may be: in memory of their
// own, zeros around them.
void RowTiles::run_at_end(Worker& worker, BoundTile& bound, int64_t first, const float* x, float* y,
                          char* scratch) const {
  auto* in = reinterpret_cast<float*>(scratch + rows_in_at());
  auto* out = reinterpret_cast<float*>(scratch + rows_out_at());
  const int64_t begin = first - lines_.pad, end = begin + bound.tile->rows + bound.tile->halo;
  const int64_t from = std::clamp<int64_t>(begin, 0, lines_.in), to = std::clamp<int64_t>(end, from, lines_.in);
  float* at = std::fill_n(in, static_cast<size_t>(std::clamp<int64_t>(-begin, 0, end - begin)) * in_row_, 0.0F);
  at = std::copy_n(x + static_cast<size_t>(from) * in_row_, static_cast<size_t>(to - from) * in_row_, at);
  std::fill(at, in + static_cast<size_t>(end - begin) * in_row_, 0.0F);
  const int64_t rows = std::min(bound.tile->rows, lines_.out - first);
  y += static_cast<size_t>(first) * out_row_;
  const size_t count = static_cast<size_t>(rows) * out_row_;
  if (accumulates_) {
    std::fill_n(std::copy_n(y, count, out), static_cast<size_t>(bound.tile->rows - rows) * out_row_, 0.0F);
  }
  bound.execute(worker.stream, in, out, scratch);
  std::copy_n(out, count, y);
}

}  // namespace autograph::onednn
