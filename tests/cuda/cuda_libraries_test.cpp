// Products by cuBLASLt and convolutions by cuDNN: every variant that is offered, beside the reference.
#include <gtest/gtest.h>

#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "backends/cuda/stream.h"
#include "cuda/cuda_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

class CudaLibraries : public CudaTest {
 protected:
  // Runs a candidate on the device, on operands that begin `shift` bytes behind where allocations do.
  static std::string compared(const Device& device, const KernelCase& test, const KernelCandidate& candidate,
                              size_t shift) {
    Prepared prepared = device.catalog().prepare(test.call(), candidate);
    if (!prepared.kernel) return "refused: " + prepared.refusal;
    const Memory& memory = *device.memory();
    const auto stream = device.new_stream();
    const auto state = prepared.kernel->new_state();
    std::vector<std::shared_ptr<void>> pieces;
    const auto place = [&](size_t bytes) {
      pieces.push_back(memory.allocate(bytes + shift));
      return static_cast<void*>(static_cast<char*>(pieces.back().get()) + shift);
    };
    std::vector<TensorView> inputs, outputs;
    for (const TensorView& view : test.inputs()) {
      if (!view.is_present()) {
        inputs.emplace_back();
        continue;
      }
      inputs.emplace_back(view.dtype(), view.dims(), place(view.size_bytes()));
      memory.write(inputs.back().raw(), view.raw(), view.size_bytes(), nullptr);
    }
    const std::vector<Tensor> expected = test.reference();
    for (const Tensor& y : expected) outputs.emplace_back(y.dtype(), y.dims(), place(y.size_bytes()));
    const auto scratch = memory.allocate(prepared.kernel->scratch_bytes() + 64);
    prepared.kernel->run({inputs, outputs, scratch.get(), state.get(), stream.get()});
    stream->wait();
    Tensor y = Tensor::empty(expected[0].dtype(), expected[0].dims());
    memory.read(y.mutable_raw(), outputs[0].raw(), y.size_bytes(), nullptr);
    return difference(Datum(y), Datum(expected[0]));
  }

  // Compares all candidates of the kernel `name` for this call; returns how many there are.
  static size_t compare_all(std::string_view name, const OpDef& op, const OpSample& sample, bool exact = false,
                            Precision precision = Precision::f32) {
    const Device& device = get_device("cuda", precision);
    const KernelCase test(op, sample, {.exact = exact});
    size_t count = 0;
    for (const KernelCandidate& candidate : device.catalog().candidates(test.call()).candidates) {
      if (candidate.kernel->name != name) continue;
      ++count;
      for (const size_t shift : {size_t{0}, element_size(test.inputs()[0].dtype())}) {
        EXPECT_EQ(compared(device, test, candidate, shift), "") << candidate.name() << " shifted by " << shift;
      }
    }
    return count;
  }

  static OpSample sample_of(std::vector<Dims> dims, Attributes attributes = {}, DType dtype = DType::f32) {
    OpSample sample;
    sample.attributes = std::move(attributes);
    Random random(7);
    for (Dims& each : dims) sample.inputs.emplace_back(draw_tensor(random, dtype, std::move(each), -1, 1));
    return sample;
  }
};

TEST_F(CudaLibraries, MultiplyMatricesOfAllKinds) {
  const std::vector<std::vector<Dims>> cases{
      {{5, 3}, {3, 7}},       {{3}, {3, 7}},          {{5, 3}, {3}},          {{2, 4, 5, 3}, {3, 7}},
      {{4, 5, 3}, {4, 3, 7}}, {{5, 3}, {4, 3, 7}},    {{1, 5, 3}, {4, 3, 7}}, {{2, 3, 5, 4}, {2, 3, 4, 6}},
      {{4, 1, 3}, {4, 3, 1}}, {{6, 1, 8}, {1, 8, 5}},
  };
  for (const auto& dims : cases) {
    EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of(dims)), 2U) << testing::PrintToString(dims);
  }
  EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of({{5, 3}, {3, 7}}, {}, DType::f64)), 2U);
  EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of({{5, 3}, {3, 7}}), false, Precision::bf16), 2U);
}

TEST_F(CudaLibraries, LeaveToOthersWhatTheyCannotMultiply) {
  EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of({{2, 1, 5, 3}, {1, 4, 3, 7}})), 0U);
  EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of({{5, 3}, {3, 7}}, {}, DType::i32)), 0U);
  EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of({{0, 3}, {3, 7}})), 0U);
}

TEST_F(CudaLibraries, MultiplyAndAddAsGemmDoes) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const Dims left = a ? Dims{3, 5} : Dims{5, 3};
      const Dims right = b ? Dims{7, 3} : Dims{3, 7};
      Attributes attributes;
      attributes.set("transA", int64_t{a});
      attributes.set("transB", int64_t{b});
      EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({left, right}, attributes)), 2U);
      EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({left, right, {7}}, attributes)), 2U);
      EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({left, right, {1, 7}}, attributes)), 2U);
      attributes.set("alpha", 0.5F);
      attributes.set("beta", -2.0F);
      EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({left, right, {5, 7}}, attributes)), 2U);
      EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({left, right, {5, 1}}, attributes)), 0U);
    }
  }
}

TEST_F(CudaLibraries, Convolve) {
  const auto conv = [](std::vector<Dims> dims, Dims strides, Dims pads, Dims dilations, int64_t group) {
    Attributes attributes;
    attributes.set("strides", std::move(strides));
    attributes.set("pads", std::move(pads));
    attributes.set("dilations", std::move(dilations));
    attributes.set("group", group);
    return sample_of(std::move(dims), attributes);
  };
  const auto count = [](const OpSample& sample, bool exact = false) {
    return compare_all("cuda.cudnn", conv_def(), sample, exact);
  };
  // Two algorithms that add in order, one that does not; where there is a bias, also one that adds it.
  EXPECT_EQ(count(conv({{2, 4, 7, 9}, {6, 4, 3, 3}}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1)), 3U);
  EXPECT_EQ(count(conv({{2, 4, 7, 9}, {6, 4, 3, 3}, {6}}, {2, 1}, {1, 0, 1, 0}, {1, 2}, 1)), 4U);
  EXPECT_EQ(count(conv({{1, 4, 8, 8}, {4, 1, 3, 3}, {4}}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 4)), 4U);
  EXPECT_EQ(count(conv({{1, 4, 9}, {6, 2, 3}, {6}}, {2}, {1, 1}, {1}, 2)), 4U);
  EXPECT_EQ(count(conv({{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}}, {1, 1, 2}, {0, 1, 0, 0, 1, 0}, {1, 1, 1}, 1)), 3U);
  EXPECT_EQ(count(conv({{2, 4, 7, 9}, {6, 4, 3, 3}}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1), true), 2U) << "exact";
  // Padding at the end that no window reaches is none.
  EXPECT_EQ(count(conv({{1, 2, 8, 8}, {3, 2, 3, 3}}, {2, 2}, {1, 1, 0, 0}, {1, 1}, 1)), 3U);
  EXPECT_EQ(count(conv({{1, 2, 8, 8}, {3, 2, 3, 3}}, {1, 1}, {0, 0, 1, 1}, {1, 1}, 1)), 0U) << "paddings differ";
}

// By what is estimated, and by what was measured on the device.
TEST_F(CudaLibraries, AreChosenBesideGeneratedKernels) {
  Graph graph("products");
  const Var x = input(graph, DType::f32, {64, 256}, "x");
  Random random(1);
  const Tensor weights = draw_tensor(random, DType::f32, {256, 64}, -1, 1);
  graph.add_output(matmul(x, constant(graph, weights)).id(), "y");
  const Tensor in = draw_tensor(random, DType::f32, {64, 256}, -1, 1);
  const auto expected = compile(graph, on_reference()).run({in});
  const TestFolder folder;
  for (const bool tunes : {false, true}) {
    CompileOptions options = on_cuda();
    options.tune = tunes;
    options.cache_folder = folder.path();
    const Executable there = compile(graph, options);
    for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run({in}), expected), "");
    const std::string chosen = there.kernel_choices()[0].kernel;
    EXPECT_TRUE(tunes || chosen.starts_with("cuda.cublaslt")) << chosen;
  }
}

}  // namespace
}  // namespace autograph
