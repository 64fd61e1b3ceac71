// grid_sample of floats: one work item an output element, which finds along each axis the neighbours that it mixes.
#include "backends/gpu/emit/families.h"

namespace autograph::gpu {
namespace {

// Coordinates are computed in f64 as the reference does, where there is f64: nearest elements change at halves, and
// weights are small differences of large coordinates.
class GridWriter {
 public:
  GridWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        dtype_(call.inputs[0].dtype()),
        grid_(call.inputs[1].dtype()),
        type_(compute_type(dtype_)),
        real_(target.has_f64 ? "f64" : "f32"),
        mode_(call.attributes.text("mode")),
        padding_(call.attributes.text("padding_mode")),
        is_aligned_(call.attributes.flag("align_corners")),
        x_(call.input_dims(0)),
        y_(call.output_dims(0)) {
    cover_operands(w_.index(), call);
  }

  Emitted write() {
    if (padding_ == "reflection") w_.function(reflection_text());
    w_.function(index_text());
    if (mode_ == "cubic") w_.function(cubic_text());
    w_.begin_items({input_parameter("x", storage_type(dtype_), 0), input_parameter("grid", storage_type(grid_), 1),
                    output_parameter("y", storage_type(dtype_))},
                   num_elements(y_));
    const int64_t positions = num_elements(Dims(y_.begin() + 2, y_.end()));
    w_.line("const Index point = (i / {0} * {1} + i % {1}) * {2};", lit(positions * y_[1]), lit(positions),
            lit(rank()));
    w_.line("const Index plane = i / {} * {};", lit(positions), lit(num_elements(Dims(x_.begin() + 2, x_.end()))));
    for (int64_t axis = 0; axis < rank(); ++axis) write_axis(axis);
    write_mix();
    w_.line("{}", store(dtype_, "y", "i", "total"));
    w_.end();
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  int64_t rank() const { return std::ssize(x_) - 2; }
  int64_t extent(int64_t axis) const { return x_[static_cast<size_t>(axis) + 2]; }
  int64_t taps() const { return mode_ == "nearest" ? 1 : mode_ == "linear" ? 2 : 4; }
  std::string low() const { return is_aligned_ ? "0" : "-0.5f"; }
  std::string high(const std::string& extent) const { return extent + (is_aligned_ ? " - 1" : " - 0.5f"); }

  // Of a coordinate beyond the border.
  std::string reflection_text() const {
    return fmt::format(
        "DEVICE {0} reflected({0} c, {0} elements) {{\n"
        "  const {0} low = {1}, high = {2}, range = high - low;\n"
        "  const {0} beyond = c < low ? low - c : c - high;\n"
        "  if (range <= 0) return 0;\n"
        "  if (beyond <= 0) return c;\n"
        "  const {0} turns = floor(beyond / range), rest = beyond - turns * range;\n"
        "  return (c < low) == (turns == 2 * floor(turns / 2)) ? low + rest : high - rest;\n"
        "}}\n",
        real_, low(), high("elements"));
  }

  // The index of a whole coordinate, -1 for a zero.
  std::string index_text() const {
    const char* outside =
        padding_ == "zeros" ? "  return -1;\n"
        : padding_ == "reflection"
            ? "  c = reflected(c, elements);\n  return (Index)(c < 0 ? 0 : c > elements - 1 ? elements - 1 : c);\n"
            : "  return c < 0 ? 0 : (Index)(elements - 1);\n";
    return fmt::format(
        "DEVICE Index index_of({0} c, {0} elements) {{\n"
        "  if (c >= 0 && c <= elements - 1) return (Index)c;\n{1}}}\n",
        real_, outside);
  }

  std::string cubic_text() const {
    return fmt::format(
        "DEVICE {0} cubic({0} t) {{\n"
        "  const {0} a = -0.75f;\n"
        "  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;\n"
        "  return ((t - 5) * t + 8) * t * a - 4 * a;\n"
        "}}\n",
        real_);
  }

  // Declares "at<axis>" and "w<axis>": the neighbours along the axis and their weights.
  void write_axis(int64_t axis) {
    const std::string size = fmt::format("({}){}", real_, extent(axis));
    w_.line("Index at{0}[{1}];", axis, taps());
    w_.line("{0} w{1}[{2}];", type_, axis, taps());
    w_.open("");
    // Coordinates run from the innermost axis outwards.
    w_.line("const {} normalized = {};", real_, load(grid_, "grid", fmt::format("point + {}", rank() - 1 - axis)));
    w_.line("{} c = {};", real_,
            is_aligned_ ? fmt::format("(normalized + 1) / 2 * ({} - 1)", size)
                        : fmt::format("((normalized + 1) * {} - 1) / 2", size));
    if (mode_ == "nearest") w_.line("c = rint(c);");
    if (padding_ != "zeros") {
      const std::string nearest = fmt::format("c < 0 ? 0 : c > {0} - 1 ? {0} - 1 : c", size);
      w_.line("if (c < {} || c > {}) c = {};", low(), high(size),
              padding_ == "border" ? nearest : fmt::format("reflected(c, {})", size));
      w_.line("if (isnan(c)) c = 0;");
    }
    if (mode_ == "nearest") {
      w_.line("at{}[0] = index_of(c, {});", axis, size);
      w_.line("w{}[0] = 1;", axis);
    } else {
      write_neighbours(axis, size);
    }
    w_.close();
  }

  void write_neighbours(int64_t axis, const std::string& size) {
    w_.line("const {0} left = floor(c), f = c - left;", real_);
    if (mode_ == "linear") {
      for (int k = 0; k < 2; ++k) w_.line("at{0}[{1}] = index_of(left + {1}, {2});", axis, k, size);
      // The same element twice: even an infinite one is itself then.
      w_.line("const i32 is_one = at{0}[0] == at{0}[1];", axis);
      w_.line("w{0}[0] = is_one ? 1 : ({1})(1 - f);", axis, type_);
      w_.line("w{0}[1] = ({1})f;", axis, type_);
      w_.line("if (is_one) at{}[1] = -1;", axis);
      return;
    }
    constexpr const char* kDistances[] = {"f + 1", "f", "1 - f", "2 - f"};
    for (int k = 0; k < 4; ++k) {
      w_.line("at{0}[{1}] = index_of(left + {2}, {3});", axis, k, k - 1, size);
      w_.line("w{}[{}] = ({})cubic({});", axis, k, type_, kDistances[k]);
    }
  }

  // What lies outside of an image that is padded with zeros is left out.
  void write_mix() {
    w_.line("{} total = 0;", type_);
    std::string place, weight;
    for (int64_t axis = 0; axis < rank(); ++axis) {
      w_.open("for (i32 k{0} = 0; k{0} < {1}; ++k{0})", axis, taps());
      w_.line("if (at{0}[k{0}] < 0) continue;", axis);
      const std::string at = fmt::format("at{0}[k{0}]", axis);
      place = axis == 0 ? at : fmt::format("({}) * {} + {}", place, lit(extent(axis)), at);
      weight += fmt::format("{0}w{1}[k{1}]", axis == 0 ? "" : " * ", axis);
    }
    w_.line("total += {} * {};", weight, load(dtype_, "x", "plane + " + place));
    for (int64_t axis = 0; axis < rank(); ++axis) w_.close();
  }

  const KernelCall& call_;
  Writer w_;
  DType dtype_, grid_;
  std::string_view type_, real_;
  std::string mode_, padding_;
  bool is_aligned_;
  Dims x_, y_;
};

}  // namespace

Emitted emit_grid_sample(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!is_float(dtype) || !can_compute(dtype, target)) return refused("dtype");
  if (!can_compute(call.inputs[1].dtype(), target)) return refused("dtype of the grid");
  return GridWriter(call, target).write();
}

}  // namespace autograph::gpu
