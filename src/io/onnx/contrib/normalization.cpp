// Contrib normalizations: sums in front of them, embeddings, groups of channels.
#include "autograph/ops/normalization.h"

#include "autograph/ops/activation.h"
#include "autograph/ops/reduction.h"
#include "io/onnx/contrib/body.h"
#include "tensor/front_axis.h"

namespace autograph::io {
namespace {

// rms_normalization and, where wanted, 1 / sqrt(mean x^2 + epsilon).
std::vector<Var> rms_normalized(const ContribCall& call, Var x, Var scale, int64_t axis, bool wants_inverse) {
  const float epsilon = call.attributes().real("epsilon");
  const Var y = rms_normalization(x, scale, axis, epsilon);
  if (!wants_inverse) return {y, Var()};
  std::vector<int64_t> axes;
  const int64_t rank = call.rank(x);
  for (int64_t a = front_axis(axis, rank); a < rank; ++a) axes.push_back(a);
  const Var wide = as_dtype(x, DType::f32);
  const Var mean = reduce_mean(mul(wide, wide), axes);
  return {y, reciprocal(sqrt(add(mean, scalar_like(mean, epsilon))))};
}

std::vector<Var> simplified_layer_normalization(ContribCall& call) {
  call.only("stash_type", {1});
  return rms_normalized(call, call["X"], call["scale"], call.attributes().integer("axis"), call.wants(1));
}

// Each group of as many neighbours as there are scales, times an activation of the gate; in f32 as a whole.
std::vector<Var> gated_rms_norm(ContribCall& call) {
  const Var x = call["X"], scale = call["scale"];
  const std::string& activation = call.attributes().text("activation");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid") {
    call.refuse("attribute 'activation'", "expected silu, swish or sigmoid, got '" + activation + "'");
  }
  std::vector<int64_t> groups(static_cast<size_t>(call.rank(x)) + 1, 0);
  *(groups.end() - 2) = -1;
  groups.back() = call.extent(scale, 0);
  const auto grouped = [&](Var v) { return reshape(as_dtype(v, DType::f32), groups); };
  const Var gate = grouped(call["gate"]);
  const Var y = rms_normalization(grouped(x), as_dtype(scale, DType::f32), -1, call.attributes().real("epsilon"));
  const Var gated = mul(y, activation == "sigmoid" ? sigmoid(gate) : swish(gate));
  return {as_dtype(reshape(gated, shape(x)), x.dtype())};
}

// X + Y * gate.
std::vector<Var> gated_add(ContribCall& call) {
  call.without("gate_weight");
  return {add(call["X"], mul(call["Y"], call["gate"]))};
}

// input + skip + bias; the skip may lack the batch or have one of 1.
Var summed(const ContribCall& call) {
  const Var sum = add(call["input"], call["skip"]);
  return call.has("bias") ? add(sum, call["bias"]) : sum;
}

std::vector<Var> layer_normalized(const ContribCall& call, Var x, bool wants_statistics) {
  return apply_all(get_op("layer_normalization"), {x, call["gamma"], call["beta"]},
                   {{"axis", int64_t{-1}}, {"epsilon", call.attributes().real("epsilon")}}, wants_statistics ? 3 : 1);
}

std::vector<Var> skip_layer_normalization(ContribCall& call) {
  const Var sum = summed(call);
  std::vector<Var> results = layer_normalized(call, sum, call.wants(1));
  results.resize(3);
  results.push_back(sum);
  return results;
}

std::vector<Var> skip_simplified_layer_normalization(ContribCall& call) {
  const Var sum = summed(call);
  const std::vector<Var> results = rms_normalized(call, sum, call["gamma"], -1, call.wants(2));
  return {results[0], Var(), results[1], sum};
}

// Rows 0, 1, ... of the table of positions, as many as there are ids in a row.
Var first_positions(const ContribCall& call, Var table, Var ids) {
  const Var zero = call.constant(Tensor::vector({0}));
  return apply(get_op("slice"), {table, zero, extent_of(ids, 1), zero});
}

std::vector<Var> embed_layer_normalization(ContribCall& call) {
  const Var ids = call["input_ids"];
  if (call.rank(ids) != 2) call.refuse("input 'input_ids'", "expected rank 2, got " + to_string(ids.type()));
  const Var words = gather(call["word_embedding"], ids);
  const Var table = call["position_embedding"];
  Var sum =
      add(words, call.has("position_ids") ? gather(table, call["position_ids"]) : first_positions(call, table, ids));
  if (call.has("segment_ids")) sum = add(sum, gather(call["segment_embedding"], call["segment_ids"]));
  const Var y = layer_normalized(call, sum, false)[0];
  Var counts;
  if (call.has("mask")) {
    const Var mask = call["mask"];
    counts = reduce_sum(cast(equal(mask, scalar_like(mask, 1)), DType::i32), {1}, false);
  } else {
    counts = constant_of_shape(extent_of(ids, 0), Tensor::of<int32_t>({1}, {0}));
  }
  return {y, counts, sum};
}

Var group_normalized(const ContribCall& call, Var x, bool is_last) {
  call.only("activation", {0, 1});
  const Attributes& attributes = call.attributes();
  const Var planes = is_last ? channels_first(call, x) : x;
  const Var y = group_normalization(planes, as_dtype(call["gamma"], x.dtype()), as_dtype(call["beta"], x.dtype()),
                                    attributes.integer("groups"), attributes.real("epsilon"));
  const Var active = attributes.flag("activation") ? swish(y) : y;
  return is_last ? channels_last(call, active) : active;
}

std::vector<Var> group_norm(ContribCall& call) {
  return {group_normalized(call, call["X"], call.attributes().flag("channels_last"))};
}

std::vector<Var> skip_group_norm(ContribCall& call) {
  call.only("channels_last", {1});
  Var skip = call["skip"];
  if (call.rank(skip) == 2) skip = unsqueeze(skip, {1, 2});
  Var sum = add(call["X"], skip);
  if (call.has("bias")) sum = add(sum, call["bias"]);
  return {group_normalized(call, sum, true), sum};
}

std::vector<AttributeSpec> group_specs() {
  return {with_default("epsilon", 1e-5F), with_default("channels_last", int64_t{1}), required_attribute("activation"),
          required_attribute("groups")};
}

}  // namespace

std::vector<ContribOp> contrib_normalization() {
  const std::vector<AttributeSpec> simplified{with_default("axis", int64_t{-1}), with_default("epsilon", 1e-5F),
                                              with_default("stash_type", int64_t{1})};
  const std::vector<AttributeSpec> epsilon{with_default("epsilon", 1e-12F)};
  const std::string_view simplified_name = "SimplifiedLayerNormalization";
  return {
      // The optimiser writes it into the main domain.
      contrib_op(simplified_name, "X, scale", "Y, inv_std_var?", "rms_normalization, reduce_mean",
                 simplified_layer_normalization, simplified, ""),
      contrib_op(simplified_name, "X, scale", "Y, inv_std_var?", "rms_normalization, reduce_mean",
                 simplified_layer_normalization, simplified),
      contrib_op("SkipLayerNormalization", "input, skip, gamma, beta?, bias?",
                 "output, mean?, inv_std_var?, input_skip_bias_sum?", "add, layer_normalization",
                 skip_layer_normalization, epsilon),
      contrib_op("SkipSimplifiedLayerNormalization", "input, skip, gamma, bias?",
                 "output, mean?, inv_std_var?, input_skip_bias_sum?", "add, rms_normalization, reduce_mean",
                 skip_simplified_layer_normalization, epsilon),
      contrib_op("EmbedLayerNormalization",
                 "input_ids, segment_ids?, word_embedding, position_embedding, segment_embedding?, gamma, beta, mask?, "
                 "position_ids?",
                 "output, mask_index?, embedding_sum?", "gather, add, layer_normalization, reduce_sum",
                 embed_layer_normalization,
                 {with_default("epsilon", 1e-12F), optional_attribute("mask_index_type", AttributeType::integer)}),
      contrib_op("GatedRMSNorm", "X, scale, gate", "Y", "rms_normalization, swish, sigmoid, mul", gated_rms_norm,
                 {with_default("activation", std::string("silu")), with_default("epsilon", 1e-5F)}),
      contrib_op("GatedAdd", "X, Y, gate, gate_weight?", "output", "mul, add", gated_add),
      contrib_op("GroupNorm", "X, gamma, beta", "Y", "group_normalization, swish", group_norm, group_specs()),
      contrib_op("SkipGroupNorm", "X, gamma, beta, skip, bias?", "Y, S?", "add, group_normalization, swish",
                 skip_group_norm, group_specs()),
  };
}

}  // namespace autograph::io
