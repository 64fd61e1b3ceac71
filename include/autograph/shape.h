// Shapes whose dims may be numbers, names such as `batch`, or unknown; and the type of a value: tensor, sequence,
// optional.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/dtype.h"

namespace autograph {

/// Extents of a concrete tensor, outermost first.
using Dims = std::vector<int64_t>;

/// One extent: a number, a symbol such as `batch` or `2*batch`, or unknown.
///
/// Symbolic arithmetic builds the text of an expression; equal texts are the same extent. Numbers are bound per run, by
/// inferring again from the concrete input shapes, so expressions never need to be evaluated.
class Dim {
 public:
  /// An unknown extent, equal to no other.
  Dim() = default;
  /// A known extent of `value` >= 0; -1 makes an unknown one, as in files.
  Dim(int64_t value) : value_(value) {}  // NOLINT: numbers convert to dims on purpose
  /// A named extent.
  static Dim symbol(std::string name);
  /// An unknown extent.
  static Dim unknown() { return {}; }

  /// Is it a number?
  bool is_known() const { return value_ >= 0; }
  /// Is it neither a number nor named?
  bool is_unknown() const { return value_ < 0 && !name_; }
  /// Was it made from a number below -1, which is a mistake? It counts as unknown.
  bool is_negative() const { return value_ < -1; }
  /// The number; throws InternalError when it has none.
  int64_t value() const;
  /// The number, or `otherwise`.
  int64_t value_or(int64_t otherwise) const { return is_known() ? value_ : otherwise; }
  /// The expression of a symbolic extent; "" for the others.
  std::string_view name() const { return name_ ? std::string_view(*name_) : std::string_view(); }

  /// Same number or same expression; unknown extents equal only themselves as "unknown" (for printing and tests).
  bool operator==(const Dim& other) const;
  /// Are both certainly the same extent? False when either is unknown.
  bool same_as(const Dim& other) const { return !is_unknown() && *this == other; }

 private:
  int64_t value_ = -1;
  std::shared_ptr<const std::string> name_;
};

/// Arithmetic that stays exact on numbers (throws ShapeError on overflow) and builds expressions otherwise.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
/// Division rounding down; `divisor` > 0.
Dim floor_div(const Dim& a, int64_t divisor);

/// "3", "batch" or "?".
std::string to_string(const Dim& dim);

/// A list of extents, outermost first, or a shape of unknown rank.
class Shape {
 public:
  /// A scalar.
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  /// All extents known.
  static Shape of(const Dims& dims) { return Shape(std::vector<Dim>(dims.begin(), dims.end())); }
  /// Known rank, unknown extents.
  static Shape of_rank(int64_t rank) { return Shape(std::vector<Dim>(static_cast<size_t>(rank))); }
  /// Nothing known.
  static Shape unknown() {
    Shape shape;
    shape.has_rank_ = false;
    return shape;
  }

  /// Is the rank known?
  bool has_rank() const { return has_rank_; }
  /// Number of dims; throws InternalError when unknown.
  int64_t rank() const;
  /// Extent of `axis`, 0 <= axis < rank.
  const Dim& operator[](int64_t axis) const { return dims_[static_cast<size_t>(axis)]; }
  Dim& operator[](int64_t axis) { return dims_[static_cast<size_t>(axis)]; }
  /// All extents; empty when the rank is unknown.
  const std::vector<Dim>& dims() const { return dims_; }
  std::vector<Dim>& dims() { return dims_; }
  /// Are all extents numbers?
  bool is_static() const;
  /// The extents as numbers; throws InternalError unless is_static().
  Dims static_dims() const;
  /// Number of elements, when all extents are numbers; throws ShapeError on overflow.
  std::optional<int64_t> num_elements() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<Dim> dims_;
  bool has_rank_ = true;
};

/// "[2,batch,?]", or "[...]" for unknown rank.
std::string to_string(const Shape& shape);

/// "[2,3]".
std::string to_string(const Dims& dims);

/// What a value is: a tensor of some dtype and shape, a sequence, an optional, or nothing.
class Type {
 public:
  /// The kinds of value.
  enum class Kind : uint8_t {
    none,      ///< Not known, or absent.
    tensor,    ///< A tensor.
    sequence,  ///< A list of values of one type.
    optional,  ///< A value of one type, or nothing.
  };

  /// Kind::none.
  Type() = default;
  /// A tensor type.
  Type(DType dtype, Shape shape) : kind_(Kind::tensor), dtype_(dtype), shape_(std::move(shape)) {}
  /// A list of `element`s.
  static Type sequence(Type element) { return Type(Kind::sequence, std::move(element)); }
  /// `element` or nothing.
  static Type optional(Type element) { return Type(Kind::optional, std::move(element)); }

  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_sequence() const { return kind_ == Kind::sequence; }
  bool is_optional() const { return kind_ == Kind::optional; }
  /// Element dtype of a tensor; undefined for other kinds.
  DType dtype() const { return dtype_; }
  /// Shape of a tensor.
  const Shape& shape() const { return shape_; }
  /// Element type of a sequence or optional; throws InternalError for other kinds.
  const Type& element() const;
  /// Is it a tensor with all extents known?
  bool is_static() const { return is_tensor() && shape_.is_static(); }

  bool operator==(const Type& other) const;

 private:
  Type(Kind kind, Type element) : kind_(kind), element_(std::make_shared<const Type>(std::move(element))) {}
  Kind kind_ = Kind::none;
  DType dtype_ = DType::undefined;
  Shape shape_;
  std::shared_ptr<const Type> element_;
};

/// "f32[2,batch]", "seq(f32[?])", "optional(i64[])" or "none".
std::string to_string(const Type& type);

}  // namespace autograph
