#include "backends/gpu/emit/text/product.h"

#include <algorithm>
#include <cmath>

namespace autograph::gpu {
namespace {

// A group of 16 x 16 items, of which each has a block of neighbouring sums.
constexpr int kItems = 16;
constexpr int64_t kAllItems = int64_t{kItems} * kItems;
constexpr int kSides[] = {16, 32, 64};
// Of rows in local memory: blocks of four begin where they can be read at once, and columns lie in different banks.
constexpr int kPadding = 4;
constexpr int64_t kMostParts = 64;

// How the product is cut: tiles of rows x columns, of which a group computes one over a part of k, `inner` at a time.
struct Cut {
  int rows = kItems;
  int columns = kItems;
  int inner = kItems;
  int64_t parts = 1;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Beyond one tile a side is made of large ones, which read less.
bool is_side_of(int64_t extent, int side) { return side == kSides[0] || extent > side / 2; }

// ---- What a cut takes
// ------------------------------------------------------------------------------------------------

// Microseconds on an H200, from 546 cuts of 20 convolutions that ran there; other GPUs share them but for a factor.
// What is chosen takes 4 % more than the best of those that are worth trying (docs/performance.md). Of each step of a
// group along k: for each of its items a product, the k that it reads factors of, an element that it brings to local
// memory, and the rest.
constexpr double kProductUs = 0.00106;
constexpr double kFactorsUs = 0.0044;
constexpr double kLeftUs = 0.012;
constexpr double kRestUs = 0.08;
constexpr double kLeastStepUs = 0.2;
// A group that shares its processor with another one takes so much more.
constexpr double kSharedGroup = 0.72;
// What a kernel takes to begin and to end, a second one for the parts, and what a microsecond moves of them.
constexpr double kLaunchUs = 1.8;
constexpr double kSecondKernelUs = 1.25;
constexpr double kPartBytesPerUs = 3.5e6;

double cost_us(const Product& p, const Cut& cut, int processors) {
  // Not in whole numbers: shapes may be anything.
  const auto parts = static_cast<double>(cut.parts);
  const double groups = static_cast<double>(p.batches) * static_cast<double>(ceil_div(p.rows, cut.rows)) *
                        static_cast<double>(ceil_div(p.columns, cut.columns)) * parts;
  const int64_t steps = ceil_div(ceil_div(p.inner, cut.inner), cut.parts);
  const double step_us = kProductUs * cut.rows * cut.columns * cut.inner / kAllItems + kFactorsUs * cut.inner +
                         (kLeftUs * cut.rows + p.right_us * cut.columns) * cut.inner / kAllItems + kRestUs;
  const double others = std::ceil(groups / processors) - 1;
  const double us =
      kLaunchUs + static_cast<double>(steps) * std::max(kLeastStepUs, step_us * (1 + kSharedGroup * others));
  if (cut.parts == 1) return us;
  const double sums = static_cast<double>(p.batches) * static_cast<double>(p.rows) * static_cast<double>(p.columns);
  const double moved = 8.0 * parts * sums;
  return us + kSecondKernelUs + moved / kPartBytesPerUs;
}

size_t element_bytes(const Product& p) { return p.type.ends_with("64") ? 8 : 4; }

bool fits(const Product& p, const Cut& cut, size_t local_bytes) {
  const int elements = 2 * cut.inner * (cut.rows + cut.columns + 2 * kPadding);
  return static_cast<size_t>(elements) * element_bytes(p) <= local_bytes;
}

struct CostedCut {
  Cut cut;
  double us = 0;
};

// For a shape of tiles, the number of parts that costs least.
CostedCut best_parts(const Product& p, Cut cut, int processors) {
  CostedCut best{cut, cost_us(p, cut, processors)};
  const int64_t steps = std::max<int64_t>(ceil_div(p.inner, cut.inner), 1);
  const int64_t most = p.can_split ? std::min(kMostParts, steps / 2) : 1;
  for (int64_t parts = 2; parts <= most; parts += parts < 8 ? 1 : 4) {
    // Parts that have work: the last of many might have none.
    cut.parts = ceil_div(steps, ceil_div(steps, parts));
    const double us = cost_us(p, cut, processors);
    if (us < best.us) best = {cut, us};
  }
  return best;
}

// Those that are worth trying, the best by the estimate first.
std::vector<CostedCut> choose_cuts(const Product& p, const Target& target) {
  constexpr size_t kMostCuts = 3;
  constexpr double kWorthTrying = 1.5;
  std::vector<CostedCut> cuts;
  for (const int rows : kSides) {
    for (const int columns : kSides) {
      const Cut cut{rows, columns, rows * columns > 32 * 32 ? 16 : 32};
      const bool is_of_size = is_side_of(p.rows, rows) && is_side_of(p.columns, columns);
      const bool is_least = rows == kSides[0] && columns == kSides[0];
      if (is_least || (is_of_size && fits(p, cut, target.local_bytes))) {
        cuts.push_back(best_parts(p, cut, target.processors));
      }
    }
  }
  std::stable_sort(cuts.begin(), cuts.end(), [](const CostedCut& a, const CostedCut& b) { return a.us < b.us; });
  const double limit = kWorthTrying * cuts[0].us;
  while (cuts.size() > kMostCuts || cuts.back().us > limit) cuts.pop_back();
  return cuts;
}

// ---- The text ------------------------------------------------------------------------------------------------------

class ProductWriter {
 public:
  ProductWriter(Writer& writer, const Product& product, const Cut& cut)
      : w_(writer), p_(product), cut_(cut), rows_(lit(product.rows)), columns_(lit(product.columns)) {}

  void write(std::vector<Parameter> parameters) {
    if (cut_.parts > 1) parameters.push_back(new_scratch());
    write_tiles(parameters);
    if (cut_.parts > 1) write_sums(parameters);
  }

 private:
  std::string lit(int64_t value) { return w_.index().literal(value); }
  int row_sums() const { return cut_.rows / kItems; }
  int column_sums() const { return cut_.columns / kItems; }
  int64_t of_part() const { return p_.batches * p_.rows * p_.columns; }

  // Behind what the caller keeps there.
  Parameter new_scratch() {
    const size_t begin = (w_.scratch_bytes + 15) / 16 * 16;
    w_.scratch_bytes = begin + static_cast<size_t>(cut_.parts * of_part()) * element_bytes(p_);
    return scratch_parameter("partial_sums", p_.type, begin);
  }

  void write_tiles(const std::vector<Parameter>& parameters) {
    const int64_t tiles_m = ceil_div(p_.rows, cut_.rows);
    const int64_t tiles_n = ceil_div(p_.columns, cut_.columns);
    const int64_t tiles = tiles_m * tiles_n;
    w_.begin_groups(parameters, cut_.parts * p_.batches * tiles, static_cast<size_t>(kAllItems));
    w_.line("const Index b = g / {} % {};", lit(tiles), lit(std::max<int64_t>(p_.batches, 1)));
    w_.line("const Index m0 = g / {} % {} * {};", lit(tiles_n), lit(tiles_m), cut_.rows);
    w_.line("const Index n0 = g % {} * {};", lit(tiles_n), cut_.columns);
    const int64_t span = ceil_div(ceil_div(p_.inner, cut_.inner), cut_.parts) * cut_.inner;
    if (cut_.parts > 1) {
      w_.line("const Index part = g / {};", lit(std::max<int64_t>(p_.batches * tiles, 1)));
      w_.line("const Index first = part * {};", lit(span));
      w_.line("const Index last = first + {0} < {1} ? first + {0} : {1};", lit(span), lit(p_.inner));
    } else {
      w_.line("const Index first = 0, last = {};", lit(p_.inner));
    }
    // 32 neighbours have 4 x 8 blocks, in an order in which those that read the same four elements at once are two
    // apart, or neighbours: only then does the hardware read for both.
    w_.line("const i32 tm = (t / 64 * 4 + t % 32 / 16 * 2 + t % 2) * {};", row_sums());
    w_.line("const i32 tn = (t % 64 / 32 * 8 + t % 16 / 2) * {};", column_sums());
    w_.line("LOCAL ALIGNED {} left[2][{}][{}];", p_.type, cut_.inner, cut_.rows + kPadding);
    w_.line("LOCAL ALIGNED {} right[2][{}][{}];", p_.type, cut_.inner, cut_.columns + kPadding);
    declare_sums();
    for (int c = 0; is_split() && c < column_sums(); ++c) {
      const std::string id = fmt::format("_c{}", c);
      w_.line("const Index column{} = n0 + t % {} + {};", id, kItems, c * kItems);
      p_.split_right.column("column" + id, id);
    }
    // What the next step needs is under way while this one is multiplied, and goes to the other half.
    w_.line("i32 turn = 0;");
    w_.open("for (Index k0 = first; k0 < last + {0}; k0 += {0})", cut_.inner);
    read_left();
    read_right();
    w_.open("if (k0 > first)");
    multiply();
    w_.close();
    keep_left();
    keep_right();
    w_.line("turn = 1 - turn;");
    w_.line("BARRIER();");
    w_.close();
    store();
    w_.end();
  }

  // Names instead of an array: registers have no addresses.
  void declare_sums() {
    for (int r = 0; r < row_sums(); ++r) {
      for (int c = 0; c < column_sums(); ++c) w_.line("{} sum_{}_{} = 0;", p_.type, r, c);
    }
  }

  // Items take elements, or fours of them, in turns, in the order in which they lie in memory.
  bool left_in_fours() const { return p_.left_four && p_.left_walks_inner; }
  bool right_in_fours() const { return static_cast<bool>(p_.right_four); }
  bool is_split() const { return p_.split_right.element && !right_in_fours(); }
  int left_reads() const { return reads(cut_.inner * cut_.rows, left_in_fours()); }
  int right_reads() const { return reads(cut_.inner * cut_.columns, right_in_fours()); }
  static int reads(int elements, bool in_fours) {
    return static_cast<int>(ceil_div(elements / (in_fours ? 4 : 1), kAllItems));
  }

  // Writes kk and mm of what an item reads. Gives the condition, with " && " behind it, under which it reads anything.
  std::string place_left(int read) {
    w_.line("const i32 e = t + {};", read * kAllItems);
    if (!p_.left_walks_inner) {
      w_.line("const i32 mm = e % {0}, kk = e / {0};", cut_.rows);
      return "";  // one by one: a tile has a multiple of kAllItems
    }
    const int quads = left_in_fours() ? 4 : 1;
    w_.line("const i32 kk = e % {0} * {1}, mm = e / {0};", cut_.inner / quads, quads);
    return all_read(cut_.inner * cut_.rows / quads, read) ? "" : fmt::format("mm < {} && ", cut_.rows);
  }

  std::string place_right(int read) {
    const int quads = right_in_fours() ? 4 : 1;
    w_.line("const i32 e = t + {};", read * kAllItems);
    w_.line("const i32 nn = e % {0} * {1}, kk = e / {0};", cut_.columns / quads, quads);
    return all_read(cut_.inner * cut_.columns / quads, read) ? "" : fmt::format("kk < {} && ", cut_.inner);
  }
  static bool all_read(int elements, int read) { return (read + 1) * kAllItems <= elements; }

  void declare_read(const std::string& name, bool in_fours) {
    w_.line("{} {}{};", p_.type, name, in_fours ? "[4] = {0, 0, 0, 0}" : " = 0");
  }

  void read_left() {
    for (int read = 0; read < left_reads(); ++read) {
      const std::string name = fmt::format("left_{}", read);
      declare_read(name, left_in_fours());
      w_.open("");
      const std::string if_any = place_left(read);
      w_.line("const Index row = m0 + mm, column = k0 + kk;");
      w_.open("if ({}row < {} && column < last)", if_any, rows_);
      read_into(name, left_in_fours() ? p_.left_four("b", "row", "column") : p_.left("b", "row", "column"),
                left_in_fours());
      w_.close();
      w_.close();
    }
  }

  void read_right() {
    if (is_split()) return read_split_right();
    for (int read = 0; read < right_reads(); ++read) {
      const std::string name = fmt::format("right_{}", read);
      declare_read(name, right_in_fours());
      w_.open("");
      const std::string if_any = place_right(read);
      w_.line("const Index row = k0 + kk, column = n0 + nn;");
      w_.open("if ({}row < last && column < {})", if_any, columns_);
      read_into(name, right_in_fours() ? p_.right_four("b", "row", "column") : p_.right("b", "row", "column"),
                right_in_fours());
      w_.close();
      w_.close();
    }
  }

  void read_into(const std::string& name, const std::string& text, bool in_fours) {
    if (in_fours) {
      w_.line("LOAD4({}, {});", name, text);
    } else {
      w_.line("{} = {};", name, text);
    }
  }

  void keep_left() {
    for (int read = 0; read < left_reads(); ++read) {
      w_.open("");
      open_if(place_left(read));
      for (int q = 0; q < 4 && left_in_fours(); ++q) w_.line("left[turn][kk + {0}][mm] = left_{1}[{0}];", q, read);
      if (!left_in_fours()) w_.line("left[turn][kk][mm] = left_{};", read);
      w_.close();
      w_.close();
    }
  }

  // Items have a row, or two, and every kItems-th column of it.
  void read_split_right() {
    for (int r = 0; r < cut_.inner / kItems; ++r) {
      const std::string row_id = fmt::format("_r{}", r);
      w_.line("const Index row{} = k0 + t / {} + {};", row_id, kItems, r * kItems);
      p_.split_right.row("row" + row_id, row_id);
      for (int c = 0; c < column_sums(); ++c) {
        const std::string column_id = fmt::format("_c{}", c);
        const std::string inside = p_.split_right.inside(column_id, row_id);
        w_.line("{} right_{}_{} = 0;", p_.type, r, c);
        w_.line("if (row{} < last && column{} < {}{}{}) right_{}_{} = {};", row_id, column_id, columns_,
                inside.empty() ? "" : " && ", inside, r, c, p_.split_right.element(column_id, row_id));
      }
    }
  }

  void keep_split_right() {
    for (int r = 0; r < cut_.inner / kItems; ++r) {
      for (int c = 0; c < column_sums(); ++c) {
        w_.line("right[turn][t / {0} + {1}][t % {0} + {2}] = right_{3}_{4};", kItems, r * kItems, c * kItems, r, c);
      }
    }
  }

  void keep_right() {
    if (is_split()) return keep_split_right();
    for (int read = 0; read < right_reads(); ++read) {
      w_.open("");
      open_if(place_right(read));
      for (int q = 0; q < 4 && right_in_fours(); ++q) w_.line("right[turn][kk][nn + {0}] = right_{1}[{0}];", q, read);
      if (!right_in_fours()) w_.line("right[turn][kk][nn] = right_{};", read);
      w_.close();
      w_.close();
    }
  }

  // `condition` ends with " && ".
  void open_if(const std::string& condition) {
    if (condition.empty()) {
      w_.open("");
    } else {
      w_.open("if ({})", condition.substr(0, condition.size() - 4));
    }
  }

  // For CUDA written out, with the factors of the next k read before those of this one are multiplied: its compilers do
  // not. Those of OpenCL take long for what is written out.
  void multiply() {
    if (w_.target().dialect == Dialect::opencl) {
      w_.open("for (i32 kk = 0; kk < {}; ++kk)", cut_.inner);
      read_factors("", "kk");
      multiply_factors("");
      return w_.close();
    }
    read_factors("0_", "0");
    for (int kk = 0; kk < cut_.inner; ++kk) {
      if (kk + 1 < cut_.inner) read_factors(fmt::format("{}_", kk + 1), fmt::format("{}", kk + 1));
      multiply_factors(fmt::format("{}_", kk));
    }
  }

  void read_factors(const std::string& id, const std::string& kk) {
    for (int r = 0; r < row_sums(); ++r) {
      w_.line("const {} l{}{} = left[1 - turn][{}][tm + {}];", p_.type, id, r, kk, r);
    }
    for (int c = 0; c < column_sums(); ++c) {
      w_.line("const {} r{}{} = right[1 - turn][{}][tn + {}];", p_.type, id, c, kk, c);
    }
  }

  void multiply_factors(const std::string& id) {
    for (int r = 0; r < row_sums(); ++r) {
      for (int c = 0; c < column_sums(); ++c) w_.line("sum_{0}_{1} += l{2}{0} * r{2}{1};", r, c, id);
    }
  }

  void store() {
    for (int r = 0; r < row_sums(); ++r) {
      for (int c = 0; c < column_sums(); ++c) {
        w_.open("");
        w_.line("const Index m = m0 + tm + {}, n = n0 + tn + {};", r, c);
        w_.open("if (m < {} && n < {})", rows_, columns_);
        const std::string sum = fmt::format("sum_{}_{}", r, c);
        if (cut_.parts > 1) {
          w_.line("partial_sums[(g / {0} * {1} + m) * {2} + n] = {3};",
                  lit(ceil_div(p_.rows, cut_.rows) * ceil_div(p_.columns, cut_.columns)), rows_, columns_, sum);
        } else {
          p_.write("b", "m", "n", sum);
        }
        w_.close();
        w_.close();
      }
    }
  }

  void write_sums(const std::vector<Parameter>& parameters) {
    w_.begin_items(parameters, of_part());
    w_.line("{} total = 0;", p_.type);
    w_.open("for (i32 part = 0; part < {}; ++part)", cut_.parts);
    w_.line("total += partial_sums[part * {} + i];", lit(of_part()));
    w_.close();
    w_.line("const Index b = i / {};", lit(p_.rows * p_.columns));
    w_.line("const Index m = i / {} % {};", columns_, rows_);
    w_.line("const Index n = i % {};", columns_);
    p_.write("b", "m", "n", "total");
    w_.end();
  }

  Writer& w_;
  const Product& p_;
  const Cut cut_;
  const std::string rows_;
  const std::string columns_;
};

}  // namespace

void write_product(Writer& writer, const std::vector<Parameter>& parameters, const Product& product) {
  // Tiles reach beyond the ends.
  writer.index().cover(product.rows + 64);
  writer.index().cover(product.columns + 64);
  writer.index().cover(product.inner + 64 * kMostParts);
  std::vector<CostedCut> cuts{CostedCut()};
  if (product.batches * product.rows * product.columns > 0) cuts = choose_cuts(product, writer.target());
  for (const CostedCut& cut : cuts) writer.alternatives_us.push_back(cut.us);
  const Cut& cut = cuts[std::min(writer.target().alternative, cuts.size() - 1)].cut;
  writer.index().cover(cut.parts * product.batches * product.rows * product.columns);
  ProductWriter(writer, product, cut).write(parameters);
}

bool can_multiply(DType dtype, const Target& target) {
  return can_compute(dtype, target) && !product_type(dtype).empty() &&
         target.max_group >= static_cast<size_t>(kAllItems);
}

std::string product_type(DType dtype) {
  if (compute_type(dtype).empty() || dtype == DType::boolean) return "";
  if (is_float(dtype)) return std::string(compute_type(dtype));
  return element_size(dtype) == 8 ? "u64" : "u32";
}

}  // namespace autograph::gpu
