// top_k: each element counts which of its row come before it. Long rows are cut into blocks, each of which is put in
// order by itself; where few elements are wanted what is left of the blocks is a shorter row, else blocks in order are
// merged.
#include <algorithm>

#include "backends/gpu/emit/axis/axis_rows.h"
#include "backends/gpu/emit/families.h"
#include "base/aligned_size.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// Elements of a row that are all compared with each other. Of the blocks of longer rows what may be wanted is kept: at
// most half of it, or blocks are merged.
constexpr int64_t kMaxCompared = 4096;
constexpr int64_t kBlock = 1024;
// Blocks that will be merged, and how many at a time: of each element's place in one of them the others take a binary
// search.
constexpr int64_t kMergedBlock = 256;
constexpr int64_t kMergedAtOnce = 4;

std::string is_nan(DType dtype, const std::string& x) { return is_float(dtype) ? fmt::format("isnan({})", x) : "0"; }

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

  Emitted write() {
    w_.function(fmt::format("DEVICE i32 is_larger({0} a, {0} b) {{ return {1} ? 0 : {2} ? 1 : a > b; }}\n", type_,
                            is_nan(dtype_, "b"), is_nan(dtype_, "a")));
    Turn turn{.extent = rows_.extent};
    for (; block_of(turn) < turn.extent; turn = next_of(turn)) write_turn(turn);
    write_turn(turn);
    return w_.finish();
  }

 private:
  // What a turn reads: x, or what the one before left in scratch memory, values and their places in the row of x.
  struct Turn {
    int64_t extent = 0;
    size_t number = 0;
    int64_t in_order = 1;  // so many neighbours, from each multiple of it on
  };

  std::string lit(int64_t value) const { return w_.index().literal(value); }
  size_t place_bytes() const { return w_.index().name() == "i64" ? sizeof(int64_t) : sizeof(int32_t); }
  // Of a block of so many elements.
  int64_t kept(int64_t elements) const { return std::min(k_, elements); }

  // Elements of which a turn finds the first ones.
  int64_t block_of(const Turn& turn) const {
    if (turn.in_order > 1) return std::min(turn.extent, turn.in_order * kMergedAtOnce);
    if (turn.extent <= kMaxCompared) return turn.extent;
    return are_merged() ? kMergedBlock : kBlock;
  }
  bool are_merged() const { return 2 * k_ > kBlock; }

  Turn next_of(const Turn& turn) const {
    const int64_t block = block_of(turn);
    const int64_t extent = turn.extent / block * kept(block) + kept(turn.extent % block);
    return {extent, turn.number + 1, are_merged() ? kept(block) : 1};
  }

  // Turns leave what they find in two places in turns. The first one leaves most.
  size_t begin_of(const Turn& turn) const { return turn.number % 2 == 1 ? 0 : aligned_size(end_of(first_left())); }
  size_t end_of(const Turn& turn) const { return places_of(turn) + count_of(turn) * place_bytes(); }
  Turn first_left() const { return next_of({.extent = rows_.extent}); }
  size_t count_of(const Turn& turn) const { return static_cast<size_t>(rows_.count * turn.extent); }
  size_t places_of(const Turn& turn) const {
    return aligned_size(begin_of(turn) + count_of(turn) * compute_bytes(dtype_));
  }

  std::vector<Parameter> parameters(const Turn& turn, bool is_last) {
    std::vector<Parameter> list;
    if (turn.number == 0) {
      list = {input_parameter("x", storage_type(dtype_), 0)};
    } else {
      list = {scratch_parameter("x", type_, begin_of(turn)),
              scratch_parameter("x_places", w_.index().name(), places_of(turn))};
    }
    if (is_last) {
      list.push_back(output_parameter("y", storage_type(dtype_)));
      if (has_indices()) list.push_back(output_parameter("places", "i64", 1));
    } else {
      const Turn next = next_of(turn);
      list.push_back(scratch_parameter("y", type_, begin_of(next)));
      list.push_back(scratch_parameter("places", w_.index().name(), places_of(next)));
      w_.scratch_bytes = std::max(w_.scratch_bytes, end_of(next));
    }
    return list;
  }
  bool has_indices() const { return call_.outputs.size() > 1 && call_.outputs[1].is_tensor(); }

  // As texts: does the element "other" come before "v", does "v" before "other"?
  std::string other_first() const { return is_largest() ? "is_larger(other, v)" : "is_larger(v, other)"; }
  std::string this_first() const { return is_largest() ? "is_larger(v, other)" : "is_larger(other, v)"; }
  bool is_largest() const { return call_.attributes.flag("largest"); }

  std::string element(const Turn& turn, const char* r) const {
    if (turn.number > 0) return fmt::format("x[row * {} + {}]", lit(turn.extent), r);
    return load(dtype_, "x", fmt::format("start + {} * {}", r, lit(rows_.stride)));
  }

  // The place of each element among those of its block: how many come before it.
  void write_turn(const Turn& turn) {
    const int64_t block = block_of(turn);
    const bool is_last = block == turn.extent;
    const std::string extent = lit(turn.extent);
    const std::vector<Parameter> list = parameters(turn, is_last);
    w_.begin_items(list, k_ == 0 ? 0 : rows_.count * turn.extent);
    w_.line("const Index row = i / {0}, e = i % {0};", extent);
    if (turn.number == 0) w_.line("const Index start = {};", rows_.start(w_.index(), "row"));
    w_.line("const Index first = {};", is_last ? "0" : fmt::format("e / {0} * {0}", lit(block)));
    w_.line("const Index last = {};",
            is_last ? extent : fmt::format("first + {0} < {1} ? first + {0} : {1}", lit(block), extent));
    w_.line("const {} v = {};", type_, element(turn, "e"));
    w_.line("Index place = 0;");
    if (turn.in_order > 1) {
      write_searches(turn);
    } else {
      w_.open("for (Index r = first; r < last; ++r)");
      w_.line("const {} other = {};", type_, element(turn, "r"));
      w_.line("place += {} || (r < e && !{});", other_first(), this_first());
      w_.close();
    }
    write_result(turn);
    w_.end();
  }

  // In each run of elements in order those that come before "v". Of equal ones those of earlier runs do.
  void write_searches(const Turn& turn) {
    const std::string length = lit(turn.in_order);
    w_.line("const Index own = e / {0} * {0};", length);
    w_.open("for (Index run = first; run < last; run += {})", length);
    w_.line("Index low = run, high = run == own ? run : run + {0} < last ? run + {0} : last;", length);
    w_.open("while (low < high)");
    w_.line("const Index middle = low + (high - low) / 2;");
    w_.line("const {} other = {};", type_, element(turn, "middle"));
    w_.open("if ({} || (run < own && !{}))", other_first(), this_first());
    w_.line("low = middle + 1;");
    w_.close();
    w_.line("else high = middle;");
    w_.close();
    w_.line("place += run == own ? e - own : low - run;");
    w_.close();
  }

  // What has a place among the first k goes there.
  void write_result(const Turn& turn) {
    const int64_t block = block_of(turn);
    w_.open("if (place < {})", lit(k_));
    const std::string origin = turn.number == 0 ? "e" : "x_places[i]";
    if (block == turn.extent) {
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
  if (!can_compute(call.inputs[0].dtype(), target)) return refused("dtype");
  return TopKWriter(call, target).write();
}

}  // namespace autograph::gpu
