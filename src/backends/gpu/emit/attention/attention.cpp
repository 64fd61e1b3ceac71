// attention in one kernel: a group of 16 x 16 items has a tile of queries of one head and walks over the keys, tile by
// tile. What it keeps of the keys that it has seen is, for each query, the largest score, the sum of the weights
// relative to that, and the weighted sum of the values; a larger score scales both sums down. No score leaves the
// group.
#include <algorithm>
#include <cmath>

#include "backends/gpu/emit/families.h"
#include "ops/attention/head_layout.h"

namespace autograph::gpu {
namespace {

constexpr int64_t kSide = 16;  // items of a group along queries, and along keys or elements of values
constexpr int64_t kItems = kSide * kSide;
constexpr size_t kLargestLocal = size_t{48} * 1024;  // what CUDA gives without asking
constexpr int64_t kMostSums = 64;                    // of an item: they are registers
constexpr int64_t kGroupsThatFill = 128;
constexpr int kResident = 2;  // groups on a processor: leaves an item 128 registers

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// As text: element `d` of a position of a head of batch "b".
std::string element_of(const HeadLayout& x, const IndexType& index, std::string_view head, std::string_view position,
                       std::string_view d) {
  return fmt::format("b * {} + {} * {} + ({}) * {} + {}", index.literal(x.heads * x.length * x.size), head,
                     index.literal(x.head_stride), position, index.literal(x.position_stride), d);
}

// Queries and keys of a group at a time.
struct Tile {
  int64_t queries = 0;
  int64_t keys = 0;
};

class AttentionWriter {
 public:
  AttentionWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        q_(call.input_dims(0), call.attributes.get_or<int64_t>("q_num_heads", 1)),
        k_(call.input_dims(1), call.attributes.get_or<int64_t>("kv_num_heads", 1)),
        v_(call.input_dims(2), call.attributes.get_or<int64_t>("kv_num_heads", 1)),
        y_(call.output_dims(0), q_.heads) {
    past_ = call.has_input(4) ? call.input_dims(4)[2] : 0;
    keys_ = past_ + k_.length;
    const bool is_f64 = call.inputs[0].dtype() == DType::f64 || call.inputs[2].dtype() == DType::f64;
    real_ = is_f64 ? DType::f64 : DType::f32;
    type_ = compute_type(real_);
    width_ = ceil_div(v_.size, kSide) * kSide;
    // Nothing is further away than this.
    const int64_t far = q_.length + keys_;
    const int64_t left = call.attributes.integer("left_window_size");
    const int64_t right = call.attributes.integer("right_window_size");
    before_ = left < 0 ? -1 : std::min(left, far);
    after_ = right < 0 ? -1 : std::min(right, far);
    if (call.attributes.flag("is_causal")) after_ = 0;
    tile_ = choose_tile();
  }

  std::string refusal() const {
    for (const auto& types : {call_.inputs, call_.outputs}) {
      for (const Type& type : types) {
        if (type.is_tensor() && !can_compute(type.dtype(), w_.target())) return "dtype";
      }
    }
    if (call_.outputs.size() > 3 && call_.outputs[3].is_tensor()) return "scores as an output";
    if (w_.target().max_group < static_cast<size_t>(kItems)) return "groups of 256 items";
    if (tile_.queries == 0) {
      return fmt::format("heads of {} and {} elements: a tile needs {} bytes of memory that a group shares, of {}",
                         q_.size, v_.size, local_bytes({kSide, kSide}), local_limit());
    }
    return "";
  }

  Emitted write() {
    cover();
    if (call_.has_input(6)) {
      w_.fault = fmt::format("[attention] nonpad_kv_seqlen: expected 0..{}, got ", keys_);
    }
    write_attention();
    if (call_.outputs.size() > 1 && call_.outputs[1].is_tensor()) write_present(1, "k", k_, 4);
    if (call_.outputs.size() > 2 && call_.outputs[2].is_tensor()) write_present(2, "v", v_, 5);
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) { return w_.index().literal(value); }
  int64_t query_rows() const { return tile_.queries / kSide; }
  int64_t key_columns() const { return tile_.keys / kSide; }
  int64_t value_columns() const { return width_ / kSide; }

  // ---- Tiles ----

  size_t local_limit() const { return std::min(w_.target().local_bytes, kLargestLocal); }

  // Keys and values take turns in the same memory. Rows of queries, keys and weights end with one element that is not
  // used, so that a column lies in different banks.
  int64_t shared_elements(const Tile& tile) const { return tile.keys * std::max(q_.size + 1, width_); }
  size_t local_bytes(const Tile& tile) const {
    const int64_t elements =
        tile.queries * (q_.size + 1) + shared_elements(tile) + tile.queries * (tile.keys + 1) + tile.queries * kSide;
    return static_cast<size_t>(elements) * element_size(real_);
  }

  // The largest one that fits; smaller ones where there would be too few groups.
  Tile choose_tile() const {
    for (const int64_t queries : {4 * kSide, 2 * kSide, kSide}) {
      const int64_t groups = q_.batch * q_.heads * ceil_div(q_.length, queries);
      if (queries > kSide && (q_.length <= queries / 2 || groups < kGroupsThatFill)) continue;
      if (queries > kSide && queries / kSide * (width_ / kSide) > kMostSums) continue;
      for (const int64_t keys : {2 * kSide, kSide}) {
        if (local_bytes({queries, keys}) <= local_limit()) return {queries, keys};
      }
    }
    return {};
  }

  // ---- Parts of the text ----

  void cover() {
    IndexType& index = w_.index();
    for (const auto& types : {call_.inputs, call_.outputs}) {
      for (const Type& type : types) {
        if (type.is_tensor()) index.cover(*type.shape().num_elements());
      }
    }
    // Tiles reach beyond the ends, windows twice as far.
    index.cover(4 * (q_.length + keys_) + 1024);
    index.cover(ceil_div(q_.length, kSide) * q_.batch * q_.heads);
  }

  std::vector<Parameter> parameters() const {
    const auto input = [&](const char* name, size_t slot) {
      return input_parameter(name, storage_type(call_.inputs[slot].dtype()), slot);
    };
    std::vector<Parameter> list{input("q", 0), input("k", 1), input("v", 2)};
    if (call_.has_input(3)) list.push_back(input("mask", 3));
    if (call_.has_input(4)) list.insert(list.end(), {input("k_past", 4), input("v_past", 5)});
    if (call_.has_input(6)) list.insert(list.end(), {input("counts", 6), fault_parameter("faults")});
    list.push_back(output_parameter("y", storage_type(call_.outputs[0].dtype())));
    return list;
  }

  // Element `d` of a key or value, cached or new, in its compute type.
  std::string key_element(std::string_view name, const HeadLayout& heads, size_t past_slot, std::string_view head,
                          std::string_view key, std::string_view d) {
    const size_t slot = past_slot - 3;
    const std::string position = past_ > 0 ? fmt::format("{} - {}", key, lit(past_)) : std::string(key);
    std::string fresh = load(call_.inputs[slot].dtype(), name, element_of(heads, w_.index(), head, position, d));
    if (past_ == 0) return fresh;
    if (heads.length == 0) fresh = "0";  // nothing is new
    const HeadLayout cached(call_.input_dims(past_slot), 1);
    return fmt::format("({} < {} ? {} : {})", key, lit(past_),
                       load(call_.inputs[past_slot].dtype(), fmt::format("{}_past", name),
                            element_of(cached, w_.index(), head, key, d)),
                       fresh);
  }

  void write_attention() {
    const int64_t tiles = ceil_div(q_.length, tile_.queries);
    const int64_t groups = v_.size == 0 ? 0 : q_.batch * q_.heads * tiles;
    w_.begin_groups(parameters(), groups, kItems, kResident);
    w_.line("const Index q0 = g % {} * {};", lit(std::max<int64_t>(tiles, 1)), lit(tile_.queries));
    w_.line("const Index head = g / {} % {};", lit(std::max<int64_t>(tiles, 1)), lit(q_.heads));
    w_.line("const Index b = g / {};", lit(std::max<int64_t>(tiles * q_.heads, 1)));
    w_.line("const Index kv_head = head / {};", lit(q_.heads / std::max<int64_t>(k_.heads, 1)));
    w_.line("const i32 tm = t / {}, tn = t % {};", kSide, kSide);
    w_.line("LOCAL {} queries[{}];", type_, tile_.queries * (q_.size + 1));
    w_.line("LOCAL {} shared[{}];", type_, shared_elements(tile_));
    w_.line("LOCAL {} weights[{}];", type_, tile_.queries * (tile_.keys + 1));
    w_.line("LOCAL {} largest[{}];", type_, tile_.queries * kSide);
    declare_sums();
    load_queries();
    write_key_range();
    w_.open("for (Index k0 = first; k0 < last; k0 += {})", lit(tile_.keys));
    load_tile("k", k_, 4, q_.size, q_.size + 1);
    w_.line("BARRIER();");
    multiply_queries();
    for (int64_t r = 0; r < query_rows(); ++r) hide_and_find_largest(r);
    w_.line("BARRIER();");
    load_tile("v", v_, 5, width_, width_);
    for (int64_t r = 0; r < query_rows(); ++r) weigh(r);
    w_.line("BARRIER();");
    add_values();
    w_.line("BARRIER();");
    w_.close();
    store_rows();
    w_.end();
  }

  void declare_sums() {
    for (int64_t r = 0; r < query_rows(); ++r) {
      w_.line("{} top{} = -INFINITY, total{} = 0;", type_, r, r);
      w_.line("i32 sees{} = 0;", r);
      for (int64_t c = 0; c < value_columns(); ++c) w_.line("{} sum_{}_{} = 0;", type_, r, c);
    }
  }

  // Scaled, so that scores are.
  void load_queries() {
    const float scale = call_.attributes.get_or<float>("scale", 1 / std::sqrt(static_cast<float>(q_.size)));
    w_.open("for (i32 e = t; e < {}; e += {})", tile_.queries * q_.size, kItems);
    w_.line("const i32 row = e / {0}, d = e % {0};", std::max<int64_t>(q_.size, 1));
    w_.line("{} value = 0;", type_);
    w_.line("if (q0 + row < {}) value = {} * {};", lit(q_.length),
            load(call_.inputs[0].dtype(), "q", element_of(q_, w_.index(), "head", "q0 + row", "d")),
            literal(real_, static_cast<double>(scale)));
    w_.line("queries[row * {} + d] = value;", q_.size + 1);
    w_.close();
  }

  // "before": keys in front of the first query. Keys outside of [first, last) no query of the tile sees.
  void write_key_range() {
    w_.line("Index last = {};", lit(keys_));
    if (call_.has_input(6)) {
      w_.line("const i64 valid = counts[b];");
      w_.open("if (valid < 0 || valid > {})", keys_);
      w_.line("faults[0] = 1;");
      w_.line("faults[1] = valid;");
      w_.close();
      w_.line("last = valid < 0 || valid > {} ? 0 : (Index)valid;", keys_);
      w_.line("const Index before = (Index)valid - {};", lit(q_.length));
    } else {
      w_.line("const Index before = {};", lit(past_));
    }
    if (after_ >= 0) {
      w_.line("const Index frontier = q0 + before + {};", lit(tile_.queries + after_));
      w_.line("if (last > frontier) last = frontier;");
    }
    if (call_.has_input(3)) {
      const int64_t covered = call_.input_dims(3).back();
      if (covered < keys_) w_.line("if (last > {0}) last = {0};", lit(covered));
    }
    w_.line("Index first = 0;");
    if (before_ < 0) return;
    w_.line("first = q0 + before - {};", lit(before_));
    w_.line("first = first < 0 ? 0 : first / {0} * {0};", lit(tile_.keys));
  }

  // A tile of keys or values in rows of `stride` elements, of which `size` are written; what there is none of is 0.
  void load_tile(std::string_view name, const HeadLayout& heads, size_t past_slot, int64_t size, int64_t stride) {
    w_.open("for (i32 e = t; e < {}; e += {})", tile_.keys * size, kItems);
    w_.line("const i32 row = e / {0}, d = e % {0};", std::max<int64_t>(size, 1));
    w_.line("const Index key = k0 + row;");
    w_.line("{} value = 0;", type_);
    const std::string is_inside = size > heads.size ? fmt::format(" && d < {}", heads.size) : "";
    w_.line("if (key < last{}) value = {};", is_inside, key_element(name, heads, past_slot, "kv_head", "key", "d"));
    w_.line("shared[row * {} + d] = value;", stride);
    w_.close();
  }

  void multiply_queries() {
    for (int64_t r = 0; r < query_rows(); ++r) {
      for (int64_t c = 0; c < key_columns(); ++c) w_.line("{} score_{}_{} = 0;", type_, r, c);
    }
    w_.open("for (i32 d = 0; d < {}; ++d)", q_.size);
    for (int64_t r = 0; r < query_rows(); ++r) {
      w_.line("const {} l{} = queries[(tm + {}) * {} + d];", type_, r, r * kSide, q_.size + 1);
    }
    for (int64_t c = 0; c < key_columns(); ++c) {
      w_.line("const {} r{} = shared[(tn + {}) * {} + d];", type_, c, c * kSide, q_.size + 1);
    }
    for (int64_t r = 0; r < query_rows(); ++r) {
      for (int64_t c = 0; c < key_columns(); ++c) w_.line("score_{0}_{1} += l{0} * r{1};", r, c);
    }
    w_.close();
  }

  // Which keys of [first, last) a query sees, by windows alone.
  std::string visible() {
    std::string text = "key < last";
    if (after_ >= 0) text += fmt::format(" && key - before - query <= {}", lit(after_));
    if (before_ >= 0) text += fmt::format(" && query + before - key <= {}", lit(before_));
    return text;
  }

  // The element of the mask for "query" and "key", as what is added to a score.
  std::string mask_element() {
    const Dims mask = call_.input_dims(3);
    const DType dtype = call_.inputs[3].dtype();
    const Walk walk = broadcast_walk(mask, {q_.batch, q_.heads, q_.length, mask.back()});
    std::string at = "key";
    constexpr const char* kNames[] = {"b", "head", "query"};
    for (size_t axis = 0; axis < std::size(kNames); ++axis) {
      if (walk.strides[axis] != 0) at += fmt::format(" + {} * {}", kNames[axis], lit(walk.strides[axis]));
    }
    const std::string element = load(dtype, "mask", at);
    if (dtype == DType::boolean) return fmt::format("({} != 0 ? ({})0 : -INFINITY)", element, type_);
    return fmt::format("({}){}", type_, element);
  }

  void hide_and_find_largest(int64_t r) {
    const auto cap = static_cast<double>(call_.attributes.real("softcap"));
    w_.open("");
    w_.line("const Index query = q0 + tm + {};", r * kSide);
    w_.line("{} best = -INFINITY;", type_);
    for (int64_t c = 0; c < key_columns(); ++c) {
      const std::string score = fmt::format("score_{}_{}", r, c);
      w_.open("");
      w_.line("const Index key = k0 + tn + {};", c * kSide);
      if (cap > 0) w_.line("{0} = {1} * tanh({0} / {1});", score, literal(real_, cap));
      w_.open("if (query < {} && {})", lit(q_.length), visible());
      if (call_.has_input(3)) {
        w_.line("const {} bias = {};", type_, mask_element());
        w_.line("{} += bias;", score);
        w_.line("if (bias != -INFINITY) sees{} = 1;", r);
      } else {
        w_.line("sees{} = 1;", r);
      }
      w_.close();
      w_.line("else {} = -INFINITY;", score);
      w_.line("if ({0} > best) best = {0};", score);
      w_.close();
    }
    w_.line("largest[(tm + {}) * {} + tn] = best;", r * kSide, kSide);
    w_.close();
  }

  // What is NaN is never the largest, and makes the sum NaN. Where no key was seen yet, infinity minus infinity must
  // not be formed.
  void weigh(int64_t r) {
    w_.open("");
    w_.line("{} best = top{};", type_, r);
    w_.open("for (i32 other = 0; other < {}; ++other)", kSide);
    w_.line("const {} v = largest[(tm + {}) * {} + other];", type_, r * kSide, kSide);
    w_.line("if (v > best) best = v;");
    w_.close();
    w_.line("const {} base = best == -INFINITY ? 0 : best;", type_);
    w_.line("const {} factor = exp(top{} - base);", type_, r);
    w_.line("top{} = best;", r);
    w_.line("total{} *= factor;", r);
    for (int64_t c = 0; c < value_columns(); ++c) w_.line("sum_{}_{} *= factor;", r, c);
    for (int64_t c = 0; c < key_columns(); ++c) {
      w_.line("weights[(tm + {}) * {} + tn + {}] = exp(score_{}_{} - base);", r * kSide, tile_.keys + 1, c * kSide, r,
              c);
    }
    w_.close();
  }

  // All items of a row sum up its weights: they read them anyway.
  void add_values() {
    w_.open("for (i32 key = 0; key < {}; ++key)", tile_.keys);
    for (int64_t r = 0; r < query_rows(); ++r) {
      w_.line("const {} l{} = weights[(tm + {}) * {} + key];", type_, r, r * kSide, tile_.keys + 1);
      w_.line("total{0} += l{0};", r);
    }
    for (int64_t c = 0; c < value_columns(); ++c) {
      w_.line("const {} r{} = shared[key * {} + tn + {}];", type_, c, width_, c * kSide);
    }
    for (int64_t r = 0; r < query_rows(); ++r) {
      for (int64_t c = 0; c < value_columns(); ++c) w_.line("sum_{0}_{1} += l{0} * r{1};", r, c);
    }
    w_.close();
  }

  // A query that sees no key gives 0; where all that it sees weighs nothing, there is no number.
  void store_rows() {
    for (int64_t r = 0; r < query_rows(); ++r) {
      w_.line("largest[(tm + {}) * {} + tn] = sees{};", r * kSide, kSide, r);
    }
    w_.line("BARRIER();");
    for (int64_t r = 0; r < query_rows(); ++r) {
      w_.open("if (q0 + tm + {} < {})", r * kSide, lit(q_.length));
      w_.line("{} seen = 0;", type_);
      w_.line("for (i32 other = 0; other < {0}; ++other) seen += largest[(tm + {1}) * {0} + other];", kSide, r * kSide);
      w_.line("const {} inverse = seen == 0 ? 0 : total{} == 0 ? NAN : 1 / total{};", type_, r, r);
      for (int64_t c = 0; c < value_columns(); ++c) {
        const std::string at = element_of(y_, w_.index(), "head", fmt::format("q0 + tm + {}", r * kSide),
                                          fmt::format("tn + {}", c * kSide));
        const std::string value = fmt::format("seen == 0 ? 0 : sum_{}_{} * inverse", r, c);
        const bool is_inside = (c + 1) * kSide <= v_.size;
        w_.line("{}{}", is_inside ? "" : fmt::format("if (tn + {} < {}) ", c * kSide, v_.size),
                store(call_.outputs[0].dtype(), "y", at, value));
      }
      w_.close();
    }
  }

  // Cached and new keys or values behind each other, [batch, heads, all keys, size].
  void write_present(size_t output, const char* name, const HeadLayout& heads, size_t past_slot) {
    const Dims dims = call_.output_dims(output);
    const size_t slot = past_slot - 3;
    std::vector<Parameter> list{input_parameter(name, storage_type(call_.inputs[slot].dtype()), slot)};
    if (past_ > 0 || call_.has_input(past_slot)) {
      list.push_back(
          input_parameter(fmt::format("{}_past", name), storage_type(call_.inputs[past_slot].dtype()), past_slot));
    }
    const DType dtype = call_.outputs[output].dtype();
    list.push_back(output_parameter("y", storage_type(dtype), output));
    w_.begin_items(list, num_elements(dims));
    const auto at_axis = [&](size_t axis) {
      return num_elements(dims) == 0 ? std::string("0") : coordinate(w_.index(), "i", dims, axis);
    };
    w_.line("const Index b = {}, kv_head = {};", at_axis(0), at_axis(1));
    w_.line("const Index key = {}, d = {};", at_axis(2), at_axis(3));
    w_.line("{}", store(dtype, "y", "i", key_element(name, heads, past_slot, "kv_head", "key", "d")));
    w_.end();
  }

  const KernelCall& call_;
  Writer w_;
  const HeadLayout q_, k_, v_, y_;
  int64_t past_ = 0, keys_ = 0, width_ = 0;
  int64_t before_ = -1, after_ = -1;  // keys that are seen before and after a query; -1: all
  DType real_ = DType::f32;
  std::string_view type_;
  Tile tile_;
};

}  // namespace

Emitted emit_attention(const KernelCall& call, const Target& target) {
  AttentionWriter writer(call, target);
  const std::string refusal = writer.refusal();
  return refusal.empty() ? writer.write() : refused(refusal);
}

}  // namespace autograph::gpu
