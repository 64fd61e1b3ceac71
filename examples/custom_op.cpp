// An op of a program's own: y = x to the power of 3, made of nothing but its definition.
#include <iostream>

#include "autograph/autograph.h"

using namespace autograph;

namespace {

const OpDef& cube_def() {
  static const OpDef def{
      .name = "cube",
      .doc = "y = x^3.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", DTypeSet{DType::f32}}},
      .infer = [](InferContext& context) { context.set_output(0, context.dtype(0), context.shape(0)); },
      .reference =
          [](const OpCall& call) {
            const TensorView x = call.input(0);
            float* y = call.output(0).mutable_data<float>();
            for (int64_t i = 0; i < x.num_elements(); ++i)
              y[i] = x.data<float>()[i] * x.data<float>()[i] * x.data<float>()[i];
          },
      .onnx = {{.name = "Cube", .domain = "com.example"}},
  };
  return def;
}

}  // namespace

int main() {
  register_op(cube_def());  // files and texts know it from here on
  GraphBuilder builder;
  const Var x = builder.input("x", DType::f32, {3});
  builder.output("y", apply(cube_def(), {x}) + 1);
  const Graph read = parse_onnx(serialize_onnx(builder.build())).graph;                     // com.example.Cube
  std::cout << compile(read).run({{"x", Tensor::of<float>({3}, {1, 2, 3})}})["y"] << "\n";  // f32[3] {2, 9, 28}
}
