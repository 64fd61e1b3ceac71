// Decoders of image files, one source per format: bytes to rows of 8-bit red, green and blue.
//
// All formats but BMP and the portable ones are read by the libraries that everybody reads them with; a build without
// one of these says so when it meets such a file. Alpha is dropped, not blended; 16-bit samples keep their upper byte;
// colour profiles and orientation tags are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/function_ref.h"

namespace autograph {

/// Gives the memory for an image of that height and width: 3 bytes a pixel, row after row.
using PixelSink = FunctionRef<uint8_t*(int64_t height, int64_t width)>;

/// Reads the whole image in `bytes` into the memory that `sink` gives. False when the bytes are no such image or a
/// damaged one; the pixels are then unspecified.
using ImageReader = bool (*)(std::span<const uint8_t> bytes, const PixelSink& sink);

bool read_bmp(std::span<const uint8_t> bytes, const PixelSink& sink);
bool read_jpeg(std::span<const uint8_t> bytes, const PixelSink& sink);
bool read_jpeg2000(std::span<const uint8_t> bytes, const PixelSink& sink);
bool read_png(std::span<const uint8_t> bytes, const PixelSink& sink);
bool read_pnm(std::span<const uint8_t> bytes, const PixelSink& sink);
bool read_tiff(std::span<const uint8_t> bytes, const PixelSink& sink);
bool read_webp(std::span<const uint8_t> bytes, const PixelSink& sink);

/// The reader for what the first bytes say it is; null for none of these formats.
ImageReader find_image_reader(std::span<const uint8_t> bytes);

/// Is an image of these extents one that is read? A file of some bytes may claim any extents.
bool is_sane_extent(int64_t height, int64_t width);

/// Throws UnsupportedError: this build lacks the library for `format`, Debian's `package` at build time.
[[noreturn]] void throw_no_decoder(std::string_view format, std::string_view package);

}  // namespace autograph
