// Windows bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, palettes, bit fields, run-length coding, rows from either end.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "ops/image/image_decoder.h"

namespace autograph {
namespace {

constexpr size_t kFileHeader = 14;
constexpr uint32_t kCoreHeader = 12;  // OS/2 1.x
constexpr uint32_t kInfoHeader = 40;
constexpr size_t kMasksAt = kFileHeader + kInfoHeader;

enum Compression : uint32_t { kPlain = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3, kAlphaBitFields = 6 };

// Little-endian; 0 where the file ends before.
uint32_t number(std::span<const uint8_t> bytes, size_t offset, size_t size) {
  uint32_t value = 0;
  if (offset > bytes.size() || size > bytes.size() - offset) return 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint32_t>(bytes[offset + i]) << (8 * i);
  return value;
}

struct Bitmap {
  int64_t width = 0;
  int64_t height = 0;
  bool top_down = false;
  uint32_t bits = 0;  // per pixel
  uint32_t compression = kPlain;
  size_t palette_at = 0;
  size_t palette_entry = 4;  // bytes
  size_t colors = 0;         // of the palette
  size_t pixels_at = 0;
  std::array<uint32_t, 3> masks{};  // of red, green and blue, for 16 and 32 bits

  bool has_palette() const { return bits <= 8; }
  bool is_run_length_coded() const { return compression == kRle8 || compression == kRle4; }
  size_t row_bytes() const { return (static_cast<size_t>(width) * bits + 31) / 32 * 4; }
};

void read_masks(std::span<const uint8_t> bytes, Bitmap& bitmap) {
  if (bitmap.compression == kBitFields || bitmap.compression == kAlphaBitFields) {
    for (size_t i = 0; i < 3; ++i) bitmap.masks[i] = number(bytes, kMasksAt + 4 * i, 4);
  } else if (bitmap.bits == 16) {
    bitmap.masks = {0x7C00, 0x03E0, 0x001F};
  } else {
    bitmap.masks = {0xFF0000, 0x00FF00, 0x0000FF};
  }
}

Bitmap read_header(std::span<const uint8_t> bytes) {
  Bitmap bitmap;
  const uint32_t header = number(bytes, kFileHeader, 4);
  bitmap.pixels_at = number(bytes, 10, 4);
  bitmap.palette_at = kFileHeader + header;
  if (header == kCoreHeader) {
    bitmap.width = number(bytes, 18, 2);
    bitmap.height = number(bytes, 20, 2);
    bitmap.bits = number(bytes, 24, 2);
    bitmap.palette_entry = 3;
  } else if (header >= kInfoHeader) {
    bitmap.width = static_cast<int32_t>(number(bytes, 18, 4));
    bitmap.height = static_cast<int32_t>(number(bytes, 22, 4));
    bitmap.bits = number(bytes, 28, 2);
    bitmap.compression = number(bytes, 30, 4);
    bitmap.colors = number(bytes, 46, 4);
  }
  bitmap.top_down = bitmap.height < 0;
  bitmap.height = bitmap.top_down ? -bitmap.height : bitmap.height;
  if (bitmap.has_palette() && (bitmap.colors == 0 || bitmap.colors > 256)) bitmap.colors = size_t{1} << bitmap.bits;
  read_masks(bytes, bitmap);
  return bitmap;
}

bool is_readable(const Bitmap& bitmap) {
  if (!is_sane_extent(bitmap.height, bitmap.width)) return false;
  switch (bitmap.compression) {
    case kPlain:
      return bitmap.bits == 1 || bitmap.bits == 4 || (bitmap.bits % 8 == 0 && bitmap.bits <= 32 && bitmap.bits > 0);
    case kRle8: return bitmap.bits == 8;
    case kRle4: return bitmap.bits == 4;
    case kBitFields:
    case kAlphaBitFields: return bitmap.bits == 16 || bitmap.bits == 32;
    default: return false;
  }
}

// ---- Palette indices -------------------------------------------------------------------------------------------

// Indices of plain rows, in the order of the file.
void read_plain_indices(std::span<const uint8_t> bytes, const Bitmap& bitmap, std::vector<uint8_t>& indices) {
  const size_t row_bytes = bitmap.row_bytes();
  const size_t per_byte = 8 / bitmap.bits;
  const auto width = static_cast<size_t>(bitmap.width);
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t x = i % width;
    const size_t shift = 8 - bitmap.bits * (x % per_byte + 1);
    indices[i] = (bytes[i / width * row_bytes + x / per_byte] >> shift) & ((1U << bitmap.bits) - 1);
  }
}

// Walks over the codes of a run-length coded bitmap; pixels that no code sets keep index 0.
class RunLengthReader {
 public:
  RunLengthReader(std::span<const uint8_t> bytes, const Bitmap& bitmap, std::vector<uint8_t>& indices)
      : bytes_(bytes), bitmap_(bitmap), indices_(indices) {}

  bool read() {
    while (at_ + 2 <= bytes_.size()) {
      const uint8_t count = bytes_[at_];
      const uint8_t code = bytes_[at_ + 1];
      at_ += 2;
      if (count > 0) {
        for (size_t i = 0; i < count; ++i) put(bitmap_.bits == 8 ? code : i % 2 == 0 ? code >> 4 : code & 15);
      } else if (code == kEndOfRow) {
        x_ = 0;
        ++y_;
      } else if (code == kEndOfBitmap) {
        return true;
      } else if (code == kMove) {
        if (at_ + 2 > bytes_.size()) return false;
        x_ += bytes_[at_];
        y_ += bytes_[at_ + 1];
        at_ += 2;
      } else if (!read_literals(code)) {
        return false;
      }
    }
    return false;
  }

 private:
  enum Code : uint8_t { kEndOfRow = 0, kEndOfBitmap = 1, kMove = 2 };

  bool read_literals(size_t count) {
    const size_t size = bitmap_.bits == 8 ? count : (count + 1) / 2;
    if (size > bytes_.size() - at_) return false;
    for (size_t i = 0; i < count; ++i) {
      const uint8_t byte = bytes_[at_ + (bitmap_.bits == 8 ? i : i / 2)];
      put(bitmap_.bits == 8 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15);
    }
    at_ = std::min(bytes_.size(), at_ + size + size % 2);
    return true;
  }

  void put(uint8_t index) {
    if (x_ < bitmap_.width && y_ < bitmap_.height) indices_[static_cast<size_t>(y_ * bitmap_.width + x_)] = index;
    ++x_;
  }

  std::span<const uint8_t> bytes_;
  const Bitmap& bitmap_;
  std::vector<uint8_t>& indices_;
  size_t at_ = 0;
  int64_t x_ = 0;
  int64_t y_ = 0;
};

// ---- Rows ------------------------------------------------------------------------------------------------------

// The bits of `mask` in `pixel`, stretched to 0..255.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int low = std::countr_zero(mask);
  const uint64_t most = mask >> low;
  return static_cast<uint8_t>((((pixel & mask) >> low) * uint64_t{255} + most / 2) / most);
}

// Row `row` of the file counts from the bottom unless the bitmap says otherwise.
uint8_t* target_row(uint8_t* out, const Bitmap& bitmap, int64_t row) {
  return out + 3 * bitmap.width * (bitmap.top_down ? row : bitmap.height - 1 - row);
}

void write_colors(std::span<const uint8_t> bytes, const Bitmap& bitmap, const std::vector<uint8_t>& indices,
                  uint8_t* out) {
  for (int64_t y = 0; y < bitmap.height; ++y) {
    uint8_t* row = target_row(out, bitmap, y);
    for (int64_t x = 0; x < bitmap.width; ++x) {
      const size_t index = std::min<size_t>(indices[static_cast<size_t>(y * bitmap.width + x)], bitmap.colors - 1);
      const size_t entry = bitmap.palette_at + index * bitmap.palette_entry;
      for (size_t c = 0; c < 3; ++c)
        row[3 * x + static_cast<int64_t>(c)] = static_cast<uint8_t>(number(bytes, entry + 2 - c, 1));
    }
  }
}

void write_true_colors(std::span<const uint8_t> pixels, const Bitmap& bitmap, uint8_t* out) {
  const size_t pixel_bytes = bitmap.bits / 8;
  for (int64_t y = 0; y < bitmap.height; ++y) {
    uint8_t* row = target_row(out, bitmap, y);
    for (int64_t x = 0; x < bitmap.width; ++x) {
      const size_t at = static_cast<size_t>(y) * bitmap.row_bytes() + static_cast<size_t>(x) * pixel_bytes;
      const uint32_t pixel = number(pixels, at, pixel_bytes);
      for (size_t c = 0; c < 3; ++c) row[3 * x + static_cast<int64_t>(c)] = channel(pixel, bitmap.masks[c]);
    }
  }
}

}  // namespace

bool read_bmp(std::span<const uint8_t> bytes, const PixelSink& sink) {
  const Bitmap bitmap = read_header(bytes);
  if (!is_readable(bitmap) || bitmap.pixels_at > bytes.size()) return false;
  const std::span<const uint8_t> pixels = bytes.subspan(bitmap.pixels_at);
  const size_t rows_bytes = bitmap.row_bytes() * static_cast<size_t>(bitmap.height);
  if (!bitmap.is_run_length_coded() && rows_bytes > pixels.size()) return false;
  uint8_t* out = sink(bitmap.height, bitmap.width);
  if (!bitmap.has_palette()) {
    write_true_colors(pixels, bitmap, out);
    return true;
  }
  std::vector<uint8_t> indices(static_cast<size_t>(bitmap.height * bitmap.width));
  if (bitmap.is_run_length_coded()) {
    if (!RunLengthReader(pixels, bitmap, indices).read()) return false;
  } else {
    read_plain_indices(pixels, bitmap, indices);
  }
  write_colors(bytes, bitmap, indices, out);
  return true;
}

}  // namespace autograph
