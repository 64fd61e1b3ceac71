// roi_align: one work item an output element, which reads the samples of its bin.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/checked_index.h"

namespace autograph::gpu {
namespace {

// In the order of the corners of a region.
struct RegionAxis {
  const char* name;
  size_t low, high;  // corners
  size_t axis;       // of x and y
};
constexpr RegionAxis kRows{"rows", 1, 3, 2};
constexpr RegionAxis kColumns{"columns", 0, 2, 3};
constexpr int64_t kMostSamples = 1 << 16;  // of a bin along an axis

class RoiWriter {
 public:
  RoiWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        dtype_(call.inputs[0].dtype()),
        type_(compute_type(dtype_)),
        real_(target.has_f64 ? DType::f64 : DType::f32),
        ratio_(call.attributes.integer("sampling_ratio")),
        is_shifted_(call.attributes.text("coordinate_transformation_mode") == "half_pixel"),
        x_(call.input_dims(0)),
        y_(call.output_dims(0)) {
    cover_operands(w_.index(), call);
    w_.index().cover(kMostSamples);
    w_.fault = fmt::format("[roi_align] regions: expected images 0..{} and at most {} elements per bin, got ",
                           x_[0] - 1, kMostSamples);
  }

  Emitted write() {
    w_.function(neighbours_text());
    const std::string_view stored = storage_type(dtype_);
    w_.begin_items({input_parameter("x", stored, 0), input_parameter("regions", stored, 1),
                    input_parameter("images", "i64", 2), output_parameter("y", stored), fault_parameter("faults")},
                   num_elements(y_));
    w_.line("const Index region = {};", coordinate(w_.index(), "i", y_, 0));
    w_.line("const i64 image = images[region];");
    w_.open("if (image < 0 || image >= {})", x_[0]);
    write_fault(w_, "image", "return");
    w_.close();
    w_.line("const Index plane = ((Index)image * {} + {}) * {};", lit(x_[1]), coordinate(w_.index(), "i", y_, 1),
            lit(x_[2] * x_[3]));
    for (const RegionAxis& axis : {kRows, kColumns}) write_axis(axis);
    write_samples();
    w_.end();
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  std::string number(double value) const { return literal(real_, value); }

  // Two neighbours of a coordinate and how far behind the first one it lies; 0 where it is too far outside.
  std::string neighbours_text() const {
    return fmt::format(
        "DEVICE i32 find_neighbours({0} c, Index elements, Index* low, Index* high, {1}* fraction) {{\n"
        "  if (!(c >= -1 && c <= elements) || elements < 1) return 0;\n"
        "  c = c < 0 ? 0 : c > elements - 1 ? elements - 1 : c;\n"
        "  *low = (Index)c;\n"
        "  *high = *low + 1 < elements ? *low + 1 : *low;\n"
        "  *fraction = ({1})(c - floor(c));\n"
        "  return 1;\n"
        "}}\n",
        compute_type(real_), type_);
  }

  // Declares where the region's bin begins along an axis, how large it is, and how many samples it has.
  void write_axis(const RegionAxis& axis) {
    const std::string_view real = compute_type(real_);
    const std::string scale = number(static_cast<double>(call_.attributes.real("spatial_scale")));
    const std::string shift = number(is_shifted_ ? 0.5 : 0.0);
    const auto corner = [&](size_t k) {
      return fmt::format("{} * {} - {}", load(dtype_, "regions", fmt::format("region * 4 + {}", k)), scale, shift);
    };
    const int64_t bins = y_[axis.axis];
    w_.line("const {} {}_first = {};", real, axis.name, corner(axis.low));
    w_.line("{} {}_bin = {} - {}_first;", real, axis.name, corner(axis.high), axis.name);
    if (!is_shifted_) w_.line("if ({0}_bin < 1) {0}_bin = 1;", axis.name);
    w_.line("{}_bin /= {};", axis.name, number(static_cast<double>(bins)));
    if (ratio_ > 0) {
      w_.line("const Index {}_samples = {};", axis.name, lit(ratio_));
    } else {
      w_.line("const {0} {1}_wanted = ceil({1}_bin);", real, axis.name);
      w_.open("if (!({}_wanted <= {}))", axis.name, number(static_cast<double>(kMostSamples)));
      write_fault(w_,
                  fmt::format("{0}_wanted < {1} ? (i64){0}_wanted : {2}L", axis.name, number(1e18), kMostSamples + 1),
                  "return");
      w_.close();
      w_.line("const Index {0}_samples = {0}_wanted > 0 ? (Index){0}_wanted : 0;", axis.name);
    }
    w_.line("const Index {}_place = {};", axis.name, coordinate(w_.index(), "i", y_, axis.axis));
  }

  // A loop over the samples along an axis that lie inside the image.
  void open_samples(const RegionAxis& axis) {
    w_.open("for (Index k = 0; k < {}_samples; ++k)", axis.name);
    w_.line("Index {0}_low, {0}_high;", axis.name);
    w_.line("{} {}_fraction;", type_, axis.name);
    w_.line("const {} c = {}_first + {}_bin * ({}_place + (k + {}) / {}_samples);", compute_type(real_), axis.name,
            axis.name, axis.name, number(0.5), axis.name);
    w_.line("if (!find_neighbours(c, {1}, &{0}_low, &{0}_high, &{0}_fraction)) continue;", axis.name,
            lit(x_[axis.axis]));
  }

  void write_samples() {
    w_.line("{} total = 0, best = -INFINITY, found = 0;", type_);
    open_samples(kRows);
    open_samples(kColumns);
    w_.line("found += 1;");
    for (const char* row : {"low", "high"}) {
      for (const char* column : {"low", "high"}) {
        const auto weight = [](const char* axis, const char* which) {
          return fmt::format("({}{}_fraction)", which[0] == 'l' ? "1 - " : "", axis);
        };
        w_.open("");
        w_.line("const {} v = {} * {} * {};", type_, weight("rows", row), weight("columns", column),
                load(dtype_, "x", fmt::format("plane + rows_{} * {} + columns_{}", row, lit(x_[3]), column)));
        w_.line("total += v;");
        w_.line("if (v > best) best = v;");
        w_.close();
      }
    }
    w_.close();
    w_.close();
    w_.line("const {0} count = ({0})rows_samples * ({0})columns_samples;", type_);
    // Samples outside the image are zeros, and take part in the maximum.
    w_.line("if (found == 0 || (found < count && best < 0)) best = 0;");
    const bool is_largest = call_.attributes.text("mode") != "avg";
    w_.line("{}", store(dtype_, "y", "i", is_largest ? "best" : "total / (count > 1 ? count : 1)"));
  }

  const KernelCall& call_;
  Writer w_;
  DType dtype_;
  std::string_view type_;
  DType real_;  // of coordinates
  int64_t ratio_;
  bool is_shifted_;
  Dims x_, y_;
};

}  // namespace

Emitted emit_roi_align(const KernelCall& call, const Target& target) {
  if (!can_compute(call.inputs[0].dtype(), target)) return refused("dtype");
  return RoiWriter(call, target).write();
}

}  // namespace autograph::gpu
