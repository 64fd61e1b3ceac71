// Fourier transforms on an OpenCL device, of lengths that are one step and several.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/signal.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Of the axis before the last; 0: as long as the signal.
Graph spectrum_graph(DType dtype, const Dims& dims, int64_t length, bool inverse, bool onesided) {
  GraphBuilder graph;
  const Var x = graph.input("x", dtype, Shape::of(dims));
  const Var n = length > 0 ? graph.constant(Tensor::scalar(length)) : Var();
  graph.output("y", dft(x, n, graph.constant(Tensor::scalar(int64_t{1})), inverse, onesided));
  return graph.build();
}

// Signals that are cut and padded; an axis with others behind it; real and complex ones, and halves of their spectra.
TEST(OpenClSignal, HasTheSpectrumOfTheReference) {
  AG_NEEDS_OPENCL();
  Random random(1);
  const auto expect_same = [&](DType dtype, const Dims& dims, int64_t length, bool inverse, bool onesided,
                               const FloatTolerance& tolerance) {
    const Tensor x = draw_tensor(random, dtype, dims);
    EXPECT_EQ(difference_on_opencl(spectrum_graph(dtype, dims, length, inverse, onesided), {x}, tolerance), "")
        << to_string(Shape::of(dims)) << ", length " << length;
  };
  const FloatTolerance single{1e-6, 1e-6}, twice{1e-11, 1e-11};
  expect_same(DType::f32, {2, 7, 3, 2}, 0, false, false, single);
  expect_same(DType::f32, {2, 70, 3, 1}, 0, false, true, single);        // 14, 5
  expect_same(DType::f64, {1, 90, 2, 2}, 400, true, false, twice);       // 16, 5, 5
  expect_same(DType::f16, {3, 200, 1}, 67, false, false, {1e-3, 1e-3});  // a prime number
  expect_same(DType::f32, {2, 41, 2, 2}, 0, true, true, single);         // half a spectrum, of an even length
  expect_same(DType::f32, {2, 5, 2, 2}, 75, true, true, single);         // of an odd one, and padded: 15, 5
}

TEST(OpenClSignal, LeavesLongPrimeNumbersToTheHost) {
  AG_NEEDS_OPENCL();
  const Graph graph = spectrum_graph(DType::f32, {1, 4099, 1}, 0, false, false);
  EXPECT_NE(difference_on_opencl(graph, {Tensor::zeros(DType::f32, {1, 4099, 1})}).find("large prime factor"),
            std::string::npos);
}

TEST(OpenClSignal, TransformsFramesAsTheReference) {
  AG_NEEDS_OPENCL();
  Random random(2);
  for (const int64_t parts : {1, 2}) {
    GraphBuilder graph;
    const Var x = graph.input("x", DType::f32, {2, 300, parts}), window = graph.input("window", DType::f32, {72});
    const Var step = graph.constant(Tensor::scalar(int64_t{31}));
    graph.output("windowed", stft(x, step, window, {}, parts == 1));
    graph.output("plain", stft(x, graph.constant(Tensor::scalar(int64_t{1} << 40)), {},
                               graph.constant(Tensor::scalar(int64_t{9})), false));
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {2, 300, parts}),
                                    draw_tensor(random, DType::f32, {72}, 0, 1)};
    EXPECT_EQ(difference_on_opencl(graph.build(), inputs, {1e-6, 1e-6}), "") << parts;
  }
}

}  // namespace
}  // namespace autograph
