#include "ops/index/scatter_vjp.h"

#include "autograph/ops/elementwise.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// The calls that the rule is made of.
class Scatter {
 public:
  Scatter(VjpContext& c, const OpDef& gather) : c_(c), gather_(gather), attributes_(c.attributes()) {
    attributes_.erase("reduction");
  }

  Var read(const Var& x) { return apply(gather_, {x, c_.in(1)}, attributes_); }

  Var write(const Var& x, const Var& updates, const std::string& reduction) {
    Attributes attributes = attributes_;
    attributes.set("reduction", reduction);
    return apply(c_.op(), {x, c_.in(1), updates}, attributes);
  }

 private:
  VjpContext& c_;
  const OpDef& gather_;
  Attributes attributes_;
};

// The largest or smallest of several share the gradient.
void extreme_vjp(VjpContext& c, Scatter& scatter) {
  const auto is_taken = [](const Var& a, const Var& b) { return cast(equal(a, b), a.dtype()); };
  const Var of_data = is_taken(c.in(0), c.out(0));
  const Var of_updates = is_taken(c.in(2), scatter.read(c.out(0)));
  const Var share = c.gy(0) / scatter.write(of_data, of_updates, "add");
  if (c.wants(0)) c.set(0, share * of_data);
  if (c.wants(2)) c.set(2, scatter.read(share) * of_updates);
}

// The product of all others: of an update that is the only zero among those of its place, the product without it.
void product_vjp(VjpContext& c, Scatter& scatter) {
  const Var updates = c.in(2), gradient = c.gy(0);
  if (c.wants(0)) c.set(0, gradient * scatter.write(filled_like(c.in(0), 1), updates, "mul"));
  if (!c.wants(2)) return;
  const Var zero = scalar_like(updates, 0), one = scalar_like(updates, 1);
  const Var is_zero = equal(updates, zero);
  const Var zeros = scatter.write(filled_like(c.in(0), 0), cast(is_zero, updates.dtype()), "add");
  const Var without = scatter.read(scatter.write(c.in(0), where(is_zero, one, updates), "mul"));
  const Var of_zero = where(equal(scatter.read(zeros), one), without, zero);
  const Var nonzero = where(is_zero, one, updates);
  c.set(2, scatter.read(gradient) * where(is_zero, of_zero, scatter.read(c.out(0)) / nonzero));
}

}  // namespace

void scatter_vjp(VjpContext& c, const OpDef& gather) {
  Scatter scatter(c, gather);
  const std::string reduction = c.attributes().text("reduction");
  if (reduction == "mul") return product_vjp(c, scatter);
  if (reduction == "max" || reduction == "min") return extreme_vjp(c, scatter);
  const bool replaces = reduction == "none";
  if (c.wants(0)) c.set(0, replaces ? scatter.write(c.gy(0), filled_like(c.in(2), 0), "none") : c.gy(0));
  if (c.wants(2)) c.set(2, scatter.read(c.gy(0)));
}

}  // namespace autograph
