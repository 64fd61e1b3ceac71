#include "backends/cpu/onednn/row_tiles.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/threads/parallel.h"
#include "base/check.h"
#include "schedule/memory/memory_plan.h"

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

RowTiles::RowTiles(Tiles tiles, int64_t rows, bool accumulates, int threads)
    : tiles_(std::move(tiles)),
      whole_(rows / tiles_[0]->rows),
      rows_(rows),
      accumulates_(accumulates),
      threads_(threads),
      in_row_(elements_of_row(tiles_[0]->src, tiles_[0]->rows)),
      out_row_(elements_of_row(tiles_[0]->dst, tiles_[0]->rows)) {}

size_t RowTiles::rows_in_at() const {
  return std::max(aligned_size(tiles_[0]->scratchpad.get_size()), aligned_size(tiles_[1]->scratchpad.get_size()));
}
size_t RowTiles::rows_out_at() const { return rows_in_at() + aligned_size(tiles_[1]->src.get_size()); }
size_t RowTiles::bytes_of_worker() const { return rows_out_at() + aligned_size(tiles_[1]->dst.get_size()); }
size_t RowTiles::scratch_bytes() const { return static_cast<size_t>(threads_) * bytes_of_worker(); }

RowTiles::Bound RowTiles::bind(const RowTile& tile, std::span<const dnnl_exec_arg_t> args) {
  Bound bound{&tile, MovableMemory(tile.src), MovableMemory(tile.dst), MovableMemory(tile.scratchpad), {}};
  for (dnnl_exec_arg_t arg : args) {
    if (arg.arg == DNNL_ARG_SRC) arg.memory = bound.src.memory.get();
    if (arg.arg == DNNL_ARG_DST) arg.memory = bound.dst.memory.get();
    if (arg.arg == DNNL_ARG_SCRATCHPAD) arg.memory = bound.scratchpad.memory.get();
    bound.args.push_back(arg);
  }
  return bound;
}

std::unique_ptr<RowTiles::State> RowTiles::new_state(std::span<const dnnl_exec_arg_t> args) const {
  auto state = std::make_unique<State>();
  for (int t = 0; t < threads_; ++t) {
    state->workers_.push_back(Worker{.stream = dnnl::stream(cpu_engine()), .tiles = {}});
    for (const auto& tile : tiles_) state->workers_.back().tiles.push_back(bind(*tile, args));
  }
  return state;
}

void RowTiles::run(State& state, const float* x, float* y, char* scratch) const {
  const int64_t first_of_rest = whole_ * tiles_[0]->rows, small = tiles_[1]->rows;
  const int64_t pieces = whole_ + (rows_ - first_of_rest + small - 1) / small;
  for_shares(threads_, pieces, [&](int64_t begin, int64_t end, int thread) {
    char* own = scratch + static_cast<size_t>(thread) * bytes_of_worker();
    Worker& worker = state.workers_[static_cast<size_t>(thread)];
    for (int64_t piece = begin; piece < end; ++piece) {
      const bool is_whole = piece < whole_;
      const int64_t first = is_whole ? piece * tiles_[0]->rows : first_of_rest + (piece - whole_) * small;
      run_piece(worker, worker.tiles[is_whole ? 0 : 1], first, x, y, own);
    }
  });
}

void RowTiles::run_piece(Worker& worker, Bound& bound, int64_t first, const float* x, float* y, char* scratch) const {
  x += static_cast<size_t>(first) * in_row_;
  y += static_cast<size_t>(first) * out_row_;
  if (rows_ - first < bound.tile->rows) return run_rest(worker, bound, rows_ - first, x, y, scratch);
  execute(worker, bound, x, y, scratch);
}

// Fewer rows than the primitive takes: in memory of their own, zeros behind them.
void RowTiles::run_rest(Worker& worker, Bound& bound, int64_t rows, const float* x, float* y, char* scratch) const {
  auto* in = reinterpret_cast<float*>(scratch + rows_in_at());
  auto* out = reinterpret_cast<float*>(scratch + rows_out_at());
  const auto all = static_cast<size_t>(bound.tile->rows);
  const size_t count_in = static_cast<size_t>(rows) * in_row_, count_out = static_cast<size_t>(rows) * out_row_;
  std::fill_n(std::copy_n(x, count_in, in), all * in_row_ - count_in, 0.0F);
  if (accumulates_) std::fill_n(std::copy_n(y, count_out, out), all * out_row_ - count_out, 0.0F);
  execute(worker, bound, in, out, scratch);
  std::copy_n(out, count_out, y);
}

void RowTiles::execute(Worker& worker, Bound& bound, const float* x, float* y, char* scratch) {
  bound.src.move_to(const_cast<float*>(x));
  bound.dst.move_to(y);
  bound.scratchpad.move_to(scratch);
  const dnnl_status_t status = dnnl_primitive_execute(bound.tile->primitive.get(), worker.stream.get(),
                                                      static_cast<int>(bound.args.size()), bound.args.data());
  AG_CHECK(status == dnnl_success, "oneDNN execute of {} rows gave status {}", bound.tile->rows,
           static_cast<int>(status));
}

}  // namespace autograph::onednn
