// Convolutions along rows where extents change from run to run: computed some pixels at a time by code that all shapes
// share.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <deque>
#include <dnnl.hpp>
#include <limits>
#include <random>

#include "autograph/random.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/team/team_primitive.h"
#include "ops/sample.h"
#include "runtime/memory/packed_constants.h"
#include "support/compare.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

constexpr size_t kResidual = 3;

// Weights and bias of a convolution along rows, and the padding at both ends of a row.
struct RowConv {
  int64_t in, out, width, front, back;

  std::vector<Datum> constants(Random& random) const {
    return {draw_tensor(random, DType::f32, {out, in, 1, width}, -1, 1), draw_tensor(random, DType::f32, {out}, -1, 1)};
  }
};

int64_t draw_integer(Random& random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

OpSample sample_of(Random& random, const RowConv& conv, const std::vector<Datum>& constants, const Dims& x,
                   int64_t epilogue) {
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), constants[0], constants[1]};
  sample.attributes = {{"pads", std::vector<int64_t>{0, conv.front, 0, conv.back}}};
  return with_epilogue(random, sample, epilogue);
}

// The same elements, pixel by pixel.
Datum channels_last(const Datum& image) {
  const Tensor& from = image.tensor();
  const int64_t channels = from.dims()[1], pixels = from.dims()[2] * from.dims()[3];
  Tensor to = Tensor::empty(DType::f32, from.dims());
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    const int64_t n = i / (channels * pixels), c = i / pixels % channels, pixel = i % pixels;
    to.mutable_data<float>()[(n * pixels + pixel) * channels + c] = from.data<float>()[i];
  }
  return to;
}

// The kernels of one convolution for several shapes.
class Shapes {
 public:
  explicit Shapes(int threads) : threads_(threads) { packed_.expect_other_extents(); }

  // Each of the kernels gives what the reference gives, and the same whatever shapes came before. Says how many of
  // them compute some pixels at a time.
  int expect_right_runs(const OpSample& sample) {
    const onednn::TeamScope team(threads_);
    setup_ = {.threads = threads_, .constant_weights = true, .first_unknown = kResidual};
    OpSample given = sample;
    given.inputs[0] = channels_last(sample.inputs[0]);
    if (given.inputs.size() > kResidual) given.inputs[kResidual] = channels_last(sample.inputs[kResidual]);
    const KernelCase plain(fused_def(), sample, setup_);
    if (!def_.why_not(plain.call()).empty()) return 0;
    const Tensor truth = channels_last(plain.reference()[0]).tensor();
    int tiled = 0;
    for (const KernelVariant& variant : def_.variants(plain.call())) {
      // Products lay out the padding as zeros themselves.
      const bool is_product = variant.name.find("gemm") != std::string::npos;
      if (variant.input(0) != Layout::channels_last || is_product) continue;
      SCOPED_TRACE(variant.name);
      setup_.variant = &variant;
      tiled += expect_right_run(given, truth) ? 1 : 0;
    }
    return tiled;
  }

 private:
  bool expect_right_run(const OpSample& given, const Tensor& truth) {
    PackedConstants first_of_all;
    first_of_all.expect_other_extents();
    const Tensor output = output_of(given, &packed_);
    EXPECT_EQ(difference(output, truth, {.rtol = 1e-4, .atol = 2e-4}), "");
    EXPECT_TRUE(output.bitwise_equal(output_of(given, &first_of_all)));
    return scratch_bytes(given, &packed_) > scratch_bytes(given, nullptr);
  }

  KernelSetup with(PackedConstants* packed) const {
    KernelSetup setup = setup_;
    setup.packed = packed;
    return setup;
  }
  Tensor output_of(const OpSample& given, PackedConstants* packed) {
    const KernelCase& of = cases_.emplace_back(fused_def(), given, with(packed));
    KernelRun& run = runs_.emplace_back(def_, of);
    EXPECT_EQ(run.refusal(), "");
    run.run();
    return run.outputs()[0];
  }
  size_t scratch_bytes(const OpSample& given, PackedConstants* packed) const {
    const KernelCase of(fused_def(), given, with(packed));
    return def_.prepare(of.call()).kernel->scratch_bytes();
  }

  const KernelDef def_ = onednn::fused_conv_kernel();
  int threads_;
  KernelSetup setup_;
  PackedConstants packed_;
  // Those of earlier shapes live on.
  std::deque<KernelCase> cases_;
  std::deque<KernelRun> runs_;
};

// Below AVX2 oneDNN has products alone.
bool has_code() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx2; }

TEST(RowConv, AnyWidthIsRight) {
  Random random(47);
  const RowConv convs[] = {{24, 40, 3, 1, 1},  {33, 17, 3, 1, 1}, {16, 64, 5, 2, 2},
                           {480, 60, 3, 1, 1}, {16, 16, 2, 0, 1}, {8, 24, 4, 3, 0}};
  int tiled = 0;
  for (const RowConv& conv : convs) {
    for (const int threads : {1, 3}) {
      Shapes shapes(threads);
      const std::vector<Datum> constants = conv.constants(random);
      for (int k = 0; k < 12; ++k) {
        const int64_t most = k % 3 == 0 ? 170 : 34;
        const Dims x{1 + draw_integer(random, 0, 1), conv.in, 1 + draw_integer(random, 0, 2),
                     draw_integer(random, conv.width, most)};
        const int64_t epilogue = draw_integer(random, 0, kNumEpilogues - 1);
        SCOPED_TRACE(fmt::format("{} -> {} of {}, {} and {} zeros, {} threads, image {}, epilogue {}", conv.in,
                                 conv.out, conv.width, conv.front, conv.back, threads, to_string(Shape::of(x)),
                                 epilogue));
        tiled += shapes.expect_right_runs(sample_of(random, conv, constants, x, epilogue)) > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tiled, has_code() ? 12 * 6 : -1);
}

// Zeros around an image would make NaN of them.
TEST(RowConv, InfiniteWeightsMeetNoZeros) {
  Random random(48);
  const RowConv conv{24, 40, 3, 1, 1};
  std::vector<Datum> constants = conv.constants(random);
  Tensor weights = constants[0].tensor();
  weights.mutable_data<float>()[3 * 7] = std::numeric_limits<float>::infinity();
  constants[0] = weights;
  Shapes shapes(1);
  EXPECT_EQ(shapes.expect_right_runs(sample_of(random, conv, constants, {1, 24, 1, 19}, 1)), 0);
}

}  // namespace
}  // namespace autograph
