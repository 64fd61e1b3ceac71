// Products by cuBLASLt and convolutions by cuDNN: every variant that is offered, beside the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
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
 public:
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

  // Compares all candidates of the kernel `name` for this call, those whose variants' names begin with `variants`;
  // returns how many there are.
  static size_t compare_all(std::string_view name, const OpDef& op, const OpSample& sample, bool exact = false,
                            Precision precision = Precision::f32, std::string_view variants = "") {
    const Device& device = get_device("cuda", precision);
    const KernelCase test(op, sample, {.exact = exact});
    size_t count = 0;
    for (const KernelCandidate& candidate : device.catalog().candidates(test.call()).candidates) {
      if (candidate.kernel->name != name || !candidate.variant.name.starts_with(variants)) continue;
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

  static OpSample window_sample(std::vector<Dims> dims, Dims strides, Dims pads, Dims dilations, int64_t group,
                                DType dtype);
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

// Sums of f16 and bf16 are rounded once, by every algorithm, wherever operands begin.
TEST_F(CudaLibraries, MultiplyMatricesOf16Bits) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const auto& dims : std::vector<std::vector<Dims>>{
             {{5, 30}, {30, 7}}, {{2, 4, 5, 8}, {8, 16}}, {{4, 5, 3}, {4, 3, 7}}, {{6, 1, 8}, {1, 8, 5}}}) {
      EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample_of(dims, {}, dtype)), 2U) << to_string(dtype);
    }
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const OpSample sample = sample_of({{16, 64}, {64, 8}}, {}, dtype);
      EXPECT_EQ(compare_all("cuda.cublaslt", matmul_def(), sample, /*exact=*/false, precision), 2U);
    }
    Attributes attributes;
    attributes.set("transB", int64_t{1});
    EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({{5, 40}, {7, 40}, {7}}, attributes, dtype)), 2U);
    attributes.set("alpha", 0.5F);
    attributes.set("beta", -2.0F);
    EXPECT_EQ(compare_all("cuda.cublaslt", gemm_def(), sample_of({{5, 40}, {7, 40}, {5, 7}}, attributes, dtype)), 2U);
  }
}

// A graph whose only op by name is computed by a library where estimates choose.
TEST_F(CudaLibraries, AreChosenForTensorCores) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    GraphBuilder product;
    product.output("y", matmul(product.input("a", dtype, {512, 512}), product.input("b", dtype, {512, 512})));
    GraphBuilder window;
    const Var x = window.input("x", dtype, {8, 256, 32, 32});
    window.output("y", conv(x, window.input("w", dtype, {256, 256, 3, 3}), Var(), {.pads = {1, 1, 1, 1}}));
    const Executable multiplies = compile(product.build(), on_cuda());
    const Executable convolves = compile(window.build(), on_cuda());
    EXPECT_TRUE(multiplies.kernel_choices()[0].kernel.starts_with("cuda.cublaslt")) << to_string(dtype);
    EXPECT_TRUE(convolves.kernel_choices()[0].kernel.starts_with("cuda.cudnn")) << to_string(dtype);
  }
}

OpSample CudaLibraries::window_sample(std::vector<Dims> dims, Dims strides, Dims pads, Dims dilations, int64_t group,
                                      DType dtype) {
  Attributes attributes;
  attributes.set("strides", std::move(strides));
  attributes.set("pads", std::move(pads));
  attributes.set("dilations", std::move(dilations));
  attributes.set("group", group);
  return sample_of(std::move(dims), attributes, dtype);
}

// Neither what rounds what it transforms nor a bias behind what has been rounded: where there is one, the convolution
// adds it.
TEST_F(CudaLibraries, ConvolveTensorsOf16Bits) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto count = [&](std::vector<Dims> dims, Dims strides, int64_t group) {
      const OpSample sample = window_sample(std::move(dims), std::move(strides), {1, 1, 1, 1}, {1, 1}, group, dtype);
      return compare_all("cuda.cudnn", conv_def(), sample);
    };
    EXPECT_EQ(count({{2, 8, 7, 9}, {16, 8, 3, 3}}, {1, 1}, 1), 2U) << to_string(dtype);
    EXPECT_EQ(count({{2, 8, 7, 9}, {16, 8, 3, 3}, {16}}, {1, 2}, 1), 1U) << to_string(dtype);
    EXPECT_EQ(count({{1, 6, 7, 7}, {6, 3, 3, 3}, {6}}, {1, 1}, 2), 1U) << to_string(dtype);
  }
  EXPECT_EQ(compare_all("cuda.cudnn", conv_def(),
                        window_sample({{2, 4, 7, 9}, {6, 4, 3, 3}}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, DType::f64)),
            0U);
}

TEST_F(CudaLibraries, Convolve) {
  const auto conv = [](std::vector<Dims> dims, Dims strides, Dims pads, Dims dilations, int64_t group) {
    return window_sample(std::move(dims), std::move(strides), std::move(pads), std::move(dilations), group, DType::f32);
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

// The fused node that the passes make of a graph, on operands of its own.
OpSample fused_sample(const Graph& graph) {
  const Executable there = compile(graph, on_cuda());
  OpSample sample;
  Random random(5);
  for (const NodeId id : there.graph().nodes()) {
    const Node& node = there.graph().node(id);
    if (&node.op() != &fused_def()) continue;
    sample.attributes = node.attributes();
    sample.num_outputs = 1;
    for (const ValueId v : node.inputs()) {
      const Type& type = there.graph().type(v);
      sample.inputs.emplace_back(draw_tensor(random, type.dtype(), type.shape().static_dims(), -1, 1));
    }
  }
  return sample;
}

// A library computes the product or the convolution, a generated kernel what follows, or one all of it.
TEST_F(CudaLibraries, HaveWhatFollowsBehindThem) {
  const auto conv_with = [](const std::function<Var(const Var&, const Var&)>& behind, bool has_bias,
                            DType dtype = DType::f32) {
    GraphBuilder graph;
    const Var x = graph.input("x", dtype, {2, 6, 7, 9});
    const Var w = graph.input("w", dtype, {10, 6, 3, 3});
    const Var bias = has_bias ? graph.input("bias", dtype, {10}) : Var();
    const Var residual = graph.input("residual", dtype, {2, 10, 7, 9});
    graph.output("y", behind(conv(x, w, bias, {.pads = {1, 1, 1, 1}}), residual));
    return fused_sample(graph.build());
  };
  const auto relu_alone = [](const Var& y, const Var&) { return relu(y); };
  const auto residual_relu = [](const Var& y, const Var& residual) { return relu(add(residual, hard_swish(y))); };
  for (const bool has_bias : {false, true}) {
    const size_t algorithms = has_bias ? 4 : 3;
    EXPECT_EQ(compare_all("cuda.cudnn", fused_def(), conv_with(relu_alone, has_bias)), algorithms);
    EXPECT_EQ(compare_all("cuda.cudnn", fused_def(), conv_with(residual_relu, has_bias)), algorithms);
    EXPECT_GE(compare_all("cuda.generated", fused_def(), conv_with(residual_relu, has_bias)), 1U);
    EXPECT_EQ(compare_all("cuda.cudnn", fused_def(), conv_with(residual_relu, has_bias, DType::f16)),
              has_bias ? 1U : 2U);
  }
  GraphBuilder graph;
  const Var a = graph.input("a", DType::f32, {3, 5, 8});
  const Var b = graph.input("b", DType::f32, {8, 12});
  const Var bias = graph.input("bias", DType::f32, {12});
  graph.output("y", gelu(add(matmul(a, b), bias)));
  const OpSample product = fused_sample(graph.build());
  EXPECT_EQ(compare_all("cuda.cublaslt", fused_def(), product), 2U);
  EXPECT_EQ(compare_all("cuda.cudnn", fused_def(), product), 0U);
}

// What a product of two tensors is followed by.
OpSample product_with(std::vector<Dims> dims, const std::function<Var(const Var&, const Var&, const Var&)>& make,
                      DType dtype = DType::f32) {
  GraphBuilder graph;
  const Var a = graph.input("a", dtype, Shape::of(dims[0]));
  const Var b = graph.input("b", dtype, Shape::of(dims[1]));
  const Var c = dims.size() > 2 ? graph.input("c", dtype, Shape::of(dims[2])) : Var();
  graph.output("y", make(a, b, c));
  return fused_sample(graph.build());
}

size_t count_epilogues(const OpSample& sample, bool exact = false) {
  return CudaLibraries::compare_all("cuda.cublaslt", fused_def(), sample, exact, Precision::f32, "epilogue");
}

// Where the library has an epilogue for all that follows, it is a candidate, too, with each of its two algorithms.
TEST_F(CudaLibraries, MultiplyWithEpiloguesOfTheirOwn) {
  const auto relu_alone = [](const Var& a, const Var& b, const Var&) { return relu(matmul(a, b)); };
  const auto row_relu = [](const Var& a, const Var& b, const Var& c) { return relu(add(c, matmul(a, b))); };
  const auto row_gelu = [](const Var& a, const Var& b, const Var& c) { return gelu(matmul(a, b) + c, true); };
  const auto gemm_relu = [](const Var& a, const Var& b, const Var& c) { return relu(gemm(a, b, c)); };
  const auto matrix_relu = [](const Var& a, const Var& b, const Var& c) {
    return relu(gemm(a, b, c, {.alpha = 0.5F, .beta = -2.0F}));
  };
  EXPECT_EQ(count_epilogues(product_with({{5, 8}, {8, 7}}, relu_alone)), 2U);
  EXPECT_EQ(count_epilogues(product_with({{3, 5, 8}, {8, 12}, {12}}, row_relu)), 2U);
  EXPECT_EQ(count_epilogues(product_with({{3, 5, 8}, {3, 8, 12}, {1, 1, 12}}, row_relu)), 2U) << "one for all batches";
  EXPECT_EQ(count_epilogues(product_with({{3, 5, 8}, {8, 12}, {12}}, row_gelu)), 2U);
  EXPECT_EQ(count_epilogues(product_with({{5, 8}, {8, 12}, {5, 12}}, matrix_relu)), 2U);
  EXPECT_EQ(count_epilogues(product_with({{5, 8}, {8, 12}, {12}}, gemm_relu, DType::f64)), 2U);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    EXPECT_EQ(count_epilogues(product_with({{5, 8}, {8, 12}, {12}}, gemm_relu, dtype)), 2U) << to_string(dtype);
  }
  EXPECT_EQ(count_epilogues(product_with({{3, 5, 8}, {3, 8, 12}, {12}}, row_relu, DType::f16)), 0U)
      << "rounded in between";
}

TEST_F(CudaLibraries, LeaveWhatTheyHaveNoEpilogueForToASecondKernel) {
  const auto count = [](std::vector<Dims> dims, const std::function<Var(const Var&, const Var&)>& behind,
                        bool exact = false) {
    const auto make = [&](const Var& a, const Var& b, const Var& c) { return behind(matmul(a, b), c); };
    return count_epilogues(product_with(std::move(dims), make), exact);
  };
  const std::vector<Dims> row{{3, 5, 8}, {8, 12}, {12}};
  EXPECT_EQ(count(row, [](const Var& y, const Var& c) { return gelu(y + c); }), 0U) << "not the tanh form";
  EXPECT_EQ(count(
                row, [](const Var& y, const Var& c) { return gelu(y + c, true); }, true),
            0U)
      << "exact";
  EXPECT_EQ(count(row, [](const Var& y, const Var& c) { return hard_swish(y + c); }), 0U);
  EXPECT_EQ(count(row, [](const Var& y, const Var& c) { return relu(y) + c; }), 0U) << "a row behind relu";
  EXPECT_EQ(count(row, [](const Var& y, const Var& c) { return relu(y * c); }), 0U);
  EXPECT_EQ(count({{3, 5, 8}, {8, 12}, {5, 1}}, [](const Var& y, const Var& c) { return relu(y + c); }), 0U);
}

// Tiles of all shapes, sums along k in one piece and in many, reads of four neighbours and of one.
TEST_F(CudaLibraries, StandBesideEveryCutOfAGeneratedProduct) {
  size_t cuts = 0;
  for (const auto& dims : std::vector<std::vector<Dims>>{{{5, 700}, {700, 7}},
                                                         {{40, 301}, {301, 33}},
                                                         {{2, 70, 64}, {2, 64, 68}},
                                                         {{100, 20}, {20, 100}},
                                                         {{1, 512}, {512, 260}}}) {
    cuts += compare_all("cuda.generated", matmul_def(), sample_of(dims));
  }
  EXPECT_GE(cuts, 10U);
  EXPECT_GE(compare_all("cuda.generated", matmul_def(), sample_of({{40, 300}, {300, 33}}, {}, DType::f64)), 2U);
  EXPECT_GE(compare_all("cuda.generated", matmul_def(), sample_of({{40, 300}, {300, 33}}, {}, DType::i64)), 2U);
  Attributes transposed;
  transposed.set("transA", int64_t{1});
  transposed.set("transB", int64_t{1});
  EXPECT_GE(compare_all("cuda.generated", gemm_def(), sample_of({{300, 20}, {36, 300}, {36}}, transposed)), 2U);
  Attributes window;
  window.set("pads", Dims{1, 1, 1, 1});
  window.set("strides", Dims{2, 1});
  EXPECT_GE(compare_all("cuda.generated", conv_def(), sample_of({{2, 40, 7, 9}, {24, 40, 3, 3}, {24}}, window)), 2U);
  EXPECT_GE(compare_all("cuda.generated", conv_def(), sample_of({{2, 128, 6, 6}, {20, 128, 1, 1}})), 2U);
  EXPECT_GE(compare_all("cuda.generated", conv_def(), sample_of({{2, 128, 7, 7}, {20, 128, 1, 1}})), 2U);
}

Graph product_with_weights(int64_t rows, int64_t inner, int64_t columns) {
  Graph graph("products");
  const Var x = input(graph, DType::f32, {rows, inner}, "x");
  Random random(1);
  graph.add_output(matmul(x, constant(graph, draw_tensor(random, DType::f32, {inner, columns}, -1, 1))).id(), "y");
  return graph;
}

TEST_F(CudaLibraries, AreChosenForLargeProductsByWhatIsEstimated) {
  const Executable there = compile(product_with_weights(512, 1024, 1024), on_cuda());
  EXPECT_TRUE(there.kernel_choices()[0].kernel.starts_with("cuda.cublaslt")) << there.kernel_choices()[0].kernel;
  const Executable small = compile(product_with_weights(24, 512, 16), on_cuda());
  EXPECT_TRUE(small.kernel_choices()[0].kernel.starts_with("cuda.")) << small.kernel_choices()[0].kernel;
}

// Kernels that were measured on the device, where runs are captured and replayed.
TEST_F(CudaLibraries, AreMeasuredBesideGeneratedKernels) {
  const Graph graph = product_with_weights(16, 64, 16);
  Random random(2);
  const Tensor in = draw_tensor(random, DType::f32, {16, 64}, -1, 1);
  const auto expected = compile(graph, on_reference()).run({in});
  const TestFolder folder;
  CompileOptions options = on_cuda();
  options.tune = true;
  options.cache_folder = folder.path();
  size_t measured = 0;
  options.on_tune = [&](const TuneProgress& progress) { measured = std::max(measured, progress.measured); };
  const Executable there = compile(graph, options);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run({in}), expected), "");
  EXPECT_GE(measured, 3U) << "two algorithms of the library, and what is generated";
}

}  // namespace
}  // namespace autograph
