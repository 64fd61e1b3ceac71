// Rules of the pass fuse_squeeze_excite: the gate of a squeeze-and-excite block becomes one node.
//
//   global_average_pool -> conv 1x1 -> relu -> conv 1x1 -> sigmoid    becomes    fused{...}
//
// With two convolutions (one is what ends a classifier). The multiplication by the gate stays outside, where it is
// computed together with what follows it.
#include "optimize/body_builder.h"
#include "optimize/rules/families/families.h"

namespace autograph {
namespace {

bool is_static(const RuleMatch& match) { return match.type("p").is_static() && match.type("y").is_static(); }

std::vector<ValueId> make_gate(RuleBuilder& builder) {
  BodyBuilder body(builder.graph());
  for (const NodeId node : builder.match().nodes()) body.add(builder.graph().node(node));
  return {builder.graph().node(body.make(builder.graph())).output(0)};
}

Rule gate(std::string_view name, std::string_view before) {
  return {.name = name,
          .before = before,
          .after = "y = fused(x, v, b, w, d)",
          .kind = RuleClass::always_pays,
          .guard_doc = "extents behind the pool are known",
          .guard = is_static,
          .build = make_gate,
          .is_rounded = true};
}

// What ends in the function first, so that it belongs to the node where the device has a kernel for that.
const Rule kRules[] = {
    gate("squeeze_excite.gate",
         "p = global_average_pool(x); a = conv(p, $v, b...); s = unary<f>(a); c = conv(s, $w, d...); y = unary<g>(c)"),
    gate("squeeze_excite.clipped_gate",
         "p = global_average_pool(x); a = conv(p, $v, b...); s = clip(a, #l, #h); c = conv(s, $w, d...);"
         " y = unary<g>(c)"),
    gate("squeeze_excite.plain_gate",
         "p = global_average_pool(x); a = conv(p, $v, b...); s = unary<f>(a); y = conv(s, $w, d...)"),
};

}  // namespace

std::span<const Rule> squeeze_excite_rules() { return kRules; }

}  // namespace autograph
