// The portable formats: PBM, PGM and PPM as text (P1, P2, P3) and as bytes (P4, P5, P6).
#include <algorithm>
#include <optional>

#include "ops/image/image_decoder.h"

namespace autograph {
namespace {

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

// Reads the numbers of a header or of a text image; comments run from # to the end of the line.
class Words {
 public:
  Words(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}

  // The next number; nothing when there is none or when it is beyond `most`. Bits of text images may stand unseparated.
  std::optional<int64_t> next(int64_t most, bool one_digit = false) {
    skip_space();
    if (at_ >= bytes_.size() || !is_digit(bytes_[at_])) return std::nullopt;
    int64_t value = 0;
    do {
      value = 10 * value + (bytes_[at_++] - '0');
      if (value > most) return std::nullopt;
    } while (!one_digit && at_ < bytes_.size() && is_digit(bytes_[at_]));
    return value;
  }

  // What follows the one white character behind the header.
  std::span<const uint8_t> rest() const { return bytes_.subspan(std::min(bytes_.size(), at_ + 1)); }

 private:
  void skip_space() {
    while (at_ < bytes_.size() && (is_space(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      } else {
        ++at_;
      }
    }
  }

  std::span<const uint8_t> bytes_;
  size_t at_;
};

struct Header {
  int64_t width = 0;
  int64_t height = 0;
  int64_t most = 1;  // the value of white
  int64_t channels = 1;
  bool bits = false;
  bool text = false;

  int64_t samples() const { return width * height * channels; }
};

uint8_t to_byte(int64_t value, int64_t most) {
  return static_cast<uint8_t>((std::min(value, most) * 255 + most / 2) / most);
}

// `write(i, value)` takes sample i as 0..255.
template <class Write>
bool read_text(Words& words, const Header& header, const Write& write) {
  for (int64_t i = 0; i < header.samples(); ++i) {
    const auto value = words.next(header.most, header.bits);
    if (!value) return false;
    write(i, header.bits ? static_cast<uint8_t>(*value != 0 ? 0 : 255) : to_byte(*value, header.most));
  }
  return true;
}

template <class Write>
void read_bits(std::span<const uint8_t> bytes, const Header& header, const Write& write) {
  const int64_t row_bytes = (header.width + 7) / 8;
  for (int64_t i = 0; i < header.samples(); ++i) {
    const int64_t x = i % header.width;
    const uint8_t byte = bytes[static_cast<size_t>(i / header.width * row_bytes + x / 8)];
    write(i, static_cast<uint8_t>((byte >> (7 - x % 8)) & 1 ? 0 : 255));
  }
}

template <class Write>
void read_bytes(std::span<const uint8_t> bytes, const Header& header, const Write& write) {
  for (size_t i = 0; i < static_cast<size_t>(header.samples()); ++i) {
    const int64_t value = header.most < 256 ? bytes[i] : (bytes[2 * i] << 8) | bytes[2 * i + 1];
    write(static_cast<int64_t>(i), to_byte(value, header.most));
  }
}

size_t size_of_samples(const Header& header) {
  if (header.bits) return static_cast<size_t>((header.width + 7) / 8 * header.height);
  return static_cast<size_t>(header.samples()) * (header.most < 256 ? 1 : 2);
}

}  // namespace

bool read_pnm(std::span<const uint8_t> bytes, const PixelSink& sink) {
  constexpr int64_t kMostExtent = int64_t{1} << 30;
  const uint8_t kind = bytes[1];
  Words words(bytes, 2);
  Header header{
      .channels = kind == '3' || kind == '6' ? 3 : 1, .bits = kind == '1' || kind == '4', .text = kind <= '3'};
  header.width = words.next(kMostExtent).value_or(0);
  header.height = words.next(kMostExtent).value_or(0);
  if (!header.bits) header.most = words.next(65535).value_or(0);
  if (!is_sane_extent(header.height, header.width) || header.most < 1) return false;
  // Every sample takes a bit of the file or more, so that no small file asks for much memory.
  const std::span<const uint8_t> rest = words.rest();
  if (header.text ? rest.size() + 1 < static_cast<size_t>(header.samples()) : rest.size() < size_of_samples(header)) {
    return false;
  }
  uint8_t* out = sink(header.height, header.width);
  const auto write = [&](int64_t i, uint8_t value) {
    if (header.channels == 3) {
      out[i] = value;
    } else {
      std::fill_n(out + 3 * i, 3, value);
    }
  };
  if (header.text) return read_text(words, header, write);
  if (header.bits) {
    read_bits(rest, header, write);
  } else {
    read_bytes(rest, header, write);
  }
  return true;
}

}  // namespace autograph
