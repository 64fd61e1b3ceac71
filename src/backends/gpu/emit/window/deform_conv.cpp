// deform_conv: a first kernel takes the samples, which are a matrix of taps by positions for each image; the weights
// times that matrix are the result.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/product.h"
#include "backends/gpu/emit/text/window.h"
#include "base/checked_int.h"

namespace autograph::gpu {
namespace {

constexpr size_t kImages = 0, kWeights = 1, kOffsets = 2, kBias = 3, kMask = 4;
// They share the coordinates of a tap, which take longer to find than an element to read.
constexpr int64_t kChannelsOfItem = 8;

class DeformWriter {
 public:
  DeformWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        dtype_(call.inputs[kImages].dtype()),
        type_(product_type(dtype_)),
        real_(target.has_f64 ? DType::f64 : DType::f32),
        x_(call.input_dims(kImages)),
        y_(call.output_dims(0)),
        offset_groups_(call.attributes.integer("offset_group")) {
    const Dims weights = call.input_dims(kWeights);
    axes_ = resolve_windows(window_spec(call.attributes, Dims(weights.begin() + 2, weights.end())),
                            std::span<const int64_t>(x_).subspan(2));
    taps_ = num_elements(kernel_extents(axes_));
    positions_ = num_elements(out_extents(axes_));
    cover_operands(w_.index(), call);
    cover_windows(w_.index(), axes_);
    w_.index().cover(samples());
  }

  Emitted write() {
    if (num_elements(y_) == 0) return w_.finish();
    w_.scratch_bytes = static_cast<size_t>(samples()) * compute_bytes(dtype_);
    write_samples();
    write_result();
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  int64_t samples() const { return checked_mul(checked_mul(x_[0] * x_[1], taps_, "samples"), positions_, "samples"); }
  std::string_view stored() const { return storage_type(dtype_); }
  Parameter samples_parameter() const { return scratch_parameter("samples", type_); }

  // An item has a tap at a position, for some channels of a group of offsets.
  void write_samples() {
    const int64_t channels = x_[1] / offset_groups_;
    const int64_t blocks = (channels + kChannelsOfItem - 1) / kChannelsOfItem;
    const Dims items{x_[0], offset_groups_, blocks, taps_, positions_};
    std::vector<Parameter> parameters{input_parameter("x", stored(), kImages),
                                      input_parameter("offsets", stored(), kOffsets)};
    if (call_.has_input(kMask)) parameters.push_back(input_parameter("mask", stored(), kMask));
    parameters.push_back(samples_parameter());
    w_.begin_items(parameters, num_elements(items));
    const auto part_of_item = [&](const char* name, size_t axis) {
      w_.line("const Index {} = {};", name, coordinate(w_.index(), "i", items, axis));
    };
    part_of_item("n", 0);
    part_of_item("group", 1);
    part_of_item("tap", 3);
    part_of_item("o", 4);
    w_.line("const Index field = (n * {} + group) * {} + tap;", lit(offset_groups_), lit(taps_));
    for (size_t axis = 0; axis < axes_.size(); ++axis) write_neighbours(axis);
    w_.line("const Index first = ({}) * {};", coordinate(w_.index(), "i", items, 2), lit(kChannelsOfItem));
    w_.open("for (Index c = first; c < first + {0} && c < {1}; ++c)", lit(kChannelsOfItem), lit(channels));
    w_.line("const Index plane = n * {} + group * {} + c;", lit(x_[1]), lit(channels));
    write_mix();
    const std::string scale =
        call_.has_input(kMask) ? load(dtype_, "mask", fmt::format("field * {} + o", lit(positions_))) + " * " : "";
    w_.line("samples[(plane * {} + tap) * {} + o] = {}total;", lit(taps_), lit(positions_), scale);
    w_.close();
    w_.end();
  }

  // Declares "at<axis>" and "w<axis>": both neighbours of the tap along the axis, -1 for one that does not count, and
  // their weights.
  void write_neighbours(size_t axis) {
    const std::string_view real = compute_type(real_);
    const WindowAxis& window = axes_[axis];
    w_.line("Index at{}[2];", axis);
    w_.line("{} w{}[2];", type_, axis);
    w_.open("");
    w_.line("const {} c = ({})(({}) * {} + ({}) * {} - {}) + {};", real, real,
            coordinate(w_.index(), "o", out_extents(axes_), axis), lit(window.stride),
            coordinate(w_.index(), "tap", kernel_extents(axes_), axis), lit(window.dilation), lit(window.pad_begin),
            load(dtype_, "offsets", fmt::format("(field * {} + {}) * {} + o", axes_.size(), axis, lit(positions_))));
    w_.line("const {0} low = floor(c), weight = c - low;", real);
    for (int k = 0; k < 2; ++k) {
      w_.line("w{}[{}] = ({}){};", axis, k, type_, k == 0 ? "(1 - weight)" : "weight");
      // A coordinate that is NaN lies outside.
      w_.line("at{0}[{1}] = low + {1} >= 0 && low + {1} < {2} && w{0}[{1}] != 0 ? (Index)low + {1} : -1;", axis, k,
              literal(real_, static_cast<double>(window.in)));
    }
    w_.close();
  }

  // Declares "total": what the neighbours are together.
  void write_mix() {
    w_.line("{} total = 0;", type_);
    std::string place, weight;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      w_.open("for (i32 k{0} = 0; k{0} < 2; ++k{0})", axis);
      w_.line("if (at{0}[k{0}] < 0) continue;", axis);
      const std::string at = fmt::format("at{0}[k{0}]", axis);
      place = axis == 0 ? at : fmt::format("({}) * {} + {}", place, lit(axes_[axis].in), at);
      weight += fmt::format("{0}w{1}[k{1}]", axis == 0 ? "" : " * ", axis);
    }
    const int64_t elements = num_elements(in_extents(axes_));
    w_.line("total += {} * {};", weight, load(dtype_, "x", fmt::format("plane * {} + {}", lit(elements), place)));
    for (size_t axis = 0; axis < axes_.size(); ++axis) w_.close();
  }

  // One product for each image and group.
  void write_result() {
    const int64_t groups = call_.attributes.integer("group");
    Product product;
    product.batches = x_[0] * groups;
    product.rows = y_[1] / groups;
    product.inner = x_[1] / groups * taps_;
    product.columns = positions_;
    product.type = type_;
    product.can_split = true;
    const auto weight_at = [&](const std::string& b, const std::string& m, const std::string& k) {
      return fmt::format("({} % {} * {} + {}) * {} + {}", b, lit(groups), lit(product.rows), m, lit(product.inner), k);
    };
    const auto sample_at = [&](const std::string& b, const std::string& k, const std::string& o) {
      return fmt::format("({} * {} + {}) * {} + {}", b, lit(product.inner), k, lit(positions_), o);
    };
    product.left = [&](const std::string& b, const std::string& m, const std::string& k) {
      return load(dtype_, "w", weight_at(b, m, k));
    };
    product.right = [&](const std::string& b, const std::string& k, const std::string& o) {
      return fmt::format("samples[{}]", sample_at(b, k, o));
    };
    if (dtype_ == DType::f32 && product.inner % 4 == 0) {
      product.left_four = [&](const std::string& b, const std::string& m, const std::string& k) {
        return fmt::format("&w[{}]", weight_at(b, m, k));
      };
    }
    if (type_ == "f32" && positions_ % 4 == 0) {
      product.right_four = [&](const std::string& b, const std::string& k, const std::string& o) {
        return fmt::format("&samples[{}]", sample_at(b, k, o));
      };
    }
    product.write = [&](const std::string& b, const std::string& m, const std::string& o, const std::string& sum) {
      w_.line("const Index channel = {} % {} * {} + {};", b, lit(groups), lit(product.rows), m);
      const std::string bias = call_.has_input(kBias) ? " + " + load(dtype_, "bias", "channel") : "";
      w_.line("{}",
              store(dtype_, "y", fmt::format("({} * {} + {}) * {} + {}", b, lit(product.rows), m, lit(positions_), o),
                    sum + bias));
    };
    std::vector<Parameter> parameters{input_parameter("w", stored(), kWeights), samples_parameter()};
    if (call_.has_input(kBias)) parameters.push_back(input_parameter("bias", stored(), kBias));
    parameters.push_back(output_parameter("y", stored()));
    write_product(w_, parameters, product);
  }

  const KernelCall& call_;
  Writer w_;
  DType dtype_;
  std::string type_;  // of sums
  DType real_;        // of coordinates, which are small differences of large numbers
  Dims x_, y_;
  int64_t offset_groups_;
  std::vector<WindowAxis> axes_;
  int64_t taps_ = 0, positions_ = 0;
};

}  // namespace

Emitted emit_deform_conv(const KernelCall& call, const Target& target) {
  if (!can_multiply(call.inputs[kImages].dtype(), target)) return refused("dtype");
  return DeformWriter(call, target).write();
}

}  // namespace autograph::gpu
