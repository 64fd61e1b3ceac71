// Gradients of windows over open extents: one graph, run at several sizes, against graphs that know each size, whose
// rules are compared with differences elsewhere.
#include <gtest/gtest.h>

#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"

namespace autograph {
namespace {

// Of sum(y * y) with respect to all inputs; of order 2 those of the sum of their squares.
Graph gradients_of(const OpDef& op, const Attributes& attributes, const std::vector<Shape>& shapes, int order) {
  GraphBuilder graph;
  std::vector<Var> inputs;
  for (const Shape& shape : shapes)
    inputs.push_back(graph.input("x" + std::to_string(inputs.size()), DType::f64, shape));
  const Var y = apply(op, inputs, attributes);
  std::vector<Var> gradients = grad(reduce_sum(y * y, {}, false), inputs);
  if (order == 2) {
    Var squares;
    for (const Var& each : gradients) {
      const Var sum = reduce_sum_square(each, {}, false);
      squares = squares.is_valid() ? squares + sum : sum;
    }
    gradients = grad(squares, inputs);
  }
  for (size_t k = 0; k < gradients.size(); ++k) graph.output("grad/" + std::to_string(k), gradients[k]);
  return graph.build();
}

// `open` at the extents of each of `runs`, inputs for one run.
void expect_right_at(const OpDef& op, const Attributes& attributes, const std::vector<Shape>& open,
                     const std::vector<std::vector<Dims>>& runs, int order = 1) {
  const Executable program = compile(gradients_of(op, attributes, open, order));
  Random random(3);
  for (const std::vector<Dims>& sizes : runs) {
    std::vector<Datum> inputs;
    std::vector<Shape> known;
    for (const Dims& dims : sizes) {
      inputs.emplace_back(draw_tensor(random, DType::f64, dims, -1, 1));
      known.push_back(Shape::of(dims));
    }
    const Executable expected = compile(gradients_of(op, attributes, known, order));
    EXPECT_EQ(difference(program.run(inputs), expected.run(inputs)), "") << op.name << " " << to_string(known[0]);
  }
}

Shape open_image(int64_t channels) { return Shape({Dim::symbol("n"), channels, Dim::symbol("h"), Dim::symbol("w")}); }

// Strides, dilations and all ways to pad, over kernels of 3 x 2.
std::vector<Attributes> geometries() {
  std::vector<Attributes> list;
  for (const int64_t stride : {1, 2, 3}) {
    for (const char* auto_pad : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
      Attributes attributes{
          {"auto_pad", std::string(auto_pad)}, {"strides", Dims{stride, 2}}, {"dilations", Dims{1, 2}}};
      if (attributes.text("auto_pad") == "NOTSET") attributes.set("pads", Dims{1, 0, 2, 1});
      list.push_back(std::move(attributes));
    }
  }
  return list;
}

const std::vector<std::vector<Dims>> kImages{{{1, 4, 7, 8}}, {{3, 4, 10, 6}}, {{2, 4, 6, 9}}};

std::vector<std::vector<Dims>> with(const Dims& weights) {
  std::vector<std::vector<Dims>> runs = kImages;
  for (auto& run : runs) run.push_back(weights);
  return runs;
}

TEST(OpenExtents, OfConvolutions) {
  for (Attributes attributes : geometries()) {
    for (const int64_t group : {1, 2}) {
      attributes.set("group", group);
      const Dims weights{6, 4 / group, 3, 2};
      expect_right_at(conv_def(), attributes, {open_image(4), Shape::of(weights)}, with(weights));
    }
  }
}

TEST(OpenExtents, OfTransposedConvolutions) {
  for (Attributes attributes : geometries()) {
    for (const Dims& output_padding : {Dims{0, 0}, Dims{0, 1}}) {
      attributes.set("output_padding", output_padding);
      const Dims weights{4, 3, 3, 2};
      expect_right_at(conv_transpose_def(), attributes, {open_image(4), Shape::of(weights)}, with(weights));
    }
  }
}

TEST(OpenExtents, OfPools) {
  for (Attributes attributes : geometries()) {
    attributes.set("kernel_shape", Dims{3, 2});
    expect_right_at(lp_pool_def(), attributes, {open_image(4)}, kImages);
    expect_right_at(max_pool_def(), attributes, {open_image(4)}, kImages);
    expect_right_at(average_pool_def(), attributes, {open_image(4)}, kImages);
    attributes.set("ceil_mode", int64_t{1});
    expect_right_at(average_pool_def(), attributes, {open_image(4)}, kImages);
    attributes.set("ceil_mode", int64_t{0});
    attributes.set("count_include_pad", int64_t{1});
    expect_right_at(average_pool_def(), attributes, {open_image(4)}, kImages);
    attributes.set("ceil_mode", int64_t{1});
    expect_right_at(average_pool_def(), attributes, {open_image(4)}, kImages);
  }
}

TEST(OpenExtents, OfTransposedConvolutionsOfGivenExtents) {
  for (Attributes attributes : geometries()) {
    attributes.set("output_shape", Dims{17, 14});
    attributes.set("group", int64_t{2});
    const Dims weights{4, 3, 3, 2};
    expect_right_at(conv_transpose_def(), attributes, {open_image(4), Shape::of(weights)}, with(weights));
  }
}

TEST(OpenExtents, OfGradients) {
  const std::vector<Attributes> all = geometries();
  for (size_t k = 0; k < all.size(); ++k) {
    Attributes attributes = all[k];
    const auto group = static_cast<int64_t>(1 + k % 2);
    attributes.set("group", group);
    const Dims weights{6, 4 / group, 3, 2}, transposed{4, 3, 3, 2};
    expect_right_at(conv_def(), attributes, {open_image(4), Shape::of(weights)}, with(weights), 2);
    expect_right_at(conv_transpose_def(), attributes, {open_image(4), Shape::of(transposed)}, with(transposed), 2);
    Attributes pool = all[k];
    pool.set("kernel_shape", Dims{3, 2});
    const OpDef* pools[]{&average_pool_def(), &max_pool_def(), &lp_pool_def()};
    expect_right_at(*pools[k % 3], pool, {open_image(4)}, kImages, 2);
  }
}

TEST(OpenExtents, OfLocalResponseNormalisation) {
  const Shape open({Dim::symbol("n"), Dim::symbol("c"), Dim::symbol("h"), Dim::symbol("w")});
  const Attributes attributes{{"size", int64_t{4}}, {"alpha", 0.1F}, {"bias", 1.5F}};
  expect_right_at(lrn_def(), attributes, {open}, {{{2, 5, 3, 2}}, {{1, 3, 2, 4}}});
  expect_right_at(lrn_def(), attributes, {open_image(4)}, kImages);
}

TEST(OpenExtents, OfGridSamples) {
  const Shape grid({Dim::symbol("n"), Dim::symbol("gh"), Dim::symbol("gw"), 2});
  for (const char* mode : {"linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int64_t aligned : {0, 1}) {
        const Attributes attributes{
            {"mode", std::string(mode)}, {"padding_mode", std::string(padding)}, {"align_corners", aligned}};
        expect_right_at(grid_sample_def(), attributes, {open_image(2), grid},
                        {{{2, 2, 4, 3}, {2, 2, 3, 2}}, {{1, 2, 1, 5}, {1, 4, 2, 2}}});
      }
    }
  }
}

}  // namespace
}  // namespace autograph
