// det, by elimination with row exchanges: one item a small matrix, a group for a larger one, which lies in local
// memory.
#include <algorithm>

#include "backends/gpu/emit/families.h"

namespace autograph::gpu {
namespace {

constexpr int64_t kMostOfItem = 4;  // rows: its elements are registers
constexpr size_t kLargestLocal = size_t{32} * 1024;

class DetWriter {
 public:
  DetWriter(const KernelCall& call, const Target& target)
      : w_(target),
        dtype_(call.inputs[0].dtype()),
        real_(target.has_f64 ? DType::f64 : DType::f32),
        type_(compute_type(real_)),
        n_(call.input_dims(0).back()),
        matrices_(num_elements(call.output_dims(0))) {
    cover_operands(w_.index(), call);
  }

  // Rows and columns, and for each row its factor.
  size_t local_bytes() const { return static_cast<size_t>(n_ * n_ + n_) * compute_bytes(real_); }
  bool is_of_item() const { return n_ <= kMostOfItem; }

  Emitted write() {
    if (is_of_item()) {
      write_by_item();
    } else {
      write_by_group();
    }
    return w_.finish();
  }

 private:
  std::vector<Parameter> parameters() const {
    return {input_parameter("x", storage_type(dtype_), 0), output_parameter("y", storage_type(dtype_))};
  }
  void write_store(std::string_view at, std::string_view value) {
    w_.line("{}", store(dtype_, "y", at, fmt::format("({}){}", compute_type(dtype_), value)));
  }

  // Without loops, so that all places are known: rows are exchanged with each one that has a larger pivot, which brings
  // the first of the largest ones up, as in the reference.
  void write_by_item() {
    w_.begin_items(parameters(), matrices_);
    for (int64_t k = 0; k < n_ * n_; ++k) {
      w_.line("{} a{}_{} = {};", type_, k / n_, k % n_,
              load(dtype_, "x", fmt::format("i * {} + {}", w_.index().literal(n_ * n_), k)));
    }
    w_.line("{} product = 1;", type_);
    w_.line("i32 is_singular = 0;");
    for (int64_t step = 0; step < n_; ++step) write_step(step);
    write_store("i", "(is_singular ? 0 : product)");
    w_.end();
  }

  void write_step(int64_t step) {
    for (int64_t row = step + 1; row < n_; ++row) {
      w_.open("if (fabs(a{1}_{0}) > fabs(a{0}_{0}))", step, row);
      w_.line("product = -product;");
      for (int64_t column = step; column < n_; ++column) {
        w_.line("const {0} s{3} = a{1}_{3}; a{1}_{3} = a{2}_{3}; a{2}_{3} = s{3};", type_, step, row, column);
      }
      w_.close();
    }
    w_.line("if (a{0}_{0} == 0) is_singular = 1;", step);
    w_.line("product *= a{0}_{0};", step);
    for (int64_t row = step + 1; row < n_; ++row) {
      w_.line("const {0} f{1}_{2} = a{2}_{1} / a{1}_{1};", type_, step, row);
      for (int64_t column = step + 1; column < n_; ++column) {
        w_.line("a{1}_{2} -= f{0}_{1} * a{0}_{2};", step, row, column);
      }
    }
  }

  void write_by_group() {
    const size_t size = group_size_for(w_.target(), n_ * n_);
    const std::string n = w_.index().literal(n_), all = w_.index().literal(n_ * n_);
    w_.begin_groups(parameters(), matrices_, size);
    w_.line("LOCAL {} a[{}], factors[{}];", type_, n_ * n_, n_);
    w_.line("for (Index k = t; k < {0}; k += {1}) a[k] = {2};", all, size,
            load(dtype_, "x", fmt::format("g * {} + k", all)));
    w_.line("BARRIER();");
    w_.line("{} product = 1;", type_);
    w_.open("for (Index step = 0; step < {}; ++step)", n);
    // All items of a group find the same.
    w_.line("Index pivot = step;");
    w_.open("for (Index row = step + 1; row < {}; ++row)", n);
    w_.line("if (fabs(a[row * {0} + step]) > fabs(a[pivot * {0} + step])) pivot = row;", n);
    w_.close();
    w_.line("const {} largest = a[pivot * {} + step];", type_, n);
    w_.line("product = largest == 0 ? 0 : (pivot == step ? product : -product) * largest;");
    w_.line("if (largest == 0) break;");
    w_.line("BARRIER();");
    w_.open("for (Index column = step + t; column < {} && pivot != step; column += {})", n, size);
    w_.line("const {0} above = a[step * {1} + column];", type_, n);
    w_.line("a[step * {0} + column] = a[pivot * {0} + column];", n);
    w_.line("a[pivot * {} + column] = above;", n);
    w_.close();
    w_.line("BARRIER();");
    w_.line("for (Index row = step + 1 + t; row < {0}; row += {1}) factors[row] = a[row * {0} + step] / largest;", n,
            size);
    w_.line("BARRIER();");
    w_.line("const Index left = {} - 1 - step;", n);
    w_.open("for (Index k = t; k < left * left; k += {})", size);
    w_.line("const Index row = step + 1 + k / left, column = step + 1 + k % left;");
    w_.line("a[row * {0} + column] -= factors[row] * a[step * {0} + column];", n);
    w_.close();
    w_.line("BARRIER();");
    w_.close();
    w_.open("if (t == 0)");
    write_store("g", "product");
    w_.close();
    w_.end();
  }

  Writer w_;
  DType dtype_, real_;
  std::string_view type_;
  int64_t n_, matrices_;
};

}  // namespace

Emitted emit_det(const KernelCall& call, const Target& target) {
  if (!can_compute(call.inputs[0].dtype(), target)) return refused("dtype");
  DetWriter writer(call, target);
  const size_t room = std::min(target.local_bytes, kLargestLocal);
  if (!writer.is_of_item() && writer.local_bytes() > room) return refused("matrices that local memory has no room for");
  return writer.write();
}

}  // namespace autograph::gpu
