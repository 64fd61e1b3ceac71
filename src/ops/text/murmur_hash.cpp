// murmur_hash: Austin Appleby's MurmurHash3 of 32 bits over the bytes of each element, those of a number as they lie in
// memory: what feature hashers of scikit-learn count by.
#include <bit>
#include <cstring>

#include "autograph/op_def.h"
#include "autograph/ops/text.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/text/draw_strings.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using HashedTypes = TypeList<std::string, int32_t, int64_t, uint32_t, uint64_t, float, double>;

uint32_t scrambled(uint32_t block) { return std::rotl(block * 0xcc9e2d51U, 15) * 0x1b873593U; }

uint32_t murmur3(std::string_view bytes, uint32_t seed) {
  uint32_t hash = seed;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint32_t)) {
    const size_t count = std::min(sizeof(uint32_t), bytes.size() - at);
    uint32_t block = 0;
    std::memcpy(&block, bytes.data() + at, count);
    hash ^= scrambled(block);
    if (count == sizeof block) hash = std::rotl(hash, 13) * 5 + 0xe6546b64U;
  }
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6bU;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
  return hash ^ hash >> 16;
}

template <class T>
std::string_view bytes_of(const T& element) {
  if constexpr (std::is_same_v<T, std::string>) {
    return element;
  } else {
    return {reinterpret_cast<const char*>(&element), sizeof element};
  }
}

void infer(InferContext& context) {
  context.set_output(0, context.attributes().flag("positive") ? DType::u32 : DType::i32, context.shape(0));
}

// Numbers with and without sign have the same bits.
void reference(const OpCall& call) {
  const auto seed = static_cast<uint32_t>(call.attributes.integer("seed"));
  char* out = call.output(0).mutable_data<char>();
  dispatch<HashedTypes>(call.input(0).dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& element : call.input(0).elements<T>()) {
      const uint32_t hash = murmur3(bytes_of(element), seed);
      std::memcpy(out, &hash, sizeof hash);
      out += sizeof hash;
    }
  });
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_bool(random) ? draw_strings(random, dims) : draw_tensor(random, DType::i64, dims, -9, 9)},
          .attributes = {{"seed", draw(random, 0, 9)}, {"positive", static_cast<int64_t>(draw_bool(random))}}};
}

}  // namespace

Var murmur_hash(Var x, int64_t seed, bool positive) {
  return apply(murmur_hash_def(), {x}, {{"seed", seed}, {"positive", static_cast<int64_t>(positive)}});
}

const OpDef& murmur_hash_def() {
  static const OpDef def{
      .name = "murmur_hash",
      .doc = "MurmurHash3 of 32 bits over the bytes of each element.",
      .inputs = {{"x", "T", "Strings or numbers of any shape."}},
      .outputs = {{"y", "H", "Shape of x; u32, or i32 with positive 0."}},
      .types = {{"T",
                 dtypes::kString | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64, DType::f32, DType::f64}},
                {"H", DTypeSet{DType::u32, DType::i32}}},
      .attributes = {{"seed", AttributeType::integer, "What hashes begin with.", int64_t{0}},
                     {"positive", AttributeType::integer, "1: hashes are without sign.", int64_t{1}}},
      .infer = infer,
      .reference = reference,
      .no_grad = "hashes are not differentiable",
      .onnx = {{.name = "MurmurHash3", .domain = "com.microsoft"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
