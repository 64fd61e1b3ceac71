// linear_attention: columns of a head's state know nothing of each other. A group has some of them and walks over the
// positions; the rows of a column are shared among its items, which keep them in registers.
#include <algorithm>
#include <cmath>

#include "backends/gpu/emit/families.h"
#include "ops/attention/head_layout.h"

namespace autograph::gpu {
namespace {

constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPast = 3, kDecay = 4, kBeta = 5;
constexpr int64_t kMostRows = 16;  // of an item
constexpr int64_t kMostItems = 256;

class LinearAttentionWriter {
 public:
  LinearAttentionWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        dtype_(call.inputs[kQuery].dtype()),
        state_dtype_(call.has_input(kPast) ? call.inputs[kPast].dtype() : dtype_),
        q_(call.input_dims(kQuery), call.attributes.integer("q_num_heads")),
        k_(call.input_dims(kKey), call.attributes.integer("kv_num_heads")),
        v_(call.input_dims(kValue), call.attributes.integer("kv_num_heads")) {
    const bool is_f64 = dtype_ == DType::f64 || state_dtype_ == DType::f64;
    real_ = is_f64 ? DType::f64 : DType::f32;
    type_ = compute_type(real_);
    const auto most = std::min(static_cast<int64_t>(target.max_group), kMostItems);
    while (k_.size > kMostRows * parts_ && parts_ <= most) parts_ *= 2;
    while (columns_ < v_.size && 2 * columns_ * parts_ <= most) columns_ *= 2;
    rows_ = std::max<int64_t>((k_.size + parts_ - 1) / parts_, 1);
    blocks_ = (v_.size + columns_ - 1) / columns_;
    cover_operands(w_.index(), call);
  }

  std::string refusal() const {
    if (!can_compute(dtype_, w_.target()) || !can_compute(state_dtype_, w_.target())) return "dtype";
    const bool fits = parts_ * columns_ <= static_cast<int64_t>(w_.target().max_group) && rows_ <= kMostRows;
    return fits ? "" : "keys of too many elements";
  }

  Emitted write() {
    w_.begin_groups(parameters(), k_.batch * k_.heads * blocks_, static_cast<size_t>(parts_ * columns_));
    if (parts_ > 1) w_.line("LOCAL {} shares[{}];", type_, parts_ * columns_);
    w_.line("const Index bh = g / {0}, column = g % {0} * {1} + t % {1};", lit(blocks_), lit(columns_));
    w_.line("const Index b = bh / {0}, head = bh % {0}, part = t / {1};", lit(k_.heads), lit(columns_));
    w_.line("const i32 is_inside = column < {};", lit(v_.size));
    w_.line("{} state[{}], key[{}];", type_, rows_, rows_);
    const std::string past = load(state_dtype_, "past", state_place());
    for_rows([&] { w_.line("state[r] = {};", call_.has_input(kPast) ? if_inside(past, true) : "0"); });
    w_.open("for (Index step = 0; step < {}; ++step)", lit(k_.length));
    w_.line("const Index at = b * {} + step;", lit(k_.length));
    write_update();
    write_reads();
    w_.close();
    if (has_state()) write_state();
    w_.end();
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  bool has_state() const { return call_.outputs.size() > 1 && call_.outputs[1].is_tensor(); }
  std::string state_place() const { return fmt::format("(bh * {} + d) * {} + column", lit(k_.size), lit(v_.size)); }

  // `text` where row `d` and, with `of_column`, the column exist, else 0.
  std::string if_inside(const std::string& text, bool of_column) const {
    const bool all_rows = rows_ * parts_ == k_.size;
    const std::string row = all_rows ? "" : fmt::format("d < {}", lit(k_.size));
    if (!of_column) return all_rows ? text : fmt::format("{} ? {} : 0", row, text);
    return fmt::format("is_inside{}{} ? {} : 0", all_rows ? "" : " && ", row, text);
  }

  std::vector<Parameter> parameters() const {
    const std::string_view stored = storage_type(dtype_), kept = storage_type(state_dtype_);
    std::vector<Parameter> list{input_parameter("query", stored, kQuery), input_parameter("keys", stored, kKey),
                                input_parameter("values", stored, kValue)};
    if (call_.has_input(kPast)) list.push_back(input_parameter("past", kept, kPast));
    if (call_.has_input(kDecay)) list.push_back(input_parameter("decay", stored, kDecay));
    if (call_.has_input(kBeta)) list.push_back(input_parameter("beta", stored, kBeta));
    list.push_back(output_parameter("y", stored));
    if (has_state()) list.push_back(output_parameter("present", kept, 1));
    return list;
  }

  // A loop over the item's rows: `r` counts them, `d` is their number in the state.
  template <class Body>
  void for_rows(const Body& body) {
    w_.line("#pragma unroll");
    w_.open("for (i32 r = 0; r < {}; ++r)", rows_);
    w_.line("const Index d = r * {} + part;", lit(parts_));
    body();
    w_.close();
  }

  // Makes of the items' shares in `total` of a column what they are together.
  void write_total(const char* total) {
    if (parts_ == 1) return;
    w_.line("shares[t] = {};", total);
    w_.line("BARRIER();");
    w_.line("{} = 0;", total);
    w_.line("for (i32 p = 0; p < {0}; ++p) {1} += shares[p * {2} + t % {2}];", parts_, total, columns_);
    w_.line("BARRIER();");
  }

  // Where a gate lies that is one for all heads, for each head, or for each row of a head.
  std::string gate(const char* name, size_t slot) const {
    const int64_t width = call_.input_dims(slot)[2];
    const int64_t of_head = width == 1 ? 0 : width / k_.heads;
    return load(dtype_, name,
                fmt::format("at * {} + head * {}{}", lit(width), lit(of_head), of_head > 1 ? " + d" : ""));
  }

  void write_update() {
    w_.line("{} stored = 0;", type_);
    for_rows([&] {
      const std::string key =
          load(dtype_, "keys", fmt::format("at * {} + head * {} + d", lit(k_.position_stride), lit(k_.head_stride)));
      w_.line("key[r] = {};", if_inside(key, false));
      if (call_.has_input(kDecay)) {
        const std::string factor = fmt::format("exp(({}){})", type_, gate("decay", kDecay));
        w_.line("state[r] *= {};", if_inside(factor, false));
      }
      if (call_.has_input(kBeta)) w_.line("stored += key[r] * state[r];");
    });
    const std::string value = load(
        dtype_, "values", fmt::format("at * {} + head * {} + column", lit(v_.position_stride), lit(v_.head_stride)));
    w_.line("{} update = is_inside ? {} : 0;", type_, value);
    if (call_.has_input(kBeta)) {
      write_total("stored");
      w_.line("update = {} * (update - stored);", gate("beta", kBeta));
    }
    for_rows([&] { w_.line("state[r] += {};", if_inside("key[r] * update", false)); });
  }

  // The heads of the query that share the state.
  void write_reads() {
    const int64_t readers = q_.heads / k_.heads;
    const float given = call_.attributes.real("scale");
    const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(k_.size)) : static_cast<double>(given);
    w_.open("for (Index reader = head * {0}; reader < (head + 1) * {0}; ++reader)", lit(readers));
    w_.line("{} total = 0;", type_);
    for_rows([&] {
      const std::string element =
          load(dtype_, "query", fmt::format("at * {} + reader * {} + d", lit(q_.position_stride), lit(q_.head_stride)));
      w_.line("total += ({}) * state[r];", if_inside(element, false));
    });
    write_total("total");
    w_.open("if (is_inside && part == 0)");
    w_.line("{}", store(dtype_, "y", fmt::format("(at * {} + reader) * {} + column", lit(q_.heads), lit(v_.size)),
                        fmt::format("({})({} * total)", compute_type(dtype_), literal(real_, scale))));
    w_.close();
    w_.close();
  }

  void write_state() {
    for_rows([&] {
      w_.open("if (is_inside && d < {})", lit(k_.size));
      w_.line("{}",
              store(state_dtype_, "present", state_place(), fmt::format("({})state[r]", compute_type(state_dtype_))));
      w_.close();
    });
  }

  const KernelCall& call_;
  Writer w_;
  DType dtype_, state_dtype_, real_;
  std::string_view type_;
  HeadLayout q_, k_, v_;
  int64_t parts_ = 1;    // that the rows are shared out in
  int64_t columns_ = 1;  // of a group
  int64_t rows_ = 1;     // of an item
  int64_t blocks_ = 0;   // of columns
};

}  // namespace

Emitted emit_linear_attention(const KernelCall& call, const Target& target) {
  LinearAttentionWriter writer(call, target);
  if (const std::string refusal = writer.refusal(); !refusal.empty()) return refused(refusal);
  return writer.write();
}

}  // namespace autograph::gpu
