#include "autograph/shape.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_int.h"
#include "base/join.h"

namespace autograph {
namespace {

// Expressions longer than this are not worth reading: the extent becomes unknown.
constexpr size_t kMaxExpressionLength = 64;

Dim expression(const Dim& a, char op, const Dim& b) {
  if (a.is_unknown() || b.is_unknown()) return Dim::unknown();
  const auto operand = [](const Dim& d) {
    const std::string text = to_string(d);
    return text.find_first_of("+-*/") == std::string::npos ? text : "(" + text + ")";
  };
  std::string text = operand(a) + op + operand(b);
  if (text.size() > kMaxExpressionLength) return Dim::unknown();
  return Dim::symbol(std::move(text));
}

// Numbers first, then by text, so that a*b and b*a are the same expression.
bool in_order(const Dim& a, const Dim& b) {
  if (a.is_known() != b.is_known()) return a.is_known();
  return to_string(a) <= to_string(b);
}

}  // namespace

Dim Dim::symbol(std::string name) {
  AG_CHECK(!name.empty(), "a symbolic dim needs a name");
  Dim dim;
  dim.name_ = std::make_shared<const std::string>(std::move(name));
  return dim;
}

int64_t Dim::value() const {
  AG_CHECK(is_known(), "dim {} has no value", to_string(*this));
  return value_;
}

bool Dim::operator==(const Dim& other) const { return value_ == other.value_ && name() == other.name(); }

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return checked_add(a.value(), b.value(), "dim");
  if (a.is_known() && a.value() == 0) return b;
  if (b.is_known() && b.value() == 0) return a;
  return in_order(a, b) ? expression(a, '+', b) : expression(b, '+', a);
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    AG_CHECK_USER(a.value() >= b.value(), ShapeError, "[dim] size: {} - {} is negative", a.value(), b.value());
    return a.value() - b.value();
  }
  if (b.is_known() && b.value() == 0) return a;
  if (a.same_as(b)) return 0;
  return expression(a, '-', b);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return checked_mul(a.value(), b.value(), "dim");
  for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
    if (x.is_known() && x.value() == 0) return 0;
    if (x.is_known() && x.value() == 1) return y;
  }
  return in_order(a, b) ? expression(a, '*', b) : expression(b, '*', a);
}

Dim floor_div(const Dim& a, int64_t divisor) {
  AG_CHECK(divisor > 0, "divisor {}", divisor);
  if (divisor == 1) return a;
  if (a.is_known()) return a.value() / divisor;
  return expression(a, '/', divisor);
}

std::string to_string(const Dim& dim) {
  if (dim.is_known()) return std::to_string(dim.value());
  return dim.is_unknown() ? "?" : std::string(dim.name());
}

int64_t Shape::rank() const {
  AG_CHECK(has_rank_, "rank of a shape of unknown rank");
  return static_cast<int64_t>(dims_.size());
}

bool Shape::is_static() const {
  return has_rank_ && std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.is_known(); });
}

Dims Shape::static_dims() const {
  AG_CHECK(is_static(), "shape {} is not static", to_string(*this));
  Dims dims;
  dims.reserve(dims_.size());
  for (const Dim& d : dims_) dims.push_back(d.value());
  return dims;
}

std::optional<int64_t> Shape::num_elements() const {
  if (!is_static()) return std::nullopt;
  return checked_product(static_dims(), "shape");
}

std::string to_string(const Shape& shape) {
  if (!shape.has_rank()) return "[...]";
  std::vector<std::string> parts;
  for (const Dim& d : shape.dims()) parts.push_back(to_string(d));
  return bracketed(parts);
}

std::string to_string(const Dims& dims) { return bracketed(dims); }

const Type& Type::element() const {
  AG_CHECK(element_, "{} has no element type", to_string(*this));
  return *element_;
}

bool Type::operator==(const Type& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == Kind::tensor) return dtype_ == other.dtype_ && shape_ == other.shape_;
  return kind_ == Kind::none || *element_ == *other.element_;
}

std::string to_string(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::none: return "none";
    case Type::Kind::tensor: return fmt::format("{}{}", to_string(type.dtype()), to_string(type.shape()));
    case Type::Kind::sequence: return fmt::format("seq({})", to_string(type.element()));
    case Type::Kind::optional: return fmt::format("optional({})", to_string(type.element()));
  }
  return "none";
}

}  // namespace autograph
