// grid_sample in f32: the taps of a few positions are found once, then mixed in every channel; where they come in pairs
// of neighbours, see grid_pairs.h.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/vision/grid_pairs.h"
#include "ops/defs.h"
#include "ops/vision/grid_sampler.h"

namespace autograph {
namespace {

constexpr size_t kMaxTaps = 64;  // cubic in three dimensions
// Positions whose taps stay in cache, and which read much of the same lines of a plane.
constexpr int64_t kPositions = GridPairs::kPositions;
constexpr size_t kMaxAxes = 8;

// [tap][position]: neighbouring positions are mixed together. Positions with fewer taps than others have masks of 0, so
// that what they read in vain may be infinite.
struct TapBlock {
  std::array<int32_t, kMaxTaps * kPositions> offset;
  std::array<float, kMaxTaps * kPositions> weight;
  std::array<uint32_t, kMaxTaps * kPositions> mask;
};

AG_MULTIVERSION void mix_block(const float* in, const TapBlock& block, size_t taps, float* out, int64_t count) {
  const int32_t* offset = block.offset.data();
  const float* weight = block.weight.data();
  const uint32_t* mask = block.mask.data();
  float sum[kPositions] = {};
  for (size_t t = 0; t < taps; ++t, offset += kPositions, weight += kPositions, mask += kPositions) {
    for (int64_t i = 0; i < count; ++i) {
      sum[i] += weight[i] * std::bit_cast<float>(std::bit_cast<uint32_t>(in[offset[i]]) & mask[i]);
    }
  }
  std::copy_n(sum, count, out);
}

// Numbers of planes that are mixed together.
constexpr int64_t kPlanes = 4;
using PlaneValues = float __attribute__((vector_size(kPlanes * sizeof(float))));
using PlaneMasks = uint32_t __attribute__((vector_size(kPlanes * sizeof(uint32_t))));

// The same for kPlanes planes, `in_step` and `out_step` elements apart: sums of a position stay in a register.
// Gathering the elements of neighbouring positions takes longer.
AG_MULTIVERSION void mix_planes(const float* in, int64_t in_step, const TapBlock& block, size_t taps, float* out,
                                int64_t out_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    PlaneValues sum{};
    for (size_t at = static_cast<size_t>(i); at < taps * kPositions; at += kPositions) {
      const float* from = in + block.offset[at];
      const PlaneValues values{from[0], from[in_step], from[2 * in_step], from[3 * in_step]};
      sum += block.weight[at] * std::bit_cast<PlaneValues>(std::bit_cast<PlaneMasks>(values) & block.mask[at]);
    }
    for (int64_t plane = 0; plane < kPlanes; ++plane) out[i + plane * out_step] = sum[plane];
  }
}

Dims image_extents(const KernelCall& call) {
  const Dims in = call.input_dims(0);
  return {in.begin() + 2, in.end()};
}

class GridSampleKernel : public Kernel {
 public:
  explicit GridSampleKernel(const KernelCall& call)
      : extents_(image_extents(call)),
        sampler_(call.attributes, extents_),
        in_pairs_(GridPairs::fit(sampler_, extents_)) {
    const Dims in = call.input_dims(0), out = call.output_dims(0);
    batch_ = in[0];
    channels_ = in[1];
    for (size_t a = 2; a < in.size(); ++a) {
      pixels_ *= in[a];
      positions_ *= out[a];
    }
    blocks_ = (positions_ + kPositions - 1) / kPositions;
    threads_ =
        useful_threads(call.threads, batch_ * channels_ * positions_ * static_cast<int64_t>(sampler_.most_taps()));
  }

  void run(const KernelArgs& args) const override {
    for_shares(threads_, batch_ * blocks_, [&](int64_t begin, int64_t end, int) {
      if (in_pairs_) {
        GridPairs pairs;
        for (int64_t b = begin; b < end; ++b) mix_pairs(args, block_at(args, b), pairs);
        return;
      }
      TapBlock taps;
      std::vector<GridTap> buffer;
      buffer.reserve(kMaxTaps);
      for (int64_t b = begin; b < end; ++b) mix_taps(args, block_at(args, b), taps, buffer);
    });
  }

 private:
  // Neighbouring positions of an image.
  struct Block {
    int64_t image, first, count;
    const float* points;
  };

  Block block_at(const KernelArgs& args, int64_t b) const {
    const int64_t image = b / blocks_, first = b % blocks_ * kPositions;
    const float* grid = args.inputs[1].data<float>();
    return {image, first, std::min(kPositions, positions_ - first),
            grid + (image * positions_ + first) * static_cast<int64_t>(extents_.size())};
  }
  const float* input(const KernelArgs& args, int64_t plane) const {
    return args.inputs[0].data<float>() + plane * pixels_;
  }
  float* output(const KernelArgs& args, int64_t plane, const Block& block) const {
    return args.outputs[0].mutable_data<float>() + plane * positions_ + block.first;
  }

  void mix_pairs(const KernelArgs& args, const Block& block, GridPairs& pairs) const {
    pairs.find(sampler_, extents_, block.points, block.count);
    const int64_t plane = block.image * channels_;
    pairs.mix(input(args, plane), pixels_, channels_, output(args, plane, block), positions_, block.count);
  }

  void mix_taps(const KernelArgs& args, const Block& block, TapBlock& found, std::vector<GridTap>& buffer) const {
    const size_t taps = find_taps(block.points, found, block.count, buffer);
    const int64_t end_plane = (block.image + 1) * channels_;
    int64_t plane = block.image * channels_;
    for (; plane + kPlanes <= end_plane; plane += kPlanes) {
      mix_planes(input(args, plane), pixels_, found, taps, output(args, plane, block), positions_, block.count);
    }
    for (; plane < end_plane; ++plane) {
      mix_block(input(args, plane), found, taps, output(args, plane, block), block.count);
    }
  }

  static void clear(TapBlock& block, size_t tap, int64_t count) {
    const size_t first = tap * kPositions;
    std::fill_n(block.offset.begin() + first, count, 0);
    std::fill_n(block.weight.begin() + first, count, 0.0F);
    std::fill_n(block.mask.begin() + first, count, 0U);
  }

  // Fills `block` with the taps of `count` positions, `buffer` being of use; returns how many each has.
  size_t find_taps(const float* grid, TapBlock& block, int64_t count, std::vector<GridTap>& buffer) const {
    const size_t axes = extents_.size();
    std::array<double, kMaxAxes> point{};
    size_t most = 0;
    for (int64_t i = 0; i < count; ++i, grid += axes) {
      std::copy_n(grid, axes, point.begin());
      sampler_.mix(std::span(point).first(axes), buffer);
      for (; most < buffer.size(); ++most) clear(block, most, count);
      for (size_t t = 0; t < buffer.size(); ++t) {
        const size_t at = t * kPositions + static_cast<size_t>(i);
        block.offset[at] = static_cast<int32_t>(buffer[t].offset);
        block.weight[at] = static_cast<float>(buffer[t].weight);
        block.mask[at] = ~uint32_t{0};
      }
    }
    return most;
  }

  const Dims extents_;
  const GridSampler sampler_;
  const bool in_pairs_;
  int64_t batch_ = 1;
  int64_t channels_ = 1;
  int64_t pixels_ = 1;     // of a channel of x
  int64_t positions_ = 1;  // of a channel of y
  int64_t blocks_ = 1;     // of positions, in one image
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  const Dims extents = image_extents(call);
  int64_t pixels = 1;
  for (const int64_t extent : extents) pixels *= extent;
  if (pixels > std::numeric_limits<int32_t>::max()) return "a channel of more than 2^31 elements";
  if (extents.size() > kMaxAxes || GridSampler(call.attributes, extents).most_taps() > kMaxTaps) return "too many axes";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<GridSampleKernel>(call), ""}; }

}  // namespace

KernelDef grid_sample_kernel() {
  return {.name = "cpu.grid_sample", .op = grid_sample_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
