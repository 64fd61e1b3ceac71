#include "io/onnx/import/old_opsets.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace autograph::io {
namespace {

struct Unchanged {
  std::string_view op_type;
  int since;
};

// From the schemas of ONNX: since when an op has had its inputs, outputs and attributes of opset 7. Those without an
// entry changed with opset 7 itself: they broadcast, or they lost an attribute that told training from inference.
constexpr std::array kUnchanged = std::to_array<Unchanged>({
    {"Abs", 6},
    {"ArgMax", 1},
    {"ArgMin", 1},
    {"AveragePool", 1},
    {"Cast", 6},
    {"Ceil", 6},
    {"Clip", 6},
    {"Concat", 4},
    {"Constant", 1},
    {"Conv", 1},
    {"ConvTranspose", 1},
    {"DepthToSpace", 1},
    {"Elu", 6},
    {"Exp", 6},
    {"Flatten", 1},
    {"Floor", 6},
    {"Gather", 1},
    {"GlobalAveragePool", 1},
    {"GlobalLpPool", 2},
    {"GlobalMaxPool", 1},
    {"HardSigmoid", 6},
    {"Hardmax", 1},
    {"Identity", 1},
    {"If", 1},
    {"InstanceNormalization", 6},
    {"LRN", 1},
    {"LeakyRelu", 6},
    {"Log", 6},
    {"LogSoftmax", 1},
    {"Loop", 1},
    {"LpNormalization", 1},
    {"LpPool", 2},
    {"MatMul", 1},
    {"Max", 6},
    {"MaxPool", 1},
    {"MaxRoiPool", 1},
    {"Mean", 6},
    {"Min", 6},
    {"Neg", 6},
    {"Not", 1},
    {"Pad", 2},
    {"RandomNormal", 1},
    {"RandomNormalLike", 1},
    {"RandomUniform", 1},
    {"RandomUniformLike", 1},
    {"Reciprocal", 6},
    {"ReduceL1", 1},
    {"ReduceL2", 1},
    {"ReduceLogSum", 1},
    {"ReduceLogSumExp", 1},
    {"ReduceMax", 1},
    {"ReduceMean", 1},
    {"ReduceMin", 1},
    {"ReduceProd", 1},
    {"ReduceSum", 1},
    {"ReduceSumSquare", 1},
    {"Relu", 6},
    {"Reshape", 5},
    {"Selu", 6},
    {"Shape", 1},
    {"Sigmoid", 6},
    {"Size", 1},
    {"Slice", 1},
    {"Softmax", 1},
    {"Softplus", 1},
    {"Softsign", 1},
    {"SpaceToDepth", 1},
    {"Split", 2},
    {"Sqrt", 6},
    {"Squeeze", 1},
    {"Sum", 6},
    {"Tanh", 6},
    {"Tile", 6},
    {"TopK", 1},
    {"Transpose", 1},
    {"Unsqueeze", 1},
});

}  // namespace

bool is_unchanged_since(const std::string& op_type, int opset) {
  return std::any_of(kUnchanged.begin(), kUnchanged.end(),
                     [&](const Unchanged& op) { return op.op_type == op_type && op.since <= opset; });
}

}  // namespace autograph::io
