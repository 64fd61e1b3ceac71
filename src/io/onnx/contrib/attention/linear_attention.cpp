// Contrib ops of layers that carry a state of fixed size from token to token: the ops that opset 27 has under the same
// names, with more forms.
#include "autograph/ops/activation.h"
#include "autograph/ops/shape.h"

#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

std::vector<Var> causal_conv_with_state(ContribCall& call) {
  for (const char* name : {"ndim", "dilation"}) call.only(name, {1});
  for (const char* name :
       {"state_update_capacity", "state_window", "state_length", "input_channel_offset", "input_channels"}) {
    call.only(name, {0});
  }
  call.only("state_channels_last", {-1});
  const bool channels_last = call.attributes().flag("channels_last");
  if (call.rank(call["input"]) != 3) {
    call.refuse("input 'input'", "expected rank 3, got " + to_string(call["input"].type()));
  }
  const auto turned = [&](Var v) { return channels_last && v.is_valid() ? transpose(v, {0, 2, 1}) : v; };
  const std::vector<Var> made =
      apply_all(get_op("causal_conv_with_state"),
                {turned(call["input"]), call["weight"], call["bias"], turned(call["past_state"])},
                shared_attributes(call, "causal_conv_with_state"), 2);
  return {turned(made[0]), turned(made[1])};
}

std::vector<Var> linear_attention(ContribCall& call) {
  call.only("state_window", {0});
  Attributes attributes = shared_attributes(call, "linear_attention");
  const int64_t q_heads = attributes.integer("q_num_heads"), kv_heads = attributes.integer("kv_num_heads");
  Var query = call["query"], key = call["key"];
  if (q_heads > 0 && q_heads < kv_heads && kv_heads % q_heads == 0) {
    // Several states for each query head, and for its key where there are as many of these.
    const auto vector = [&](const std::vector<int64_t>& values) { return call.constant(Tensor::vector(values)); };
    const Var size = div(extent_of(query, 2), vector({q_heads}));
    const auto one_for_each_state = [&](Var x) {
      const Var heads = div(extent_of(x, 2), size);
      const Var each = reshape(x, concat({vector({0, 0}), heads, vector({1}), size}, 0));
      const Var times = concat({vector({1, 1, 1}), div(vector({kv_heads}), heads), vector({1})}, 0);
      return reshape(apply(get_op("expand"), {each, times}), std::vector<int64_t>{0, 0, -1});
    };
    key = one_for_each_state(key);
    query = one_for_each_state(query);
    attributes.set("q_num_heads", kv_heads);
  }
  return apply_all(get_op("linear_attention"),
                   {query, key, call["value"], call["past_state"], call["decay"], call["beta"]}, std::move(attributes),
                   2);
}

// What linear_attention takes as decay and beta, computed in f32.
std::vector<Var> linear_attention_gate(ContribCall& call) {
  const Var a = call["a"], b = call["b"];
  const Var decay = mul(softplus(add(as_dtype(a, DType::f32), call["dt_bias"])), call["decay_scale"]);
  if (call.wants(1) && !b.is_valid()) call.refuse("output 'beta'", "there is no input 'b'");
  return {as_dtype(decay, a.dtype()), b.is_valid() ? as_dtype(sigmoid(as_dtype(b, DType::f32)), b.dtype()) : Var()};
}

}  // namespace

std::vector<ContribOp> contrib_linear_attention() {
  return {
      contrib_op("CausalConvWithState", "input, weight, bias?, past_state?", "output, present_state?, state_update?",
                 "causal_conv_with_state", causal_conv_with_state,
                 {with_default("ndim", int64_t{1}), with_default("dilation", int64_t{1}),
                  with_default("activation", std::string("none")), with_default("state_update_capacity", int64_t{0}),
                  with_default("state_channels_last", int64_t{-1}), with_default("state_window", int64_t{0}),
                  with_default("state_length", int64_t{0}), with_default("input_channel_offset", int64_t{0}),
                  with_default("channels_last", int64_t{0}), with_default("input_channels", int64_t{0})}),
      contrib_op("LinearAttention", "query, key, value, past_state?, decay?, beta?", "output, present_state?",
                 "linear_attention", linear_attention,
                 {required_attribute("q_num_heads"), required_attribute("kv_num_heads"),
                  with_default("update_rule", std::string("gated_delta")), with_default("scale", 0.0F),
                  with_default("chunk_size", int64_t{64}), with_default("state_window", int64_t{0})}),
      contrib_op("LinearAttentionGate", "a, dt_bias, decay_scale, b?", "decay, beta?", "softplus, sigmoid, add, mul",
                 linear_attention_gate),
  };
}

}  // namespace autograph::io
