#include "backends/gpu/emit/text/product.h"

#include <algorithm>

namespace autograph::gpu {
namespace {

// A group of 16 x 16 items, of which each has `side x side` sums, 16 apart so that neighbours read neighbours.
constexpr int kItems = 16;
constexpr int kInner = 16;  // of a tile

// How large a tile is.
struct Tile {
  int rows = kItems;
  int columns = kItems;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Large tiles read less; small ones make more groups.
Tile choose_tile(const Product& product) {
  constexpr int64_t kGroupsThatFill = 128;
  Tile tile;
  if (product.rows > 32) tile.rows = 64;
  if (product.columns > 32) tile.columns = 64;
  const auto groups = [&] {
    return product.batches * ceil_div(product.rows, tile.rows) * ceil_div(product.columns, tile.columns);
  };
  if (tile.rows > kItems && groups() < kGroupsThatFill) tile.rows = kItems;
  if (tile.columns > kItems && groups() < kGroupsThatFill) tile.columns = kItems;
  return tile;
}

class ProductWriter {
 public:
  ProductWriter(Writer& writer, const Product& product)
      : w_(writer),
        p_(product),
        tile_(choose_tile(product)),
        rows_(lit(product.rows)),
        columns_(lit(product.columns)) {}

  void write(const std::vector<Parameter>& parameters) {
    const int64_t tiles_m = ceil_div(p_.rows, tile_.rows);
    const int64_t tiles_n = ceil_div(p_.columns, tile_.columns);
    w_.begin_groups(parameters, p_.batches * tiles_m * tiles_n, kItems * kItems);
    w_.line("const Index b = g / {};", lit(tiles_m * tiles_n));
    w_.line("const Index m0 = g / {} % {} * {};", lit(tiles_n), lit(tiles_m), tile_.rows);
    w_.line("const Index n0 = g % {} * {};", lit(tiles_n), tile_.columns);
    w_.line("const i32 tm = t / {};", kItems);
    w_.line("const i32 tn = t % {};", kItems);
    // One more than a row, so that a column lies in different banks.
    w_.line("LOCAL {} left[{}][{}];", p_.type, kInner, tile_.rows + 1);
    w_.line("LOCAL {} right[{}][{}];", p_.type, kInner, tile_.columns + 1);
    declare_sums();
    w_.open("for (Index k0 = 0; k0 < {}; k0 += {})", lit(p_.inner), kInner);
    load_left();
    load_right();
    w_.line("BARRIER();");
    multiply();
    w_.line("BARRIER();");
    w_.close();
    store();
    w_.end();
  }

 private:
  std::string lit(int64_t value) { return w_.index().literal(value); }
  int row_sums() const { return tile_.rows / kItems; }
  int column_sums() const { return tile_.columns / kItems; }

  // Names instead of an array: registers have no addresses.
  void declare_sums() {
    for (int r = 0; r < row_sums(); ++r) {
      for (int c = 0; c < column_sums(); ++c) w_.line("{} sum_{}_{} = 0;", p_.type, r, c);
    }
  }

  // Items take elements in turns, in the order in which they lie in memory.
  void load_left() {
    w_.open("for (i32 e = t; e < {}; e += {})", kInner * tile_.rows, kItems * kItems);
    if (p_.left_walks_inner) {
      w_.line("const i32 kk = e % {}, mm = e / {};", kInner, kInner);
    } else {
      w_.line("const i32 mm = e % {}, kk = e / {};", tile_.rows, tile_.rows);
    }
    load("left[kk][mm]", "m0 + mm", rows_, "k0 + kk", lit(p_.inner), p_.left);
    w_.close();
  }

  void load_right() {
    w_.open("for (i32 e = t; e < {}; e += {})", kInner * tile_.columns, kItems * kItems);
    w_.line("const i32 nn = e % {}, kk = e / {};", tile_.columns, tile_.columns);
    load("right[kk][nn]", "k0 + kk", lit(p_.inner), "n0 + nn", columns_, p_.right);
    w_.close();
  }

  // Beyond the ends are zeros.
  void load(const std::string& target, const std::string& row, const std::string& rows, const std::string& column,
            const std::string& columns, const ElementText& element) {
    w_.line("const Index row = {}, column = {};", row, column);
    w_.line("{} value = 0;", p_.type);
    w_.open("if (row < {} && column < {})", rows, columns);
    const std::string text = element("b", "row", "column");
    w_.line("value = {};", text);
    w_.close();
    w_.line("{} = value;", target);
  }

  void multiply() {
    w_.open("for (i32 kk = 0; kk < {}; ++kk)", kInner);
    for (int r = 0; r < row_sums(); ++r) w_.line("const {} l{} = left[kk][tm + {}];", p_.type, r, r * kItems);
    for (int c = 0; c < column_sums(); ++c) w_.line("const {} r{} = right[kk][tn + {}];", p_.type, c, c * kItems);
    for (int r = 0; r < row_sums(); ++r) {
      for (int c = 0; c < column_sums(); ++c) w_.line("sum_{}_{} += l{} * r{};", r, c, r, c);
    }
    w_.close();
  }

  void store() {
    for (int r = 0; r < row_sums(); ++r) {
      for (int c = 0; c < column_sums(); ++c) {
        w_.open("");
        w_.line("const Index m = m0 + tm + {}, n = n0 + tn + {};", r * kItems, c * kItems);
        w_.open("if (m < {} && n < {})", rows_, columns_);
        p_.write("b", "m", "n", fmt::format("sum_{}_{}", r, c));
        w_.close();
        w_.close();
      }
    }
  }

  Writer& w_;
  const Product& p_;
  const Tile tile_;
  const std::string rows_;
  const std::string columns_;
};

}  // namespace

void write_product(Writer& writer, const std::vector<Parameter>& parameters, const Product& product) {
  // Tiles reach beyond the ends.
  writer.index().cover(product.rows + 64);
  writer.index().cover(product.columns + 64);
  writer.index().cover(product.inner + 64);
  ProductWriter(writer, product).write(parameters);
}

bool can_multiply(DType dtype, const Target& target) {
  return can_compute(dtype, target) && !product_type(dtype).empty() && target.max_group >= kItems * kItems;
}

std::string product_type(DType dtype) {
  if (compute_type(dtype).empty() || dtype == DType::boolean) return "";
  if (is_float(dtype)) return std::string(compute_type(dtype));
  return element_size(dtype) == 8 ? "u64" : "u32";
}

}  // namespace autograph::gpu
