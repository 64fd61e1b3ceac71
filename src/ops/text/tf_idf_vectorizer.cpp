// tf_idf_vectorizer: counts n-grams of each row of tokens. An n-gram takes n tokens that lie skip + 1 apart, for every
// length min_gram_length..max_gram_length and every skip 0..max_skip_count. Entry ngram_indexes[i] of the output
// belongs to the i-th n-gram of the pool, which lists all 1-grams, then all 2-grams, ...; ngram_counts[n-1] is where
// the n-grams begin. mode TF gives counts, IDF the weight where the count is not 0, TFIDF count times weight.
#include <algorithm>
#include <map>

#include "autograph/op_def.h"
#include "autograph/ops/text.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr const char* kStrings = "pool_strings";
constexpr const char* kIntegers = "pool_int64s";

int64_t pool_size(const Attributes& attributes) {
  if (const auto* texts = attributes.find_as<std::vector<std::string>>(kStrings)) {
    return static_cast<int64_t>(texts->size());
  }
  const auto* integers = attributes.find_as<std::vector<int64_t>>(kIntegers);
  return integers ? static_cast<int64_t>(integers->size()) : 0;
}

// Where the n-grams of length `n` begin and end in the pool, in tokens.
std::pair<int64_t, int64_t> pool_segment(const Attributes& attributes, size_t n) {
  const auto& counts = attributes.integers("ngram_counts");
  return {counts[n - 1], n < counts.size() ? counts[n] : pool_size(attributes)};
}

// Checks the pool and returns how many n-grams it holds.
int64_t checked_pool(const InferContext& context) {
  const Attributes& attributes = context.attributes();
  const auto& counts = attributes.integers("ngram_counts");
  int64_t grams = 0;
  for (size_t n = 1; n <= counts.size(); ++n) {
    const auto [begin, end] = pool_segment(attributes, n);
    const auto length = static_cast<int64_t>(n);
    if (begin < 0 || begin > end || end > pool_size(attributes) || (end - begin) % length != 0) {
      context.fail<ValueError>("ngram_counts", fmt::format("expected whole {}-grams inside a pool of {}, got {}..{}", n,
                                                           pool_size(attributes), begin, end));
    }
    grams += (end - begin) / length;
  }
  return grams;
}

void check_attributes(const InferContext& context) {
  const Attributes& attributes = context.attributes();
  const bool is_text = context.dtype(0) == DType::string;
  if (!attributes.contains(is_text ? kStrings : kIntegers) || attributes.contains(is_text ? kIntegers : kStrings)) {
    context.fail<ValueError>("pool", fmt::format("expected {} alone for dtype {}", is_text ? kStrings : kIntegers,
                                                 to_string(context.dtype(0))));
  }
  const auto grams = static_cast<size_t>(checked_pool(context));
  const auto& indexes = attributes.integers("ngram_indexes");
  if (indexes.size() != grams || indexes.empty() || *std::min_element(indexes.begin(), indexes.end()) < 0) {
    context.fail<ValueError>("ngram_indexes",
                             fmt::format("expected {} entries of 0 or more, got {}", grams, indexes.size()));
  }
  const auto* weights = attributes.find_as<std::vector<float>>("weights");
  if (weights && weights->size() != grams) {
    context.fail<ValueError>("weights", fmt::format("expected {} entries, got {}", grams, weights->size()));
  }
  const int64_t least = attributes.integer("min_gram_length");
  const int64_t most = attributes.integer("max_gram_length");
  if (least < 1 || most < least || attributes.integer("max_skip_count") < 0) {
    context.fail<ValueError>(
        "lengths", fmt::format("expected 1 <= min <= max and skips of 0 or more, got {}..{} and {}", least, most,
                               attributes.integer("max_skip_count")));
  }
}

void infer(InferContext& context) {
  check_attributes(context);
  const auto& indexes = context.attributes().integers("ngram_indexes");
  const int64_t largest = *std::max_element(indexes.begin(), indexes.end());
  context.require<ValueError>(largest < (int64_t{1} << 40), "ngram_indexes", "expected less than 2^40");
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, DType::f32, Shape::unknown());
  if (x.rank() < 1 || x.rank() > 2) {
    context.fail<ShapeError>("x", fmt::format("expected [tokens] or [rows, tokens], got {}", to_string(x)));
  }
  Shape y = x;
  y[y.rank() - 1] = largest + 1;
  context.set_output(0, DType::f32, std::move(y));
}

// Position of each n-gram in the list of all of them.
template <class T>
std::map<std::vector<T>, size_t> make_table(const Attributes& attributes, const std::vector<T>& pool) {
  std::map<std::vector<T>, size_t> table;
  size_t next = 0;
  for (size_t n = 1; n <= attributes.integers("ngram_counts").size(); ++n) {
    const auto [begin, end] = pool_segment(attributes, n);
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(n)) {
      table.emplace(std::vector<T>(pool.begin() + at, pool.begin() + at + static_cast<int64_t>(n)), next++);
    }
  }
  return table;
}

// counts[k] += how often n-gram k occurs among `tokens`.
template <class T>
void count_row(const Attributes& attributes, const std::map<std::vector<T>, size_t>& table,
               const std::vector<T>& tokens, std::vector<int64_t>& counts) {
  const auto length = static_cast<int64_t>(tokens.size());
  const auto longest = static_cast<int64_t>(attributes.integers("ngram_counts").size());
  const int64_t most = std::min({attributes.integer("max_gram_length"), longest, length});
  for (int64_t n = attributes.integer("min_gram_length"); n <= most; ++n) {
    // A single token skips nothing.
    const int64_t skips = n == 1 ? 0 : std::min(attributes.integer("max_skip_count"), length);
    for (int64_t step = 1; step <= skips + 1 && (n - 1) * step < length; ++step) {
      for (int64_t start = 0; start + (n - 1) * step < length; ++start) {
        std::vector<T> gram;
        for (int64_t k = 0; k < n; ++k) gram.push_back(tokens[static_cast<size_t>(start + k * step)]);
        const auto found = table.find(gram);
        if (found != table.end()) ++counts[found->second];
      }
    }
  }
}

template <class T, class Token>
void vectorize(const OpCall& call, const std::vector<Token>& pool) {
  const Attributes& attributes = call.attributes;
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const auto table = make_table(attributes, pool);
  const auto& indexes = attributes.integers("ngram_indexes");
  const auto* weights = attributes.find_as<std::vector<float>>("weights");
  const std::string& mode = attributes.text("mode");
  const int64_t length = x.dim(x.rank() - 1);
  const int64_t width = y.dim(y.rank() - 1);
  const int64_t rows = x.rank() == 2 ? x.dim(0) : 1;
  float* out = y.mutable_data<float>();
  std::fill_n(out, y.num_elements(), 0.0F);
  for (int64_t row = 0; row < rows; ++row) {
    const T* first = x.data<T>() + row * length;
    std::vector<int64_t> counts(indexes.size(), 0);
    count_row(attributes, table, std::vector<Token>(first, first + length), counts);
    for (size_t k = 0; k < counts.size(); ++k) {
      const float weight = mode != "TF" && weights ? (*weights)[k] : 1.0F;
      const int64_t count = mode == "IDF" ? std::min<int64_t>(counts[k], 1) : counts[k];
      if (count > 0) out[row * width + indexes[k]] = static_cast<float>(count) * weight;
    }
  }
}

void reference(const OpCall& call) {
  switch (call.input(0).dtype()) {
    case DType::string: return vectorize<std::string>(call, call.attributes.get<std::vector<std::string>>(kStrings));
    case DType::i32: return vectorize<int32_t>(call, call.attributes.integers(kIntegers));
    default: return vectorize<int64_t>(call, call.attributes.integers(kIntegers));
  }
}

OpSample sample(Random& random) {
  Dims dims{draw(random, 1, 8)};
  if (draw_bool(random)) dims.insert(dims.begin(), draw(random, 1, 3));
  const int64_t least = draw(random, 1, 2);
  OpSample result{.inputs = {draw_tensor(random, DType::i64, dims, 0, 3)},
                  .attributes = {{"mode", std::string(draw_one_of<const char*>(random, {"TF", "IDF", "TFIDF"}))},
                                 {"min_gram_length", least},
                                 {"max_gram_length", draw(random, least, 3)},
                                 {"max_skip_count", draw(random, 0, 3)},
                                 {"ngram_counts", std::vector<int64_t>{0, 2}},
                                 {"ngram_indexes", std::vector<int64_t>{0, 2, 1, 3}},
                                 {kIntegers, std::vector<int64_t>{1, 2, 0, 1, 2, 3}}}};
  if (draw_bool(random)) result.attributes.set("weights", std::vector<float>{0.5F, 1.0F, 2.0F, 3.0F});
  return result;
}

AttributeSpec required_integers(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::integers, .doc = doc, .required = true};
}

AttributeSpec required_integer(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::integer, .doc = doc, .required = true};
}

}  // namespace

Var tf_idf_vectorizer(Var x, Attributes attributes) {
  return apply(tf_idf_vectorizer_def(), {x}, std::move(attributes));
}

const OpDef& tf_idf_vectorizer_def() {
  static const OpDef def{
      .name = "tf_idf_vectorizer",
      .doc = "Counts the n-grams of a pool in each row of tokens, maybe weighted.",
      .inputs = {{"x", "T", "[tokens] or [rows, tokens]."}},
      .outputs = {{"y", "F", "[largest index + 1], a row each."}},
      .types = {{"T", {DType::string, DType::i32, DType::i64}}, {"F", dtypes::kF32}},
      .attributes = {{.name = "mode",
                      .type = AttributeType::text,
                      .doc = "What to give: counts, weights, or counts times weights.",
                      .required = true,
                      .allowed = {"TF", "IDF", "TFIDF"}},
                     required_integer("min_gram_length", "Shortest n-gram, 1 or more."),
                     required_integer("max_gram_length", "Longest n-gram."),
                     required_integer("max_skip_count", "Most tokens between two of an n-gram."),
                     required_integers("ngram_counts", "Where the 1-grams, 2-grams, ... begin in the pool."),
                     required_integers("ngram_indexes", "Position of each n-gram in the output."),
                     {kIntegers, AttributeType::integers, "The pool, for integer tokens."},
                     {kStrings, AttributeType::texts, "The pool, for string tokens."},
                     {"weights", AttributeType::reals, "Weight of each n-gram; 1 when absent."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "tokens are not differentiable",
      .onnx = {{"TfIdfVectorizer", 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
