// random_uniform and random_normal, with the shape given by an attribute, and their _like forms, which take shape and
// (unless `dtype` is given) dtype from an input whose elements are never read. Drawn in f64, rounded once.
#include "autograph/op_def.h"
#include "autograph/ops/random.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/random/generator.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer_shaped(InferContext& context) {
  const std::vector<int64_t>& dims = context.attributes().integers("shape");
  for (const int64_t d : dims) {
    context.require<ValueError>(d >= 0, "shape", "expected extents of 0 or more, got " + std::to_string(d));
  }
  checked_product(dims, "random shape");
  context.set_output(0, context.attributes().get<DType>("dtype"), Shape::of(dims));
}

void infer_like(InferContext& context) {
  context.set_output(0, context.attributes().get_or("dtype", context.dtype(0)), context.shape(0));
}

template <class Draw>
void fill(const TensorView& y, Draw draw) {
  dispatch<FloatTypes>(y.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < y.num_elements(); ++i) y.mutable_data<T>()[i] = static_cast<T>(draw());
  });
}

void fill_uniform(const OpCall& call) {
  Generator generator(call.attributes);
  const double low = call.attributes.real("low");
  const double high = call.attributes.real("high");
  fill(call.output(0), [&] { return low + (high - low) * generator.uniform(); });
}

void fill_normal(const OpCall& call) {
  Generator generator(call.attributes);
  const double mean = call.attributes.real("mean");
  const double scale = call.attributes.real("scale");
  fill(call.output(0), [&] { return mean + scale * generator.normal(); });
}

float draw_seed(Random& random) { return static_cast<float>(draw(random, 0, 1000)); }

OpSample sample_shaped(Random& random) {
  return {.inputs = {},
          .attributes = {{"shape", draw_dims(random)},
                         {"dtype", draw_one_of(random, {DType::f32, DType::f64})},
                         {"seed", draw_seed(random)}}};
}

OpSample sample_like(Random& random) {
  OpSample call{.inputs = {draw_tensor(random, DType::f32, draw_dims(random))},
                .attributes = {{"seed", draw_seed(random)}}};
  if (draw_bool(random)) call.attributes.set("dtype", DType::f64);
  return call;
}

// The parameters of the distribution come last: they are all that differs.
std::vector<AttributeSpec> uniform_specs() {
  return {{"low", AttributeType::real, "Lower end, included.", 0.0F},
          {"high", AttributeType::real, "Upper end, excluded up to rounding.", 1.0F}};
}

std::vector<AttributeSpec> normal_specs() {
  return {{"mean", AttributeType::real, "Mean.", 0.0F}, {"scale", AttributeType::real, "Standard deviation.", 1.0F}};
}

OpDef make_common(std::vector<AttributeSpec> specs, ReferenceFn reference) {
  OpDef def;
  def.attributes = {{"seed", AttributeType::real, "Makes every run draw the same numbers."}};
  for (AttributeSpec& spec : specs) def.attributes.push_back(std::move(spec));
  def.reference = reference;
  def.no_grad = "drawn at random";
  def.traits = {.pure = false, .random = true};
  return def;
}

OpDef make_shaped(std::vector<AttributeSpec> specs, ReferenceFn reference) {
  OpDef def = make_common(std::move(specs), reference);
  def.outputs = {{"y", "T", "Shape `shape`."}};
  def.types = {{"T", dtypes::kFloat}};
  def.attributes.push_back(
      {.name = "shape", .type = AttributeType::integers, .doc = "The extents of y.", .required = true});
  def.attributes.push_back({"dtype", AttributeType::dtype, "The dtype of y.", DType::f32});
  def.infer = infer_shaped;
  def.sample = sample_shaped;
  return def;
}

OpDef make_like(std::vector<AttributeSpec> specs, ReferenceFn reference) {
  OpDef def = make_common(std::move(specs), reference);
  def.inputs = {{"x", "S", "Any shape; only shape and dtype count."}};
  def.outputs = {{"y", "T", "Shape of x."}};
  def.types = {{"S", dtypes::kAll}, {"T", dtypes::kFloat}};
  def.attributes.push_back({"dtype", AttributeType::dtype, "The dtype of y; missing: that of x."});
  def.infer = infer_like;
  def.traits.reads_shape_only = true;
  def.sample = sample_like;
  return def;
}

Attributes with_seed(Attributes attributes, std::optional<float> seed) {
  if (seed) attributes.set("seed", *seed);
  return attributes;
}

// apply() takes the graph from an input; these ops have none.
Var apply_to_nothing(Graph& graph, const OpDef& op, Attributes attributes) {
  const NodeId node = graph.add_node(op, {}, std::move(attributes));
  return {graph, graph.node(node).output(0)};
}

}  // namespace

Var random_uniform(Graph& graph, const Dims& dims, float low, float high, std::optional<float> seed) {
  return apply_to_nothing(graph, random_uniform_def(),
                          with_seed({{"shape", dims}, {"low", low}, {"high", high}}, seed));
}

Var random_normal(Graph& graph, const Dims& dims, float mean, float scale, std::optional<float> seed) {
  return apply_to_nothing(graph, random_normal_def(),
                          with_seed({{"shape", dims}, {"mean", mean}, {"scale", scale}}, seed));
}

Var random_uniform_like(Var x, float low, float high, std::optional<float> seed) {
  return apply(random_uniform_like_def(), {x}, with_seed({{"low", low}, {"high", high}}, seed));
}

Var random_normal_like(Var x, float mean, float scale, std::optional<float> seed) {
  return apply(random_normal_like_def(), {x}, with_seed({{"mean", mean}, {"scale", scale}}, seed));
}

const OpDef& random_uniform_def() {
  static const OpDef def = [] {
    OpDef uniform = make_shaped(uniform_specs(), fill_uniform);
    uniform.name = "random_uniform";
    uniform.doc = "y = numbers drawn uniformly from [low, high).";
    uniform.onnx = {{.name = "RandomUniform"}};
    return uniform;
  }();
  return def;
}

const OpDef& random_normal_def() {
  static const OpDef def = [] {
    OpDef normal = make_shaped(normal_specs(), fill_normal);
    normal.name = "random_normal";
    normal.doc = "y = numbers drawn from the normal distribution with this mean and scale.";
    normal.onnx = {{.name = "RandomNormal"}};
    return normal;
  }();
  return def;
}

const OpDef& random_uniform_like_def() {
  static const OpDef def = [] {
    OpDef uniform = make_like(uniform_specs(), fill_uniform);
    uniform.name = "random_uniform_like";
    uniform.doc = "y = numbers drawn uniformly from [low, high), as many as x has.";
    uniform.onnx = {{.name = "RandomUniformLike"}};
    return uniform;
  }();
  return def;
}

const OpDef& random_normal_like_def() {
  static const OpDef def = [] {
    OpDef normal = make_like(normal_specs(), fill_normal);
    normal.name = "random_normal_like";
    normal.doc = "y = numbers drawn from the normal distribution with this mean and scale, as many as x has.";
    normal.onnx = {{.name = "RandomNormalLike"}};
    return normal;
  }();
  return def;
}

}  // namespace autograph
