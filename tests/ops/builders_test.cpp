// The typed builders of ops that no other test builds by them: operands and attributes go where they belong.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "autograph/autograph.h"
#include "io/file.h"
#include "ops/defs.h"

namespace autograph {
namespace {

using Values = std::vector<double>;

Tensor floats(Dims dims, std::vector<float> values) { return Tensor::of<float>(std::move(dims), std::move(values)); }
Tensor longs(Dims dims, std::vector<int64_t> values) { return Tensor::of<int64_t>(std::move(dims), std::move(values)); }

// A graph whose values are known while it is made.
class Builders : public testing::Test {
 protected:
  Var of(Tensor tensor) { return graph_.constant(std::move(tensor)); }
  Var row(std::vector<float> values) {
    const auto count = std::ssize(values);
    return of(floats({count}, std::move(values)));
  }
  Var number(float value) { return of(Tensor::scalar(value)); }
  Var integer(int64_t value) { return of(Tensor::scalar(value)); }

  Tensor run(const Var& y) {
    GraphBuilder copy = graph_;
    Graph graph = copy.build();
    graph.add_output(y.id(), "y");
    return compile(std::move(graph)).run(std::vector<Datum>())[0].tensor();
  }
  Values values(const Var& y) { return run(y).to_f64(); }

 private:
  GraphBuilder graph_;
};

TEST_F(Builders, LoopCarriesStatesAndStacks) {
  Graph body("body");
  const Var turn = input(body, DType::i64, Shape::of({}), "turn");
  const Var condition = input(body, DType::boolean, Shape::of({}), "condition");
  const Var state = input(body, DType::f32, Shape::of({}), "state");
  const Var outside = input(body, DType::f32, Shape::of({}), "outside");
  body.add_output(condition.id());
  body.add_output((state + outside).id());
  body.add_output((cast(turn, DType::f32) * outside).id());
  const std::vector<Var> y = loop(integer(4), Var(), {number(10)}, body, {number(2)});
  ASSERT_EQ(y.size(), 2U);
  EXPECT_EQ(values(y[0]), (Values{18}));
  EXPECT_EQ(values(y[1]), (Values{0, 2, 4, 6}));
}

TEST_F(Builders, ScanWalksOverSlices) {
  Graph body("body");
  const Var state = input(body, DType::f32, Shape::of({}), "state");
  const Var slice = input(body, DType::f32, Shape::of({}), "slice");
  const Var sum = state + slice;
  body.add_output(sum.id());
  body.add_output(sum.id());
  EXPECT_EQ(values(scan({number(1)}, {row({1, 2, 3})}, body)[1]), (Values{2, 4, 7}));
}

TEST_F(Builders, IfElseTakesABranch) {
  const auto branch = [](float factor) {
    Graph graph("branch");
    graph.add_output((input(graph, DType::f32, Shape::of({2}), "x") * factor).id());
    return graph;
  };
  const Var x = row({1, 2});
  const Var larger = greater(reduce_sum(x, {0}, false), number(2));
  EXPECT_EQ(values(if_else(larger, branch(10), branch(-1), {x})[0]), (Values{10, 20}));
}

TEST_F(Builders, SequencesHoldTensors) {
  const Var both = sequence_construct({row({1, 2}), row({3})});
  const Var three = sequence_insert(both, row({9, 9, 9}), integer(1));
  EXPECT_EQ(values(sequence_length(three)), (Values{3}));
  EXPECT_EQ(values(sequence_at(three, integer(1))), (Values{9, 9, 9}));
  EXPECT_EQ(values(concat_from_sequence(sequence_erase(three, integer(1)), 0)), (Values{1, 2, 3}));
  EXPECT_EQ(values(sequence_at(split_to_sequence(row({1, 2, 3, 4}), integer(2)), integer(1))), (Values{3, 4}));
  EXPECT_EQ(values(sequence_length(sequence_empty(both.graph(), DType::i64))), (Values{0}));
  Graph body("body");
  body.add_output((2 * input(body, DType::f32, Shape({Dim()}), "x")).id());
  EXPECT_EQ(values(concat_from_sequence(sequence_map(both, {}, body)[0], 0)), (Values{2, 4, 6}));
  EXPECT_EQ(values(optional_get_element(optional_of(row({5})))), (Values{5}));
  EXPECT_EQ(values(optional_has_element(optional_of(row({5})))), (Values{1}));
}

TEST_F(Builders, SignalsAreTransformed) {
  const Var x = of(floats({1, 4, 1}, {1, 0, 0, 0}));
  EXPECT_EQ(values(dft(x)), (Values{1, 0, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(run(stft(x, integer(2), row({1, 1}))).dims(), (Dims{1, 2, 2, 2}));
  EXPECT_NEAR(values(hann_window(integer(4)))[1], 0.5, 1e-6);
  EXPECT_NEAR(values(hann_window(integer(3), false))[1], 1, 1e-6);
  EXPECT_NEAR(values(hamming_window(integer(4)))[0], 25.0 / 46 - 21.0 / 46, 1e-6);
  EXPECT_NEAR(values(blackman_window(integer(4)))[2], 1, 1e-6);
  const Var mel = mel_weight_matrix(integer(3), integer(16), integer(8000), number(0), number(4000));
  EXPECT_EQ(run(mel).dims(), (Dims{9, 3}));
}

TEST_F(Builders, StringsAreCutAndJoined) {
  const Var x = of(Tensor::of<std::string>({2}, {"a-b", "c"}));
  const std::vector<Var> pieces = string_split(x, "-");
  EXPECT_EQ(run(pieces[0]).dims(), (Dims{2, 2}));
  EXPECT_EQ(values(pieces[1]), (Values{2, 1}));
  EXPECT_EQ(values(string_split(x, "-", 0)[1]), (Values{1, 1}));
  EXPECT_EQ(values(regex_full_match(string_concat(x, x), "c+")), (Values{0, 1}));
  const Var upper = string_normalizer(x, {{"case_change_action", "UPPER"}});
  EXPECT_EQ(values(regex_full_match(upper, "[A-C-]+")), (Values{1, 1}));
  EXPECT_EQ(values(murmur_hash(of(Tensor::of<std::string>({1}, {"foo"})), 42)), (Values{2972666014}));
  const Var counts = tf_idf_vectorizer(of(longs({3}, {5, 6, 5})), {{"mode", "TF"},
                                                                   {"min_gram_length", int64_t{1}},
                                                                   {"max_gram_length", int64_t{1}},
                                                                   {"max_skip_count", int64_t{0}},
                                                                   {"ngram_counts", std::vector<int64_t>{0}},
                                                                   {"ngram_indexes", std::vector<int64_t>{0, 1}},
                                                                   {"pool_int64s", std::vector<int64_t>{6, 5}}});
  EXPECT_EQ(values(counts), (Values{1, 2}));
}

TEST_F(Builders, TablesOfClassicalModels) {
  const Var x = of(floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(values(array_feature_extractor(x, of(longs({1}, {1})))), (Values{2, 4}));
  EXPECT_EQ(values(binarizer(x, 2)), (Values{0, 0, 1, 1}));
  EXPECT_EQ(values(couple_pairs(of(Tensor::of<float>({1, 1}, {0.5F})), 2)), (Values{0.5, 0.5}));
  EXPECT_EQ(values(scaler(x, {1, 0}, {2})), (Values{0, 4, 4, 8}));
  const Var codes =
      label_encoder(of(longs({3}, {7, 8, 9})), longs({2}, {7, 9}), longs({2}, {70, 90}), longs({1}, {-1}));
  EXPECT_EQ(values(codes), (Values{70, -1, 90}));
}

TEST_F(Builders, OptimisersGiveNewWeightsAndStates) {
  const Var rate = number(0.5F), step = integer(0), w = row({1}), g = row({2}), s = row({0});
  EXPECT_EQ(adam(rate, step, {w, g, s, s}).size(), 3U);
  const std::vector<Var> moved = momentum(
      rate, step, {w, g, s}, {{"alpha", 0.9F}, {"beta", 1.0F}, {"mode", "standard"}, {"norm_coefficient", 0.0F}});
  ASSERT_EQ(moved.size(), 2U);
  EXPECT_EQ(values(moved[0]), (Values{0}));
  EXPECT_EQ(values(adagrad(rate, step, {w, g, s})[1]), (Values{4}));
}

TEST_F(Builders, ImagesAreSampled) {
  const Var x = of(floats({1, 1, 2, 2}, {1, 2, 3, 4}));
  const Var theta = of(floats({1, 2, 3}, {1, 0, 0, 0, 1, 0}));
  const Var grid = affine_grid(theta, of(longs({4}, {1, 1, 2, 2})), true);
  EXPECT_EQ(values(grid_sample(x, grid, {{"align_corners", int64_t{1}}})), (Values{1, 2, 3, 4}));
  const Var regions = of(floats({1, 4}, {0, 0, 2, 2}));
  const Var pooled = roi_align(x, regions, of(longs({1}, {0})), {{"coordinate_transformation_mode", "half_pixel"}});
  EXPECT_EQ(values(pooled), (Values{2.5}));
  EXPECT_EQ(values(max_roi_pool(x, of(floats({1, 5}, {0, 0, 0, 1, 1})), {1, 1})), (Values{4}));
  const Var boxes = of(floats({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9F}));
  const Var scores = of(floats({1, 1, 2}, {0.3F, 0.6F}));
  EXPECT_EQ(values(non_max_suppression(boxes, scores, integer(5), number(0.5F))), (Values{0, 0, 1}));
  EXPECT_EQ(values(max_unpool(of(floats({1, 1, 1, 1}, {9})), of(longs({1, 1, 1, 1}, {3})), {.kernel = {2, 2}})),
            (Values{0, 0, 0, 9}));
}

TEST_F(Builders, BytesAreMultiplied) {
  const auto bytes = [&](Dims dims, std::vector<uint8_t> elements) {
    return of(Tensor::of<uint8_t>(std::move(dims), std::move(elements)));
  };
  const Var a = bytes({1, 2}, {3, 4}), b = bytes({2, 1}, {5, 6}), one = bytes({}, {1}), unit = number(1);
  EXPECT_EQ(values(matmul_integer(a, b, one)), (Values{2 * 5 + 3 * 6}));
  EXPECT_EQ(values(qlinear_matmul({a, unit, one}, {b, unit, one}, number(2), one)), (Values{13}));
  const Var x = bytes({1, 1, 2, 2}, {1, 2, 3, 4}), w = bytes({1, 1, 1, 1}, {3});
  EXPECT_EQ(values(conv_integer(x, w, {}, one, {.strides = {2, 2}})), (Values{2}));
  EXPECT_EQ(values(qlinear_conv({x, unit, one}, {w, unit, one}, unit, one)), (Values{1, 3, 5, 7}));
  EXPECT_EQ(values(dynamic_quantize_linear(row({0, 255}))[0]), (Values{0, 255}));
  const Var q = bytes({1, 1, 8}, {0x21, 0x43, 0x65, 0x87, 0x21, 0x43, 0x65, 0x87});
  const Var ones = of(floats({1, 16}, std::vector<float>(16, 1)));
  EXPECT_EQ(values(block_matmul(ones, q, of(floats({1, 1}, {0.5F})), {}, 16)), (Values{(72.0 - 16 * 8) / 2}));
  const Var of_experts =
      of(Tensor::of<uint8_t>({2, 1, 1, 8}, {0, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x43, 0x65, 0x87, 0x21, 0x43, 0x65, 0x87}));
  const Var rows = of(floats({1, 1, 16}, std::vector<float>(16, 1))), chosen = of(longs({1, 1}, {1}));
  EXPECT_EQ(values(gather_block_matmul(rows, chosen, of_experts, of(floats({2, 1, 1}, {1, 0.5F})), {}, 16)),
            (Values{(72.0 - 16 * 8) / 2}));
  EXPECT_EQ(values(gather_matmul(of(floats({1, 1, 2}, {1, 2})), chosen, of(floats({2, 1, 2}, {0, 0, 3, 4})))),
            (Values{11}));
  const Var gates = of(Tensor::zeros(DType::i8, {1, 3, 8})), hidden = of(Tensor::zeros(DType::i8, {1, 2, 8}));
  const Var zero = of(Tensor::zeros(DType::i8, {1})), scale = of(floats({1}, {1}));
  const std::vector<Var> states = dynamic_quantize_lstm(of(Tensor::zeros(DType::f32, {4, 1, 3})), gates, hidden, {},
                                                        scale, zero, scale, zero, {{"hidden_size", int64_t{2}}});
  EXPECT_EQ(values(states[1]), (Values{0, 0}));
}

TEST_F(Builders, WindowsOfOtherKinds) {
  const Var x = of(floats({1, 1, 2, 2}, {1, 2, 3, 4})), w = of(floats({1, 1, 1, 1}, {2}));
  EXPECT_EQ(values(deform_conv(x, w, of(Tensor::zeros(DType::f32, {1, 2, 2, 2})))), (Values{2, 4, 6, 8}));
  const std::vector<Var> causal =
      causal_conv_with_state(of(floats({1, 1, 3}, {1, 2, 3})), of(floats({1, 1, 2}, {10, 1})));
  EXPECT_EQ(values(causal[0]), (Values{1, 12, 23}));
  EXPECT_EQ(values(causal[1]), (Values{3}));
  const Var columns = of(floats({1, 2, 1}, {5, 6}));
  EXPECT_EQ(values(col2im(columns, of(longs({2}, {1, 2})), of(longs({2}, {1, 2})))), (Values{5, 6}));
}

TEST_F(Builders, AttentionOfOtherKinds) {
  const Var q = of(floats({1, 1, 1, 1}, {1})), kv = of(floats({1, 1, 2, 1}, {3, 5}));
  const auto mod = [](float factor) {
    auto body = std::make_shared<Graph>("mod");
    body->add_output((input(*body, DType::f32, Shape::of({1, 1, 1, 2}), "scores") * factor).id());
    return body;
  };
  EXPECT_NEAR(values(flex_attention(q, kv, kv, mod(0), mod(2)))[0], 8, 1e-5);
  const Var row_of_one = of(floats({1, 2, 1}, {1, 1}));
  const std::vector<Var> linear = linear_attention(
      row_of_one, row_of_one, of(floats({1, 2, 1}, {3, 5})),
      {{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"update_rule", "linear"}, {"scale", 1.0F}});
  EXPECT_EQ(values(linear[0]), (Values{3, 8}));
}

TEST_F(Builders, PositionsAndGroups) {
  const Var cache = of(Tensor::zeros(DType::f32, {1, 3, 1}));
  EXPECT_EQ(values(tensor_scatter(cache, of(floats({1, 1, 1}, {7})), of(longs({1}, {2})))), (Values{0, 0, 7}));
  const std::vector<Var> groups = unique(row({2, 1, 2}));
  EXPECT_EQ(values(groups[0]), (Values{1, 2}));
  EXPECT_EQ(values(groups[3]), (Values{1, 2}));
  EXPECT_EQ(values(unique(row({2, 1, 2}), {}, false)[0]), (Values{2, 1}));
  const std::string file = "P5 2 1 255 ab";
  const Var encoded = of(Tensor::of<uint8_t>({std::ssize(file)}, std::vector<uint8_t>(file.begin(), file.end())));
  EXPECT_EQ(values(image_decoder(encoded, "Grayscale")), (Values{'a', 'b'}));
}

TEST_F(Builders, EveryOpHasOne) {
  const std::map<std::string_view, std::string> others{
      {"and", "logical_and"},      {"if", "if_else"},      {"not", "logical_not"},
      {"optional", "optional_of"}, {"or", "logical_or"},   {"philox", "philox_uniform"},
      {"trilu", "triu"},           {"xor", "logical_xor"},
  };
  std::string text;
  for (const auto& file : std::filesystem::recursive_directory_iterator(AG_INCLUDE_FOLDER)) {
    if (file.path().extension() == ".h") text += io::read_file(file.path().string(), 1 << 20);
  }
  for (const OpDef* op : all_ops()) {
    const auto other = others.find(op->name);
    const std::string name = other == others.end() ? std::string(op->name) : other->second;
    EXPECT_TRUE(std::regex_search(text, std::regex("\\b" + name + "\\("))) << op->name;
  }
}

}  // namespace
}  // namespace autograph
