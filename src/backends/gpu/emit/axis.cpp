// What runs along one axis: arg_max and arg_min, cum_sum and cum_prod, top_k.
#include <algorithm>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "backends/gpu/emit/text/product.h"
#include "base/aligned_size.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// Of top_k, elements of a row that are all compared with each other. Longer rows are cut into blocks, of each of which
// what may be wanted is kept, at most half.
constexpr int64_t kMaxCompared = 4096;
constexpr int64_t kBlock = 1024;

// Rows of `extent` elements, `stride` apart.
struct AxisRows {
  AxisRows(const Dims& dims, int64_t axis) {
    const auto at = static_cast<size_t>(front_axis(axis, static_cast<int64_t>(dims.size())));
    extent = dims[at];
    stride = row_major_strides(dims)[at];
    count = extent == 0 ? 0 : num_elements(dims) / extent;
  }
  // Where row `row` begins in a tensor whose extent along the axis is `length`.
  std::string start(const IndexType& index, std::string_view row, int64_t length) const {
    return fmt::format("{0} / {1} * {2} + {0} % {1}", row, index.literal(stride), index.literal(length * stride));
  }
  int64_t extent = 0;
  int64_t stride = 1;
  int64_t count = 0;
};

std::string is_nan(DType dtype, const std::string& x) { return is_float(dtype) ? fmt::format("isnan({})", x) : "0"; }

// Which of two elements of a row is the extreme: NaN before all others, of equal ones the first, or the last.
std::string precedence(const KernelCall& call, DType dtype) {
  const char* sign = &call.op == &arg_max_def() ? ">" : "<";
  const char* earlier = call.attributes.flag("select_last_index") ? "a_at > b_at" : "a_at < b_at";
  const std::string nans =
      is_float(dtype) ? fmt::format("  if (isnan(a) || isnan(b)) return isnan(a) && (!isnan(b) || {});\n", earlier)
                      : "";
  return fmt::format(
      "DEVICE i32 is_before({0} a, Index a_at, {0} b, Index b_at) {{\n{1}  return a == b ? {2} : a {3} b;\n}}\n",
      compute_type(dtype), nans, earlier, sign);
}

// "best" and "best_at" of all items of a group.
void write_group_extreme(Writer& writer, const ReductionPlan& plan, DType dtype) {
  writer.line("LOCAL {} values[{}];", compute_type(dtype), plan.group_size);
  writer.line("LOCAL Index places[{}];", plan.group_size);
  writer.line("values[t] = best;");
  writer.line("places[t] = best_at;");
  writer.line("BARRIER();");
  writer.open("for (i32 half_size = {}; half_size > 0; half_size /= 2)", plan.group_size / 2);
  writer.open("if (t < half_size && is_before(values[t + half_size], places[t + half_size], values[t], places[t]))");
  writer.line("values[t] = values[t + half_size];");
  writer.line("places[t] = places[t + half_size];");
  writer.close();
  writer.line("BARRIER();");
  writer.close();
  writer.line("best_at = places[0];");
}

}  // namespace

Emitted emit_arg_extreme(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const AxisRows rows(call.input_dims(0), call.attributes.integer("axis"));
  const ReductionPlan plan = plan_reduction(target, rows.count, rows.extent);  // no more items than elements of a row
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  writer.function(precedence(call, dtype));
  const char* first = plan.by_group ? "t" : "0";
  const std::string at = fmt::format("start + r * {}", writer.index().literal(rows.stride));
  begin_reduction(writer, plan, {input_parameter("x", storage_type(dtype), 0), output_parameter("y", "i64")},
                  rows.count);
  writer.line("const Index start = {};", rows.start(writer.index(), "o", rows.extent));
  writer.line("Index best_at = {};", first);
  writer.line("{} best = {};", compute_type(dtype),
              load(dtype, "x", fmt::format("start + best_at * {}", writer.index().literal(rows.stride))));
  writer.open("for (Index r = best_at + {0}; r < {1}; r += {0})", plan.group_size, writer.index().literal(rows.extent));
  writer.line("const {} v = {};", compute_type(dtype), load(dtype, "x", at));
  writer.open("if (is_before(v, r, best, best_at))");
  writer.line("best = v;");
  writer.line("best_at = r;");
  writer.close();
  writer.close();
  if (plan.by_group) write_group_extreme(writer, plan, dtype);
  writer.line("{}y[o] = best_at;", plan.by_group ? "if (t == 0) " : "");
  writer.end();
  return writer.finish();
}

Emitted emit_cumulative(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  const auto axis = known_integers(call, 1);
  if (!can_compute(dtype, target) || product_type(dtype).empty()) return refused("dtype");
  const auto rank = static_cast<int64_t>(call.input_dims(0).size());
  if (!axis || (*axis)[0] < -rank || (*axis)[0] >= rank) return refused("an axis that is computed");
  const AxisRows rows(call.input_dims(0), (*axis)[0]);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  const bool adds = &call.op == &cum_sum_def();
  const bool exclusive = call.attributes.flag("exclusive");
  const std::string extent = writer.index().literal(rows.extent);
  const std::string step = call.attributes.flag("reverse") ? fmt::format("({} - 1 - r)", extent) : "r";
  writer.begin_items({input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                     rows.count);
  writer.line("const Index start = {};", rows.start(writer.index(), "i", rows.extent));
  writer.line("{} total = {};", product_type(dtype), adds ? 0 : 1);
  writer.open("for (Index r = 0; r < {}; ++r)", extent);
  writer.line("const Index at = start + {} * {};", step, writer.index().literal(rows.stride));
  writer.line("const {} before = total;", product_type(dtype));
  writer.line("total = total {} {};", adds ? "+" : "*", load(dtype, "x", "at"));
  writer.line("{}",
              store(dtype, "y", "at", fmt::format("({}){}", compute_type(dtype), exclusive ? "before" : "total")));
  writer.close();
  writer.end();
  return writer.finish();
}

namespace {

// Of each block of a row its first k elements, in order; what comes out is the row of the next turn, until one block is
// all that is left.
class TopKWriter {
 public:
  TopKWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        dtype_(call.inputs[0].dtype()),
        type_(compute_type(dtype_)),
        rows_(call.input_dims(0), call.attributes.integer("axis")) {
    const Dims dims = call.output_dims(0);
    k_ = dims[static_cast<size_t>(front_axis(call.attributes.integer("axis"), std::ssize(dims)))];
    w_.index().cover(num_elements(call.input_dims(0)));
  }

  std::string refusal() const {
    if (!can_compute(dtype_, w_.target())) return "dtype";
    if (rows_.extent > kMaxCompared && 2 * k_ > kBlock) {
      return fmt::format("{} of rows of {} elements: beyond {} no more than {}", k_, rows_.extent, kMaxCompared,
                         kBlock / 2);
    }
    return "";
  }

  Emitted write() {
    w_.function(fmt::format("DEVICE i32 is_larger({0} a, {0} b) {{ return {1} ? 0 : {2} ? 1 : a > b; }}\n", type_,
                            is_nan(dtype_, "b"), is_nan(dtype_, "a")));
    Turn turn{.extent = rows_.extent};
    for (; turn.extent > kMaxCompared; turn = next_of(turn)) write_turn(turn, kBlock);
    write_turn(turn, turn.extent);
    return w_.finish();
  }

 private:
  // What a turn reads: x, or what the one before left in scratch memory, values and their places in the row of x.
  struct Turn {
    int64_t extent = 0;
    size_t number = 0;
    size_t begin = 0;  // in scratch memory
  };

  std::string lit(int64_t value) const { return w_.index().literal(value); }
  size_t place_bytes() const { return w_.index().name() == "i64" ? sizeof(int64_t) : sizeof(int32_t); }
  // Of a block of so many elements.
  int64_t kept(int64_t elements) const { return std::min(k_, elements); }

  Turn next_of(const Turn& turn) const {
    const int64_t extent = turn.extent / kBlock * kept(kBlock) + kept(turn.extent % kBlock);
    const size_t end = turn.number == 0 ? 0 : places_of(turn) + count_of(turn) * place_bytes();
    return {extent, turn.number + 1, aligned_size(end)};
  }
  size_t count_of(const Turn& turn) const { return static_cast<size_t>(rows_.count * turn.extent); }
  size_t places_of(const Turn& turn) const { return aligned_size(turn.begin + count_of(turn) * compute_bytes(dtype_)); }

  std::vector<Parameter> parameters(const Turn& turn, bool is_last) {
    std::vector<Parameter> list;
    if (turn.number == 0) {
      list = {input_parameter("x", storage_type(dtype_), 0)};
    } else {
      list = {scratch_parameter("x", type_, turn.begin),
              scratch_parameter("x_places", w_.index().name(), places_of(turn))};
    }
    if (is_last) {
      list.push_back(output_parameter("y", storage_type(dtype_)));
      if (has_indices()) list.push_back(output_parameter("places", "i64", 1));
    } else {
      const Turn next = next_of(turn);
      list.push_back(scratch_parameter("y", type_, next.begin));
      list.push_back(scratch_parameter("places", w_.index().name(), places_of(next)));
      w_.scratch_bytes = places_of(next) + count_of(next) * place_bytes();
    }
    return list;
  }
  bool has_indices() const { return call_.outputs.size() > 1 && call_.outputs[1].is_tensor(); }

  // The place of each element among those of its block: how many come before it.
  void write_turn(const Turn& turn, int64_t block) {
    const bool is_last = block == turn.extent;
    const bool largest = call_.attributes.flag("largest");
    const char* other_first = largest ? "is_larger(other, v)" : "is_larger(v, other)";
    const char* this_first = largest ? "is_larger(v, other)" : "is_larger(other, v)";
    const std::string extent = lit(turn.extent);
    const auto element = [&](const char* r) {
      if (turn.number > 0) return fmt::format("x[row * {} + {}]", extent, r);
      return load(dtype_, "x", fmt::format("start + {} * {}", r, lit(rows_.stride)));
    };
    const std::vector<Parameter> list = parameters(turn, is_last);
    w_.begin_items(list, k_ == 0 ? 0 : rows_.count * turn.extent);
    w_.line("const Index row = i / {0}, e = i % {0};", extent);
    if (turn.number == 0) w_.line("const Index start = {};", rows_.start(w_.index(), "row", rows_.extent));
    w_.line("const Index first = {};", is_last ? "0" : fmt::format("e / {0} * {0}", lit(block)));
    w_.line("const Index last = {};",
            is_last ? extent : fmt::format("first + {0} < {1} ? first + {0} : {1}", lit(block), extent));
    w_.line("const {} v = {};", type_, element("e"));
    w_.line("Index place = 0;");
    w_.open("for (Index r = first; r < last; ++r)");
    w_.line("const {} other = {};", type_, element("r"));
    w_.line("place += {} || (r < e && !{});", other_first, this_first);
    w_.close();
    w_.open("if (place < {})", lit(k_));
    const std::string origin = turn.number == 0 ? "e" : "x_places[i]";
    if (is_last) {
      w_.line("const Index to = {} + place * {};", rows_.start(w_.index(), "row", k_), lit(rows_.stride));
      w_.line("{}", store(dtype_, "y", "to", "v"));
      if (has_indices()) w_.line("places[to] = {};", origin);
    } else {
      w_.line("const Index to = row * {} + e / {} * {} + place;", lit(next_of(turn).extent), lit(block),
              lit(kept(block)));
      w_.line("y[to] = v;");
      w_.line("places[to] = {};", origin);
    }
    w_.close();
    w_.end();
  }

  const KernelCall& call_;
  Writer w_;
  DType dtype_;
  std::string_view type_;
  AxisRows rows_;
  int64_t k_ = 0;
};

}  // namespace

Emitted emit_top_k(const KernelCall& call, const Target& target) {
  TopKWriter writer(call, target);
  const std::string refusal = writer.refusal();
  return refusal.empty() ? writer.write() : refused(refusal);
}

}  // namespace autograph::gpu
