#include "backends/gpu/emit/signal/transform.h"

#include <numbers>

namespace autograph::gpu {
namespace {

constexpr int64_t kLongestSum = 64;      // signals up to this length are summed in one step
constexpr int64_t kLargestProduct = 16;  // of factors that are one step: fewer steps, of more terms
constexpr int64_t kMostTerms = 4096;     // of all steps

// The factors of the length, each a step.
std::vector<int64_t> steps_of(int64_t length) {
  if (length <= kLongestSum) return {length};
  std::vector<int64_t> steps;
  for (int64_t factor = 2; length > 1; ++factor) {
    if (factor * factor > length) factor = length;
    for (; length % factor == 0; length /= factor) {
      if (steps.empty() || steps.back() * factor > kLargestProduct) {
        steps.push_back(factor);
      } else {
        steps.back() *= factor;
      }
    }
  }
  return steps;
}

// A step makes transforms of length `done * factor` of those of length `done`: each element is a sum of `factor` terms.
// What belongs to the transform of every m-th element, beginning at q, lies behind what belongs to those before it
// (Stockham), so that the last step leaves the elements in their order.
class TransformWriter {
 public:
  TransformWriter(Writer& writer, const Transform& transform)
      : w_(writer), t_(transform), real_(transform_dtype(writer.target())), type_(compute_type(real_)) {
    w_.index().cover(2 * t_.lines * t_.length);
  }

  void write() {
    const std::vector<int64_t> steps = steps_of(t_.length);
    const auto buffers = static_cast<int64_t>(std::min<size_t>(steps.size() - 1, 2));
    w_.scratch_bytes = complex_bytes() * static_cast<size_t>(t_.length * (1 + buffers * t_.lines));
    write_roots();
    int64_t done = 1;
    for (size_t k = 0; k < steps.size(); ++k) {
      write_step(k, done, steps[k]);
      done *= steps[k];
    }
  }

 private:
  std::string lit(int64_t value) const { return w_.index().literal(value); }
  size_t complex_bytes() const { return 2 * compute_bytes(real_); }
  Parameter roots() const { return scratch_parameter("roots", type_); }
  // What step `k` leaves: two places take turns.
  Parameter left_by(const char* name, size_t k) const {
    const int64_t before = t_.length * (1 + static_cast<int64_t>(k % 2) * t_.lines);
    return scratch_parameter(name, type_, complex_bytes() * static_cast<size_t>(before));
  }

  void write_roots() {
    w_.begin_items({roots()}, t_.length);
    w_.line("const {0} angle = {1} * ({0})i;", type_,
            literal(real_, t_.direction * 2 * std::numbers::pi / static_cast<double>(t_.length)));
    w_.line("roots[2 * i] = cos(angle);");
    w_.line("roots[2 * i + 1] = sin(angle);");
    w_.end();
  }

  void write_step(size_t number, int64_t done, int64_t factor) {
    const bool is_first = number == 0, is_last = done * factor == t_.length;
    std::vector<Parameter> parameters;
    if (is_first) {
      parameters = t_.inputs;
    } else {
      parameters.push_back(left_by("from", number - 1));
    }
    parameters.push_back(roots());
    parameters.push_back(is_last ? t_.output : left_by("to", number));
    const int64_t elements = is_last ? t_.count : t_.length;
    w_.begin_items(parameters, t_.lines * elements);
    w_.line("const Index line = i / {0}, o = i % {0};", lit(elements));
    w_.line("const Index k = o % {0}, first = o / {0} * {1} + o % {1};", lit(done * factor), lit(done));
    w_.line("const Index turns = k * {};", lit(t_.length / (done * factor)));
    w_.line("Index turn = 0;");
    w_.line("{} re = 0, im = 0;", type_);
    w_.open("for (Index term = 0; term < {}; ++term)", lit(factor));
    w_.line("const Index n = first + term * {};", lit(t_.length / factor));
    write_term(is_first);
    w_.line("turn += turns;");
    w_.line("if (turn >= {0}) turn -= {0};", lit(t_.length));
    w_.close();
    if (is_last) {
      t_.write();
    } else {
      w_.line("to[2 * i] = re;");
      w_.line("to[2 * i + 1] = im;");
    }
    w_.end();
  }

  void write_term(bool is_first) {
    if (is_first) {
      t_.read();
    } else {
      w_.line("const Index at = 2 * (line * {} + n);", lit(t_.length));
      w_.line("const {} x_re = from[at], x_im = from[at + 1];", type_);
    }
    w_.line("const {} cosine = roots[2 * turn], sine = roots[2 * turn + 1];", type_);
    const bool is_real = is_first && t_.is_real;
    w_.line("re += x_re * cosine{};", is_real ? "" : " - x_im * sine");
    w_.line("im += x_re * sine{};", is_real ? "" : " + x_im * cosine");
  }

  Writer& w_;
  const Transform& t_;
  DType real_;
  std::string_view type_;
};

}  // namespace

DType transform_dtype(const Target& target) { return target.has_f64 ? DType::f64 : DType::f32; }

std::string why_not_length(int64_t length) {
  int64_t terms = 0;
  for (const int64_t step : steps_of(length)) terms += step;
  return terms > kMostTerms ? fmt::format("length {}, which has a large prime factor", length) : "";
}

void write_transform(Writer& writer, const Transform& transform) { TransformWriter(writer, transform).write(); }

}  // namespace autograph::gpu
