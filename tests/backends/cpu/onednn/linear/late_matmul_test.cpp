// Products with known matrices for which code is made when their number of rows has come back: until then a few rows at
// a time are computed by code that all numbers of rows share, to the same bits.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <deque>
#include <dnnl.hpp>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "backends/cpu/onednn/late_primitive.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/team/team_primitive.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "runtime/memory/packed_constants.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

constexpr size_t kResidual = 3;

enum class Epilogue { bias, relu, residual, gelu };

// Products of any number of rows with one matrix.
class Products {
 public:
  Products(int64_t depth, int64_t columns, Epilogue epilogue) : epilogue_(epilogue) {
    for (const Dims& dims : {Dims{depth, columns}, Dims{columns}}) {
      weights_.emplace_back(draw_tensor(random_, DType::f32, dims, -1, 1));
    }
  }

  OpSample with_rows(int64_t rows) {
    const Dims &matrix = weights_[0].tensor().dims(), y{rows, matrix[1]};
    OpSample sample{.inputs = {draw_tensor(random_, DType::f32, {rows, matrix[0]}, -1, 1), weights_[0], weights_[1]}};
    if (epilogue_ == Epilogue::residual) sample.inputs.emplace_back(draw_tensor(random_, DType::f32, y, -1, 1));
    auto body = std::make_shared<Graph>("body");
    std::vector<Var> operands;
    for (const Datum& x : sample.inputs) {
      operands.push_back(input(*body, DType::f32, Shape::of(x.tensor().dims()), ""));
    }
    Var chain = add(matmul(operands[0], operands[1]), operands[2]);
    if (epilogue_ == Epilogue::relu) chain = relu(chain);
    if (epilogue_ == Epilogue::residual) chain = add(chain, operands[kResidual]);
    if (epilogue_ == Epilogue::gelu) chain = gelu(chain, false);
    body->add_output(chain.id());
    sample.attributes = {{"body", GraphRef(body)}};
    sample.num_outputs = 1;
    return sample;
  }

 private:
  Random random_{43};
  Epilogue epilogue_;
  std::vector<Datum> weights_;
};

class Kernels {
 public:
  explicit Kernels(int threads) : setup_{.threads = threads, .constant_weights = true, .first_unknown = kResidual} {}

  // Runs among products of other numbers of rows against a run alone, and against the reference.
  void expect_equal_runs(const OpSample& sample) {
    const onednn::TeamScope team(setup_.threads);
    KernelSetup among_others = setup_;
    among_others.packed = &packed_;
    const KernelCase &alone = cases_.emplace_back(fused_def(), sample, setup_),
                     &among = cases_.emplace_back(fused_def(), sample, among_others);
    KernelRun expected(def_, alone);
    ASSERT_EQ(expected.refusal(), "");
    expected.run();
    EXPECT_EQ(difference(expected.outputs()[0], alone.reference()[0], {.rtol = 1e-4, .atol = 1e-4}), "");
    num_late_ += scratch_bytes(among) > scratch_bytes(alone) ? 1 : 0;
    KernelRun& actual = runs_.emplace_back(def_, among);
    for (int run = 0; run < onednn::LatePrimitive::kRunsBefore + 2; ++run) {
      actual.run();
      EXPECT_TRUE(actual.outputs()[0].bitwise_equal(expected.outputs()[0])) << "run " << run;
    }
  }

  int num_late() const { return num_late_; }
  size_t num_packed() const { return packed_.num_made(); }

 private:
  size_t scratch_bytes(const KernelCase& of) const { return def_.prepare(of.call()).kernel->scratch_bytes(); }

  const KernelDef def_ = onednn::fused_matmul_kernel();
  KernelSetup setup_;
  PackedConstants packed_;
  std::deque<KernelCase> cases_;
  std::deque<KernelRun> runs_;
  int num_late_ = 0;
};

// Before AVX-512 oneDNN has products that need no code for each number of rows.
bool has_code() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core; }

TEST(LateMatmul, EveryRunGivesTheSameBits) {
  // Parts of a tile, tiles and a part of one, tiles alone, more of larger ones.
  const std::vector<int64_t> rows{40, 5, 12, 17, 31, 32, 77, 128, 201};
  for (const auto& [depth, columns] : {std::pair<int64_t, int64_t>{120, 360}, {33, 17}, {700, 130}}) {
    for (const Epilogue epilogue : {Epilogue::bias, Epilogue::relu, Epilogue::residual, Epilogue::gelu}) {
      for (const int threads : {1, 3}) {
        Products products(depth, columns, epilogue);
        Kernels kernels(threads);
        for (const int64_t n : rows) {
          SCOPED_TRACE(fmt::format("{} x {} x {}, epilogue {}, {} threads", n, depth, columns,
                                   static_cast<int>(epilogue), threads));
          kernels.expect_equal_runs(products.with_rows(n));
        }
        // Those whose matrix oneDNN wants in the layout of the first.
        EXPECT_GE(kernels.num_late(), has_code() ? 4 : 0);
      }
    }
  }
}

TEST(LateMatmul, KnownTilesServeOtherNumbersOfRows) {
  if (!has_code()) GTEST_SKIP() << "no code for each number of rows";
  Products products(120, 360, Epilogue::bias);
  Kernels kernels(1);
  for (const int64_t rows : {40, 41}) kernels.expect_equal_runs(products.with_rows(rows));
  const size_t packed = kernels.num_packed();
  for (const int64_t rows : {42, 57, 99}) kernels.expect_equal_runs(products.with_rows(rows));
  EXPECT_EQ(kernels.num_packed(), packed);
}

TEST(LateMatmul, FewRowsGetCodeOfTheirOwn) {
  Products products(120, 360, Epilogue::bias);
  Kernels kernels(1);
  for (const int64_t rows : {40, 4, 3}) kernels.expect_equal_runs(products.with_rows(rows));
  EXPECT_EQ(kernels.num_late(), 0);
}

}  // namespace
}  // namespace autograph
