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

RowTiles::RowTiles(RowTile tile, int64_t rows, bool accumulates, int threads)
    : tile_(std::move(tile)),
      rows_(rows),
      accumulates_(accumulates),
      threads_(threads),
      in_row_(elements_of_row(tile_.src, tile_.rows)),
      out_row_(elements_of_row(tile_.dst, tile_.rows)) {}

size_t RowTiles::rows_in_at() const { return aligned_size(tile_.scratchpad.get_size()); }
size_t RowTiles::rows_out_at() const { return rows_in_at() + aligned_size(tile_.src.get_size()); }
size_t RowTiles::bytes_of_worker() const { return rows_out_at() + aligned_size(tile_.dst.get_size()); }
size_t RowTiles::scratch_bytes() const { return static_cast<size_t>(threads_) * bytes_of_worker(); }

std::unique_ptr<RowTiles::State> RowTiles::new_state(std::span<const dnnl_exec_arg_t> args) const {
  auto state = std::make_unique<State>();
  for (int t = 0; t < threads_; ++t) {
    Worker& worker = state->workers_.emplace_back(Worker{.src = MovableMemory(tile_.src),
                                                         .dst = MovableMemory(tile_.dst),
                                                         .scratchpad = MovableMemory(tile_.scratchpad),
                                                         .args = {}});
    for (dnnl_exec_arg_t arg : args) {
      if (arg.arg == DNNL_ARG_SRC) arg.memory = worker.src.memory.get();
      if (arg.arg == DNNL_ARG_DST) arg.memory = worker.dst.memory.get();
      if (arg.arg == DNNL_ARG_SCRATCHPAD) arg.memory = worker.scratchpad.memory.get();
      worker.args.push_back(arg);
    }
  }
  return state;
}

void RowTiles::run(State& state, const float* x, float* y, char* scratch) const {
  const int64_t tiles = (rows_ + tile_.rows - 1) / tile_.rows;
  for_shares(threads_, tiles, [&](int64_t begin, int64_t end, int thread) {
    char* own = scratch + static_cast<size_t>(thread) * bytes_of_worker();
    Worker& worker = state.workers_[static_cast<size_t>(thread)];
    for (int64_t tile = begin; tile < end; ++tile) run_tile(worker, tile * tile_.rows, x, y, own);
  });
}

void RowTiles::run_tile(Worker& worker, int64_t first, const float* x, float* y, char* scratch) const {
  x += static_cast<size_t>(first) * in_row_;
  y += static_cast<size_t>(first) * out_row_;
  if (rows_ - first < tile_.rows) return run_rest(worker, rows_ - first, x, y, scratch);
  execute(worker, x, y, scratch);
}

// Fewer rows than the primitive takes: in memory of their own, zeros behind them.
void RowTiles::run_rest(Worker& worker, int64_t rows, const float* x, float* y, char* scratch) const {
  auto* in = reinterpret_cast<float*>(scratch + rows_in_at());
  auto* out = reinterpret_cast<float*>(scratch + rows_out_at());
  const size_t count_in = static_cast<size_t>(rows) * in_row_, count_out = static_cast<size_t>(rows) * out_row_;
  std::fill_n(std::copy_n(x, count_in, in), static_cast<size_t>(tile_.rows) * in_row_ - count_in, 0.0F);
  if (accumulates_) {
    std::fill_n(std::copy_n(y, count_out, out), static_cast<size_t>(tile_.rows) * out_row_ - count_out, 0.0F);
  }
  execute(worker, in, out, scratch);
  std::copy_n(out, count_out, y);
}

void RowTiles::execute(Worker& worker, const float* x, float* y, char* scratch) const {
  worker.src.move_to(const_cast<float*>(x));
  worker.dst.move_to(y);
  worker.scratchpad.move_to(scratch);
  const dnnl_status_t status = dnnl_primitive_execute(tile_.primitive.get(), worker.stream.get(),
                                                      static_cast<int>(worker.args.size()), worker.args.data());
  AG_CHECK(status == dnnl_success, "oneDNN execute of {} rows gave status {}", tile_.rows, static_cast<int>(status));
}

}  // namespace autograph::onednn
