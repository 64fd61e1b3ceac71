// cum_sum and cum_prod. Rows that are long, or few, have a group of items, or several, of which each has a part; others
// have an item each.
#include "backends/gpu/emit/axis/axis_rows.h"
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "backends/gpu/emit/text/product.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

// Neighbours that an item of a group combines by itself before the group does.
constexpr int64_t kNeighbours = 4;

class ScanWriter {
 public:
  ScanWriter(const KernelCall& call, const Target& target, int64_t axis)
      : w_(target),
        dtype_(call.inputs[0].dtype()),
        step_(&call.op == &cum_sum_def() ? sum_of(product_type(dtype_)) : product_of(product_type(dtype_))),
        rows_(call.input_dims(0), axis),
        plan_(plan_reduction(target, rows_.count, rows_.extent)),
        parts_(choose_parts(target, plan_, rows_.count, rows_.extent)),
        is_exclusive_(call.attributes.flag("exclusive")),
        is_reverse_(call.attributes.flag("reverse")) {
    w_.index().cover(num_elements(call.input_dims(0)));
  }

  Emitted write() {
    if (!plan_.by_group) {
      write_rows();
      return w_.finish();
    }
    // Parts are rounded up, and groups step beyond their ends.
    w_.index().cover(2 * rows_.extent + tile());
    if (parts_ > 1) write_totals();
    write_parts();
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  int64_t tile() const { return kNeighbours * static_cast<int64_t>(plan_.group_size); }
  Parameter input() const { return input_parameter("x", storage_type(dtype_), 0); }
  Parameter output() const { return output_parameter("y", storage_type(dtype_)); }
  Parameter totals() const { return scratch_parameter("part_totals", step_.type); }

  // Where element `r` of the row lies that begins at "start".
  std::string place(const std::string& r) const {
    const std::string at = is_reverse_ ? fmt::format("({} - 1 - ({}))", lit(rows_.extent), r) : "(" + r + ")";
    return fmt::format("start + {} * {}", at, lit(rows_.stride));
  }
  std::string element(const std::string& r) const {
    return fmt::format("({}){}", step_.type, load(dtype_, "x", place(r)));
  }

  // Writes the statements that take `value` into the variable "total", and store what is known then as element `r`.
  void write_step(const std::string& r, const std::string& value) {
    const std::string result = fmt::format("({})total", compute_type(dtype_));
    if (is_exclusive_) w_.line("{}", store(dtype_, "y", place(r), result));
    w_.line("total = {};", step_.combine("total", value));
    if (!is_exclusive_) w_.line("{}", store(dtype_, "y", place(r), result));
  }

  void write_rows() {
    w_.begin_items({input(), output()}, rows_.count);
    w_.line("const Index start = {};", rows_.start(w_.index(), "i"));
    w_.line("{} total = {};", step_.type, step_.start);
    w_.open("for (Index r = 0; r < {}; ++r)", lit(rows_.extent));
    w_.line("const {} v = {};", step_.type, element("r"));
    write_step("r", "v");
    w_.close();
    w_.end();
  }

  // Of each part the combination of all its elements.
  void write_totals() {
    w_.scratch_bytes = static_cast<size_t>(rows_.count * parts_) * sizeof(int64_t);  // of any type
    begin_parts(w_, plan_, {input(), totals()}, rows_.count, rows_.extent, parts_);
    w_.line("const Index start = {};", rows_.start(w_.index(), "o"));
    write_combined("first + t", "last", element("r"));
    w_.line("if (t == 0) part_totals[g] = total;");
    w_.end();
  }

  // Declares "total", which all items of a group share: the combination of `value` for each `r` from `begin` on, of
  // which they take turns.
  void write_combined(const std::string& begin, const std::string& end, const std::string& value) {
    w_.line("{} total = {};", step_.type, step_.start);
    w_.open("for (Index r = {}; r < {}; r += {})", begin, end, plan_.group_size);
    w_.line("const {} v = {};", step_.type, value);
    w_.line("total = {};", step_.combine("total", "v"));
    w_.close();
    write_group_total(w_, plan_, step_, "total");
  }

  // A part begins with what the parts before it make. A group walks over it, some neighbours an item; what comes before
  // those of an item it learns from the other items.
  void write_parts() {
    std::vector<Parameter> parameters{input(), output()};
    if (parts_ > 1) parameters.push_back(totals());
    begin_parts(w_, plan_, parameters, rows_.count, rows_.extent, parts_);
    w_.line("const Index start = {};", rows_.start(w_.index(), "o"));
    if (parts_ > 1) {
      w_.line("const Index before = o * {};", lit(parts_));
      write_combined("before + t", "g", "part_totals[r]");
      w_.line("{} carried = total;", step_.type);
    } else {
      w_.line("{0} carried = {1}, total = {1};", step_.type, step_.start);
    }
    w_.line("LOCAL {} item_totals[{}];", step_.type, plan_.group_size);
    w_.open("for (Index r0 = first; r0 < last; r0 += {})", lit(tile()));
    w_.line("const Index r = r0 + t * {};", kNeighbours);
    w_.line("total = {};", step_.start);
    for (int64_t k = 0; k < kNeighbours; ++k) {
      w_.line("const {} v{} = r + {} < last ? {} : {};", step_.type, k, k, element(fmt::format("r + {}", k)),
              step_.start);
      w_.line("total = {};", step_.combine("total", fmt::format("v{}", k)));
    }
    write_item_totals();
    w_.line("total = t > 0 ? {} : carried;", step_.combine("carried", "item_totals[t - 1]"));
    w_.line("carried = {};", step_.combine("carried", fmt::format("item_totals[{}]", plan_.group_size - 1)));
    w_.line("BARRIER();");
    for (int64_t k = 0; k < kNeighbours; ++k) {
      w_.open("if (r + {} < last)", k);
      write_step(fmt::format("r + {}", k), fmt::format("v{}", k));
      w_.close();
    }
    w_.close();
    w_.end();
  }

  // Makes of the items' "total" in "item_totals" the combinations of all up to an item's: twice as far with each step.
  void write_item_totals() {
    w_.line("item_totals[t] = total;");
    w_.line("BARRIER();");
    w_.open("for (i32 reach = 1; reach < {}; reach *= 2)", plan_.group_size);
    w_.line("if (t >= reach) total = {};", step_.combine("item_totals[t - reach]", "total"));
    w_.line("BARRIER();");
    w_.line("item_totals[t] = total;");
    w_.line("BARRIER();");
    w_.close();
  }

  Writer w_;
  DType dtype_;
  Combination step_;
  AxisRows rows_;
  ReductionPlan plan_;
  int64_t parts_;
  bool is_exclusive_, is_reverse_;
};

}  // namespace

Emitted emit_cumulative(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  const auto axis = known_integers(call, 1);
  if (!can_compute(dtype, target) || product_type(dtype).empty()) return refused("dtype");
  const auto rank = static_cast<int64_t>(call.input_dims(0).size());
  if (!axis || (*axis)[0] < -rank || (*axis)[0] >= rank) return refused("an axis that is computed");
  return ScanWriter(call, target, (*axis)[0]).write();
}

}  // namespace autograph::gpu
