#include "autograph/seeded_inputs.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "base/did_you_mean.h"
#include "base/printable.h"
#include "base/text/lower_case.h"
#include "engine/run_inputs.h"
#include "tensor/element_types.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

constexpr int64_t kDefaultLength = 8;
constexpr int64_t kDefaultPicture = 224;
constexpr int64_t kDefaultSamples = 16000;  // a second of speech

bool contains_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

// Part of a name in an expression of extents?
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

bool is_batch_name(std::string_view name) {
  const std::string text = lower_case(name);
  return text == "n" || text == "b" || text == "bs" || text.find("batch") != std::string::npos;
}

bool is_batch(const Dim& dim, int64_t axis) {
  return !dim.is_known() && (dim.is_unknown() ? axis == 0 : is_batch_name(dim.name()));
}

// ---- Extents ---------------------------------------------------------------------------------------------------

// What is said of extents, and what follows from the inputs: `dims` by name, places of names among them.
struct Extents {
  SeedOptions options;
  std::set<std::string, std::less<>> picture;  // names of heights and widths
  std::set<std::string, std::less<>> inner;    // names behind the first axis
};

int64_t extent_of_name(const std::string& name, const Extents& extents) {
  const auto given = extents.options.dims.find(name);
  if (given != extents.options.dims.end()) return given->second;
  if (is_batch_name(name)) return extents.options.batch.value_or(1);
  const bool is_sound = extents.inner.contains(name) && contains_any(lower_case(name), {"sample", "audio", "wave"});
  if (is_sound) return kDefaultSamples;
  if (contains_any(lower_case(name), {"seq", "len", "time", "token", "frame"})) return kDefaultLength;
  return extents.picture.contains(name) ? kDefaultPicture : 1;
}

// Of what looks like pictures: four axes, with one, three or four channels in the second or the last.
bool is_picture(const Type& type) {
  if (!type.is_tensor() || !type.shape().has_rank() || type.shape().rank() != 4) return false;
  const auto is_channels = [&](int64_t axis) {
    const int64_t extent = type.shape()[axis].value_or(0);
    return extent == 1 || extent == 3 || extent == 4;
  };
  return is_channels(1) || is_channels(3);
}

std::string place_of(const std::string& input, int64_t axis) { return fmt::format("{}[{}]", input, axis); }

// Sums, differences and products of names and numbers, as exporters write them into symbolic extents:
// `sum = product (('+' | '-') product)*`, `product = atom ('*' atom)*`. A text that is anything else is one name.
class Expression {
 public:
  Expression(std::string_view text, const Extents& extents) : text_(text), extents_(extents) {}

  std::optional<int64_t> evaluate() {
    const auto value = sum();
    skip_blanks();
    return value && at_ == text_.size() && *value >= 0 ? value : std::nullopt;
  }

 private:
  std::optional<int64_t> sum() {
    auto value = product();
    while (value) {
      const bool minus = take('-');
      if (!minus && !take('+')) break;
      const auto other = product();
      if (!other) return std::nullopt;
      value = checked_add(*value, minus ? -*other : *other, "dim");
    }
    return value;
  }

  std::optional<int64_t> product() {
    auto value = atom();
    while (value && take('*')) {
      const auto other = atom();
      if (!other) return std::nullopt;
      value = checked_mul(*value, *other, "dim");
    }
    return value;
  }

  std::optional<int64_t> atom() {
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) return std::nullopt;
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) return extent_of_name(word, extents_);
    if (word.size() > 18 || word.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    return std::stoll(word);
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  const Extents& extents_;
  size_t at_ = 0;
};

int64_t extent_of(const Dim& dim, const std::string& place, int64_t axis, bool in_picture, const Extents& extents) {
  if (dim.is_known()) return dim.value();
  const auto& given = extents.options.dims;
  if (dim.is_unknown()) {
    if (given.contains(place)) return given.at(place);
    if (axis == 0) return extents.options.batch.value_or(1);
    return in_picture ? kDefaultPicture : 1;
  }
  const std::string name(dim.name());
  if (given.contains(name)) return given.at(name);
  return Expression(name, extents).evaluate().value_or(extent_of_name(name, extents));
}

Type bound(const Type& type, const std::string& name, const Extents& extents) {
  if (type.is_sequence()) return Type::sequence(bound(type.element(), name, extents));
  if (type.is_optional()) return Type::optional(bound(type.element(), name, extents));
  AG_CHECK_USER(type.is_tensor() && type.shape().has_rank(), ShapeError,
                "[inputs] shape of '{}': expected a known rank, got {} (give the input itself)", printable(name),
                to_string(type));
  Dims dims;
  for (int64_t axis = 0; axis < type.shape().rank(); ++axis) {
    dims.push_back(extent_of(type.shape()[axis], place_of(name, axis), axis, is_picture(type), extents));
  }
  return Type(type.dtype(), Shape::of(dims));
}

// Appends the words of an extent's name: "past" for "past + 1".
void add_words(std::string_view text, std::vector<std::string>& names) {
  while (!text.empty()) {
    const auto begin = std::find_if(text.begin(), text.end(), is_word);
    const auto end = std::find_if_not(begin, text.end(), is_word);
    if (begin != end) names.emplace_back(begin, end);
    text.remove_prefix(static_cast<size_t>(end - text.begin()));
  }
}

// Collects the names and places of symbolic extents and the parts of these names, to tell one that was misspelt.
void collect_names(const Type& type, const std::string& input, std::vector<std::string>& names, bool& has_batch) {
  if (type.is_sequence() || type.is_optional()) return collect_names(type.element(), input, names, has_batch);
  if (!type.is_tensor() || !type.shape().has_rank()) return;
  for (int64_t axis = 0; axis < type.shape().rank(); ++axis) {
    const Dim& dim = type.shape()[axis];
    if (!dim.is_known()) names.push_back(place_of(input, axis));
    has_batch = has_batch || is_batch(dim, axis);
    if (dim.name().empty()) continue;
    names.emplace_back(dim.name());
    add_words(dim.name(), names);
  }
}

void check_options(const Graph& graph, const SeedOptions& options) {
  std::vector<std::string> names;
  bool has_batch = false;
  for (const ValueId input : graph.inputs()) {
    collect_names(graph.type(input), graph.value(input).name(), names, has_batch);
  }
  for (const auto& [name, extent] : options.dims) {
    AG_CHECK_USER(extent >= 0, ValueError, "[inputs] extent of '{}': expected 0 or more, got {}", name, extent);
    const bool found = std::find(names.begin(), names.end(), name) != names.end();
    AG_CHECK_USER(found, ValueError, "[inputs] extent '{}': no input has it{}", name, nearest_or_all(name, names));
  }
  if (!options.batch) return;
  AG_CHECK_USER(*options.batch >= 0, ValueError, "[inputs] batch: expected 0 or more, got {}", *options.batch);
  AG_CHECK_USER(has_batch, ValueError, "[inputs] batch: no input has a symbolic batch extent (the model fixes it)");
}

// What `options` say, with places of named extents as their names.
Extents find_extents(const Graph& graph, const SeedOptions& options) {
  check_options(graph, options);
  Extents extents{options, {}, {}};
  for (const ValueId input : graph.inputs()) {
    const Type& type = graph.type(input);
    if (!type.is_tensor() || !type.shape().has_rank()) continue;
    const auto known = options.values.find(graph.value(input).name());
    const bool is_known = known != options.values.end() && known->second.rank() == type.shape().rank();
    for (int64_t axis = 0; axis < type.shape().rank(); ++axis) {
      const std::string_view name = type.shape()[axis].name();
      if (name.empty()) continue;
      if (axis > 0) extents.inner.emplace(name);
      if (axis > 0 && is_picture(type)) extents.picture.emplace(name);
      const auto given = options.dims.find(place_of(graph.value(input).name(), axis));
      if (given != options.dims.end()) extents.options.dims.emplace(name, given->second);
      if (is_known) extents.options.dims.emplace(name, known->second.dims()[static_cast<size_t>(axis)]);
    }
  }
  return extents;
}

// ---- Elements --------------------------------------------------------------------------------------------------

// Smallest extent of a table that `value` indexes. Indices are found by the schema: a parameter named "indices" next to
// data in slot 0, along the attribute "axis"; "labels" next to scores, along axis 1; "batch_indices" next to images.
int64_t table_extent(const Graph& graph, ValueId value, int depth) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const Use& use : graph.value(value).uses()) {
    const Node& node = graph.node(use.node);
    const OpDef& op = node.op();
    const std::string_view parameter = use.slot < op.inputs.size() ? op.inputs[use.slot].name : "";
    const bool is_label = parameter == "labels";
    const bool is_index = use.slot > 0 && (is_label || parameter == "indices" || parameter == "batch_indices");
    const Type data = node.input(0).is_valid() ? graph.type(node.input(0)) : Type();
    if (is_index && data.is_tensor() && data.shape().has_rank() && data.shape().rank() > 0) {
      const int64_t axis = is_label ? 1 : node.attributes().get_or<int64_t>("axis", 0);
      const int64_t rank = data.shape().rank();
      const Dim& extent = data.shape()[std::clamp<int64_t>(front_axis(axis, rank), 0, rank - 1)];
      smallest = std::min(smallest, extent.value_or(1));
    } else if (depth > 0 && use.slot == 0 && (op.traits.view || (op.traits.elementwise && op.inputs.size() == 1))) {
      smallest = std::min(smallest, table_extent(graph, node.output(0), depth - 1));
    }
  }
  return smallest;
}

// Draws elements; only integer arithmetic on the generator's output, so that every machine gets the same bits.
class Filler {
 public:
  Filler(const Graph& graph, ValueId input, uint64_t seed)
      : random_(seed), name_(lower_case(graph.value(input).name())) {
    is_mask_ = name_.find("mask") != std::string::npos;
    is_position_ = name_.find("position") != std::string::npos;
    table_ = table_extent(graph, input, 8);
  }

  Datum fill(const Type& type) {
    if (type.is_sequence()) return std::vector<Datum>{fill(type.element()), fill(type.element())};
    if (type.is_optional()) return fill(type.element());
    Tensor tensor = Tensor::zeros(type.dtype(), type.shape().static_dims());
    using Elements =
        Concat<NumericTypes, SmallTypes, TypeList<bool, std::string, std::complex<float>, std::complex<double>>>;
    dispatch<Elements>(type.dtype(), [&]<class T>(TypeTag<T>) {
      T* elements = tensor.mutable_data<T>();
      const int64_t row = tensor.rank() == 0 ? 1 : std::max<int64_t>(tensor.dims().back(), 1);
      for (int64_t i = 0; i < tensor.num_elements(); ++i) elements[i] = element<T>(i % row);
    });
    return tensor;
  }

 private:
  // Sum of twelve uniforms of 16 bits: mean 0, deviation 1, exact in double.
  double normal() {
    double sum = 0;
    for (int word = 0; word < 3; ++word) {
      for (uint64_t bits = random_(), k = 0; k < 4; ++k, bits >>= 16)
        sum += static_cast<double>(bits & 0xFFFF) / 65536.0;
    }
    return sum - 6.0;
  }

  int64_t below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }

  template <class T>
  T element(int64_t column) {
    if constexpr (std::is_same_v<T, bool>) {
      return is_mask_ || below(2) == 1;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return "word" + std::to_string(below(4));
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      const double real = normal();
      return T(static_cast<typename T::value_type>(real), static_cast<typename T::value_type>(normal()));
    } else if constexpr (kIsFloat<T>) {
      return T(static_cast<float>(normal()));
    } else if constexpr (kIsSmallInt<T>) {
      return T(static_cast<int>(below(2)));
    } else {
      return static_cast<T>(integer(column, sizeof(T), std::is_signed_v<T>));
    }
  }

  int64_t integer(int64_t column, size_t size, bool is_signed) {
    if (table_ != std::numeric_limits<int64_t>::max()) {
      return is_position_ ? std::min(column, std::max<int64_t>(table_ - 1, 0)) : below(std::max<int64_t>(table_, 1));
    }
    if (is_mask_) return 1;
    if (is_position_) return column;
    if (size >= 4) return below(2);
    return is_signed ? below(16) - 8 : below(size == 1 ? 256 : 16);
  }

  std::mt19937_64 random_;
  std::string name_;
  bool is_mask_ = false;
  bool is_position_ = false;
  int64_t table_ = 0;
};

}  // namespace

Type bound_input_type(const Graph& graph, size_t index, const SeedOptions& options) {
  const Value& value = graph.value(graph.inputs().at(index));
  const auto known = options.values.find(value.name());
  if (known != options.values.end()) return known->second.type();
  return bound(value.type(), value.name(), find_extents(graph, options));
}

Datum seeded_input(const Graph& graph, size_t index, const SeedOptions& options) {
  const auto known = options.values.find(graph.value(graph.inputs().at(index)).name());
  if (known != options.values.end()) return known->second;
  // An odd multiplier keeps the streams of different inputs and neighbouring seeds apart.
  const uint64_t seed = (options.seed + 1) * 0x9E3779B97F4A7C15ULL + index;
  return Filler(graph, graph.inputs().at(index), seed).fill(bound_input_type(graph, index, options));
}

std::vector<Datum> seeded_inputs(const Graph& graph, const SeedOptions& options) {
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) inputs.push_back(seeded_input(graph, i, options));
  return inputs;
}

Graph bind_inputs(const Graph& graph, const SeedOptions& options) {
  Graph copy = graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    copy.set_type(graph.inputs()[i], bound_input_type(graph, i, options));
  }
  infer_types(copy);
  return copy;
}

Graph bind_inputs(const Graph& graph, const std::vector<Datum>& inputs) {
  check_inputs(graph, RunInputs(inputs));
  Graph copy = graph;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_tensor() && graph.type(graph.inputs()[i]).is_tensor()) {
      copy.set_type(graph.inputs()[i], inputs[i].tensor().type());
    }
  }
  infer_types(copy);
  return copy;
}

}  // namespace autograph
