// The ops that move elements: exact small cases, clamping and errors.
#include "ops/call_op.h"
#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

using I64 = std::vector<int64_t>;
using F32 = std::vector<float>;

Tensor strings(const Dims& dims, const std::vector<std::string>& values) { return Tensor::of(dims, values); }

TEST(Reshape, WorksOutMinusOneAndCopiesZero) {
  EXPECT_EQ(run_op(reshape_def(), {iota_f32({2, 3, 4}), Tensor::vector({0, -1})}).dims(), (Dims{2, 12}));
  EXPECT_EQ(run_op(reshape_def(), {iota_f32({0, 3}), Tensor::vector({3, 0})}, {{"allowzero", int64_t{1}}}).dims(),
            (Dims{3, 0}));
}

TEST(Reshape, CancelsSymbols) {
  Graph graph;
  const ValueId x = graph.add_input(Type(DType::f32, {Dim::symbol("batch"), 6, 2}));
  const ValueId shape = graph.add_constant(Tensor::vector({-1, 4}));
  const ValueId y = graph.node(graph.add_node(reshape_def(), {x, shape})).output(0);
  EXPECT_EQ(to_string(graph.type(y)), "f32[3*batch,4]");
}

TEST(Reshape, RejectsWrongNumberOfElements) {
  EXPECT_EQ(error_of(reshape_def(), {iota_f32({2, 3}), Tensor::vector({4, 2})}),
            "[reshape] shape: expected 6 elements, got 8 (input [2,3], shape [4,2])");
  EXPECT_EQ(error_of(reshape_def(), {iota_f32({2, 3}), Tensor::vector({-1, -1})}),
            "[reshape] shape: expected one -1, got [-1,-1]");
  EXPECT_EQ(error_of(reshape_def(), {iota_f32({2, 3}), Tensor::vector({2, 3, 0})}),
            "[reshape] shape: 0 at position 2 has no extent to copy (input [2,3])");
}

TEST(Flatten, TakesAxisEqualToRank) {
  EXPECT_EQ(run_op(flatten_def(), {iota_f32({2, 3, 4})}, {{"axis", int64_t{3}}}).dims(), (Dims{24, 1}));
  EXPECT_EQ(run_op(flatten_def(), {iota_f32({2, 3, 4})}, {{"axis", int64_t{-1}}}).dims(), (Dims{6, 4}));
}

TEST(Squeeze, DropsOnlyExtentOne) {
  EXPECT_EQ(run_op(squeeze_def(), {iota_f32({1, 3, 1})}).dims(), (Dims{3}));
  EXPECT_EQ(run_op(squeeze_def(), {iota_f32({1, 3, 1}), Tensor::vector({-1})}).dims(), (Dims{1, 3}));
  EXPECT_EQ(error_of(squeeze_def(), {iota_f32({1, 3}), Tensor::vector({1})}),
            "[squeeze] axes: expected extent 1 at axis 1, got [1,3]");
}

TEST(Unsqueeze, CountsAxesInTheOutput) {
  EXPECT_EQ(run_op(unsqueeze_def(), {iota_f32({3, 4}), Tensor::vector({-1, 0})}).dims(), (Dims{1, 3, 4, 1}));
  EXPECT_EQ(error_of(unsqueeze_def(), {iota_f32({3}), Tensor::vector({0, -3})}),
            "[unsqueeze] axes: expected each axis once, got [0,-3]");
}

TEST(Transpose, MovesElementsOfEveryKind) {
  EXPECT_EQ(elements<float>(run_op(transpose_def(), {iota_f32({2, 3})})), (F32{0, 3, 1, 4, 2, 5}));
  const Tensor text = run_op(transpose_def(), {strings({2, 2}, {"a", "b", "c", "d"})}, {{"perm", I64{1, 0}}});
  EXPECT_EQ(elements<std::string>(text), (std::vector<std::string>{"a", "c", "b", "d"}));
  EXPECT_EQ(error_of(transpose_def(), {iota_f32({2, 3})}, {{"perm", I64{0, 0}}}),
            "[transpose] perm: expected a permutation of 2 axes, got [0,0]");
}

TEST(Concat, JoinsAlongAnyAxis) {
  const Tensor y = run_op(concat_def(), {iota_f32({2, 1}), iota_f32({2, 2})}, {{"axis", int64_t{-1}}});
  EXPECT_EQ(elements<float>(y), (F32{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(error_of(concat_def(), {iota_f32({2, 1}), iota_f32({3, 2})}, {{"axis", int64_t{1}}}),
            "[concat] inputs: expected equal extents, got 2 and 3");
}

TEST(Split, LastPieceMayBeSmallerOrEmpty) {
  const auto pieces = run_op_all(split_def(), {iota_f32({5})}, {{"num_outputs", int64_t{4}}}, 4);
  EXPECT_EQ(elements<float>(pieces[0]), (F32{0, 1}));
  EXPECT_EQ(elements<float>(pieces[2]), (F32{4}));
  EXPECT_EQ(pieces[3].dims(), (Dims{0}));
  EXPECT_EQ(error_of(split_def(), {iota_f32({5}), Tensor::vector({2, 2})}, {}, 2),
            "[split] split: expected a sum of 5, got 4 from [2,2]");
}

TEST(Slice, ClampsAndWalksBackwards) {
  const auto slice = [](const I64& start, const I64& end, const I64& step) {
    return elements<float>(run_op(slice_def(), {iota_f32({5}), Tensor::vector(start), Tensor::vector(end),
                                                Tensor::vector({0}), Tensor::vector(step)}));
  };
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const int64_t highest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(slice({-2}, {highest}, {1}), (F32{3, 4}));
  EXPECT_EQ(slice({highest}, {lowest}, {-2}), (F32{4, 2, 0}));
  EXPECT_EQ(slice({highest}, {lowest}, {lowest}), (F32{4}));
  EXPECT_EQ(slice({3}, {1}, {1}), F32{});
  EXPECT_EQ(slice({1}, {highest}, {highest}), (F32{1}));
}

TEST(Slice, RejectsStepZero) {
  EXPECT_EQ(error_of(slice_def(), {iota_f32({5}), Tensor::vector({0}), Tensor::vector({1}), Tensor::vector({0}),
                                   Tensor::vector({0})}),
            "[slice] steps: expected steps other than 0, got 0");
}

TEST(Reshape, WorksOutAnExtentBesideCopiedOnesOfZero) {
  const Tensor empty = Tensor::zeros(DType::f32, {0, 4, 3});
  EXPECT_EQ(run_op(reshape_def(), {empty, Tensor::vector({0, 2, -1})}).dims(), (Dims{0, 2, 6}));
  EXPECT_EQ(error_of(reshape_def(), {empty, Tensor::vector({0, 2, -1})}, {{"allowzero", int64_t{1}}}),
            "[reshape] shape: -1 is ambiguous next to an extent of 0 (input [0,4,3])");
}

TEST(Expand, BroadcastsBothWays) {
  const Tensor y = run_op(expand_def(), {iota_f32({2, 1}), Tensor::vector({2, 1, 3})});
  EXPECT_EQ(y.dims(), (Dims{2, 2, 3}));
  EXPECT_EQ(elements<float>(y), (F32{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
}

TEST(Expand, TakesAScalarForOneExtent) {
  EXPECT_EQ(elements<float>(run_op(expand_def(), {iota_f32({1}), Tensor::scalar(int64_t{3})})), (F32{0, 0, 0}));
}

TEST(Tile, RepeatsEveryAxis) {
  const Tensor y = run_op(tile_def(), {iota_f32({2, 1}), Tensor::vector({2, 2})});
  EXPECT_EQ(elements<float>(y), (F32{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(error_of(tile_def(), {iota_f32({2}), Tensor::vector({-1})}), "[tile] repeats: expected 0 or more, got -1");
}

TEST(Pad, FillsByMode) {
  const auto pad = [](const std::string& mode) {
    return elements<float>(run_op(pad_def(), {iota_f32({3}), Tensor::vector({4, 3})}, {{"mode", mode}}));
  };
  EXPECT_EQ(pad("constant"), (F32{0, 0, 0, 0, 0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(pad("edge"), (F32{0, 0, 0, 0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(pad("reflect"), (F32{0, 1, 2, 1, 0, 1, 2, 1, 0, 1}));
  EXPECT_EQ(pad("wrap"), (F32{2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(Pad, RemovesElementsAndChecksAxes) {
  const Tensor y =
      run_op(pad_def(), {iota_f32({2, 3}), Tensor::vector({-1, 1}), Tensor::scalar(9.0F), Tensor::vector({-1})});
  EXPECT_EQ(elements<float>(y), (F32{1, 2, 9, 4, 5, 9}));
  EXPECT_EQ(error_of(pad_def(), {iota_f32({2}), Tensor::vector({-3, 5})}),
            "[pad] pads: expected to remove at most 2 elements, got pads -3 and 5");
  EXPECT_EQ(error_of(pad_def(), {iota_f32({2}), Tensor::vector({1})}),
            "[pad] pads: expected 2 values, two per axis, got 1");
}

TEST(Shape, ClampsItsRange) {
  const Tensor x = iota_f32({2, 3, 4});
  EXPECT_EQ(elements<int64_t>(run_op(shape_def(), {x}, {{"start", int64_t{-2}}})), (I64{3, 4}));
  EXPECT_EQ(elements<int64_t>(run_op(shape_def(), {x}, {{"start", int64_t{2}}, {"end", int64_t{1}}})), I64{});
  EXPECT_EQ(elements<int64_t>(run_op(size_def(), {x})), (I64{24}));
}

TEST(Range, CountsWithoutOverflow) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    return elements<int64_t>(
        run_op(range_def(), {Tensor::scalar(start), Tensor::scalar(limit), Tensor::scalar(delta)}));
  };
  EXPECT_EQ(range(10, 4, -3), (I64{10, 7}));
  EXPECT_EQ(range(5, 5, 1), I64{});
  EXPECT_EQ(range(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{1} << 62).size(),
            4U);
  EXPECT_EQ(error_of(range_def(), {Tensor::scalar(0.0F), Tensor::scalar(1.0F), Tensor::scalar(0.0F)}),
            "[range] delta: expected a number other than 0, got 0");
}

TEST(ConstantOfShape, RejectsNegativeExtents) {
  const Tensor y = run_op(constant_of_shape_def(), {Tensor::vector({2})}, {{"value", Tensor::of<int32_t>({1}, {7})}});
  EXPECT_EQ(elements<int32_t>(y), (std::vector<int32_t>{7, 7}));
  EXPECT_EQ(error_of(constant_of_shape_def(), {Tensor::vector({-1})}),
            "[constant_of_shape] input: expected extents of 0 or more, got -1");
}

TEST(EyeLike, PutsOnesOnDiagonalK) {
  const Tensor y = run_op(eye_like_def(), {iota_f32({2, 3})}, {{"k", int64_t{1}}, {"dtype", DType::i32}});
  EXPECT_EQ(elements<int32_t>(y), (std::vector<int32_t>{0, 1, 0, 0, 0, 1}));
}

TEST(Trilu, KeepsOneTriangle) {
  EXPECT_EQ(elements<float>(run_op(trilu_def(), {iota_f32({2, 3}), Tensor::scalar<int64_t>(1)})),
            (F32{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(elements<float>(run_op(trilu_def(), {iota_f32({2, 3})}, {{"upper", int64_t{0}}})), (F32{0, 0, 0, 3, 4, 0}));
}

TEST(CenterCropPad, TakesAScalarForOneExtent) {
  EXPECT_EQ(elements<float>(run_op(center_crop_pad_def(), {iota_f32({5}), Tensor::scalar(int64_t{3})})),
            (F32{1, 2, 3}));
}

TEST(CenterCropPad, LeavesTheOddElementAtTheEnd) {
  EXPECT_EQ(elements<float>(run_op(center_crop_pad_def(), {iota_f32({5}), Tensor::vector({2})})), (F32{1, 2}));
  EXPECT_EQ(elements<float>(run_op(center_crop_pad_def(), {iota_f32({2}), Tensor::vector({5})})), (F32{0, 0, 1, 0, 0}));
}

TEST(DepthToSpace, ModesDifferInTheOrderOfChannels) {
  const Tensor x = iota_f32({1, 8, 1, 1});
  EXPECT_EQ(elements<float>(run_op(depth_to_space_def(), {x}, {{"blocksize", int64_t{2}}})),
            (F32{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(
      elements<float>(run_op(depth_to_space_def(), {x}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}})),
      (F32{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(SpaceToDepth, UndoesDepthToSpace) {
  const Tensor x = iota_f32({2, 12, 3, 2});
  for (const char* mode : {"DCR", "CRD"}) {
    const Attributes attributes{{"blocksize", int64_t{2}}, {"mode", std::string(mode)}};
    const Tensor wide = run_op(depth_to_space_def(), {x}, attributes);
    EXPECT_TRUE(run_op(space_to_depth_def(), {wide}, attributes).bitwise_equal(x)) << mode;
  }
}

TEST(ReverseSequence, ReversesOnlyTheGivenLength) {
  const Attributes attributes{{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}};
  const Tensor y = run_op(reverse_sequence_def(), {iota_f32({2, 3}), Tensor::vector({2, 0})}, attributes);
  EXPECT_EQ(elements<float>(y), (F32{1, 0, 2, 3, 4, 5}));
  EXPECT_EQ(error_of(reverse_sequence_def(), {iota_f32({2, 3}), Tensor::vector({2, 4})}, attributes),
            "[reverse_sequence] sequence_lens[1]: expected 0..3, got 4");
}

TEST(ShapeOps, RunTheirSamples) {
  for (const OpDef* op : {&reshape_def(),
                          &flatten_def(),
                          &squeeze_def(),
                          &unsqueeze_def(),
                          &transpose_def(),
                          &concat_def(),
                          &split_def(),
                          &slice_def(),
                          &expand_def(),
                          &tile_def(),
                          &pad_def(),
                          &shape_def(),
                          &size_def(),
                          &constant_def(),
                          &constant_of_shape_def(),
                          &range_def(),
                          &eye_like_def(),
                          &trilu_def(),
                          &center_crop_pad_def(),
                          &depth_to_space_def(),
                          &space_to_depth_def(),
                          &reverse_sequence_def()}) {
    run_samples(*op, 100);
  }
}

}  // namespace
}  // namespace autograph
