// Pieces of a long text as samples.
#include <utility>

#include "autograph/data.h"
#include "base/check.h"
#include "io/file.h"

namespace autograph {
namespace {

class TokenDataset : public Dataset {
 public:
  TokenDataset(std::vector<int32_t> tokens, int64_t length, int64_t stride)
      : tokens_(std::move(tokens)), length_(length), stride_(stride) {
    fields_ = {{"input", DType::i64, {length}}, {"target", DType::i64, {length}}};
  }

  int64_t size() const override {
    // The last target is one token behind the last input.
    return (static_cast<int64_t>(tokens_.size()) - length_ - 1) / stride_ + 1;
  }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, std::span<const TensorView> to) const override {
    const int32_t* from = tokens_.data() + index * stride_;
    for (int64_t i = 0; i < length_; ++i) {
      to[0].mutable_data<int64_t>()[i] = from[i];
      to[1].mutable_data<int64_t>()[i] = from[i + 1];
    }
  }

 private:
  std::vector<int32_t> tokens_;
  int64_t length_;
  int64_t stride_;
  std::vector<Field> fields_;
};

}  // namespace

std::string read_text(const std::string& path, const DataLimits& limits) {
  const io::InputFile file(path);
  AG_CHECK_USER(file.size_bytes() <= limits.max_bytes, BudgetError, "[data] '{}': expected at most {} bytes, got {}",
                path, limits.max_bytes, file.size_bytes());
  std::string text(static_cast<size_t>(file.size_bytes()), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

DatasetPtr token_dataset(std::vector<int32_t> tokens, int64_t length, int64_t stride) {
  AG_CHECK_USER(length >= 1 && stride >= 0, ValueError,
                "[data] tokens: expected a length of 1 or more and a stride of 0 or more, got {} and {}", length,
                stride);
  AG_CHECK_USER(static_cast<int64_t>(tokens.size()) > length, ValueError,
                "[data] tokens: expected {} or more for pieces of {}, got {}", length + 1, length, tokens.size());
  return std::make_shared<TokenDataset>(std::move(tokens), length, stride == 0 ? length : stride);
}

}  // namespace autograph
