// dft: where lines of the input and of the output lie, and what half a spectrum stands for.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/signal/transform.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

constexpr size_t kLength = 1, kAxis = 2;

class DftWriter {
 public:
  DftWriter(const KernelCall& call, const Target& target, int64_t axis)
      : w_(target),
        dtype_(call.inputs[0].dtype()),
        real_(transform_dtype(target)),
        x_(call.input_dims(0)),
        y_(call.output_dims(0)),
        axis_(static_cast<size_t>(axis)),
        is_inverse_(call.attributes.flag("inverse")),
        length_(x_[axis_]) {
    if (call.has_input(kLength)) {
      length_ = known_integers(call, kLength)->front();
    } else if (makes_real()) {
      length_ = 2 * (x_[axis_] - 1);
    }
    for (size_t a = axis_ + 1; a + 1 < x_.size(); ++a) inner_ *= x_[a];
    cover_operands(w_.index(), call);
    // Places behind the end of the signal are computed, too.
    w_.index().cover(num_elements(x_) + 2 * inner_ * length_);
  }

  Emitted write() {
    if (num_elements(y_) == 0) return w_.finish();
    if (const std::string reason = why_not_length(length_); !reason.empty()) return refused(reason);
    const std::string_view stored = storage_type(dtype_);
    write_transform(w_, {.lines = num_elements(y_) / (y_[axis_] * y_.back()),
                         .length = length_,
                         .count = y_[axis_],
                         .direction = is_inverse_ ? 1 : -1,
                         .is_real = x_.back() == 1,
                         .inputs = {input_parameter("x", stored, 0)},
                         .output = output_parameter("y", stored),
                         .read = [this] { write_read(); },
                         .write = [this] { write_store(); }});
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  bool makes_real() const { return y_.back() == 1; }

  // Where element `at` of the line lies in a tensor.
  std::string place(const Dims& dims, const char* at) const {
    return fmt::format("((line / {0} * {1} + {2}) * {0} + line % {0}) * {3}", lit(inner_), lit(dims[axis_]), at,
                       dims.back());
  }

  // Beyond its end the signal is padded with zeros.
  void write_read() {
    const std::string_view type = compute_type(real_);
    if (makes_real()) {
      w_.line("const Index mirrored = n > {} ? {} - n : n;", lit(length_ / 2), lit(length_));
    } else {
      w_.line("const Index mirrored = n;");
    }
    w_.line("const Index at = {};", place(x_, "mirrored"));
    w_.line("const i32 is_inside = mirrored < {};", lit(x_[axis_]));
    w_.line("const {} x_re = is_inside ? {} : 0;", type, load(dtype_, "x", "at"));
    if (x_.back() == 1) return;
    w_.line("{} x_im = is_inside ? {} : 0;", type, load(dtype_, "x", "at + 1"));
    if (!makes_real()) return;
    // What is its own mirror image is real.
    w_.line("if (mirrored != n) x_im = -x_im;");
    w_.line("if (n == 0 || 2 * n == {}) x_im = 0;", lit(length_));
  }

  void write_store() {
    const std::string scale = is_inverse_ ? fmt::format(" / {}", literal(real_, static_cast<double>(length_))) : "";
    w_.line("const Index at = {};", place(y_, "k"));
    const auto write_part = [&](const char* at, const char* part) {
      w_.line("{}", store(dtype_, "y", at, fmt::format("({})({}{})", compute_type(dtype_), part, scale)));
    };
    write_part("at", "re");
    if (!makes_real()) write_part("at + 1", "im");
  }

  Writer w_;
  DType dtype_, real_;
  Dims x_, y_;
  size_t axis_;
  bool is_inverse_;
  int64_t length_;
  int64_t inner_ = 1;  // positions behind the axis
};

}  // namespace

Emitted emit_dft(const KernelCall& call, const Target& target) {
  if (!can_compute(call.inputs[0].dtype(), target)) return refused("dtype");
  for (const size_t slot : {kLength, kAxis}) {
    if (call.has_input(slot) && !call.constant(slot)) return refused("a length or an axis that is computed");
  }
  const int64_t axis = call.has_input(kAxis) ? known_integers(call, kAxis)->front() : -2;
  return DftWriter(call, target, front_axis(axis, std::ssize(call.input_dims(0)))).write();
}

}  // namespace autograph::gpu
