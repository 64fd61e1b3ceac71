// PNG, by libpng: every depth and colour type as 8-bit RGB. Gamma is left alone, as most programs do.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/image/image_decoder.h"

#ifdef AG_HAS_PNG
#include <png.h>
#endif

namespace autograph {

#ifdef AG_HAS_PNG
namespace {

struct Source {
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

void take_bytes(png_structp png, png_bytep out, png_size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->at) png_error(png, "the file ends early");
  std::memcpy(out, source->bytes.data() + source->at, count);
  source->at += count;
}

void stay_silent(png_structp, png_const_charp) {}

[[noreturn]] void leave(png_structp png, png_const_charp) { png_longjmp(png, 1); }

// The library jumps out of itself at errors: nothing in these two functions has a destructor.
bool read_header(png_structp png, png_infop info, int64_t& height, int64_t& width, int& passes) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  height = png_get_image_height(png, info);
  width = png_get_image_width(png, info);
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return png_get_rowbytes(png, info) == static_cast<size_t>(3 * width);
}

bool read_rows(png_structp png, png_bytep out, int64_t height, int64_t width, int passes) {
  if (setjmp(png_jmpbuf(png))) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < height; ++y) png_read_row(png, out + 3 * width * y, nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

bool read_png(std::span<const uint8_t> bytes, const PixelSink& sink) {
  struct Reader {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave, stay_silent);
    png_infop info = png ? png_create_info_struct(png) : nullptr;
    Reader() = default;
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  } reader;
  if (!reader.info) return false;
  Source source{bytes};
  png_set_read_fn(reader.png, &source, take_bytes);
  int64_t height = 0;
  int64_t width = 0;
  int passes = 1;
  if (!read_header(reader.png, reader.info, height, width, passes) || !is_sane_extent(height, width)) return false;
  return read_rows(reader.png, sink(height, width), height, width, passes);
}
#else
bool read_png(std::span<const uint8_t>, const PixelSink&) { throw_no_decoder("PNG", "libpng-dev"); }
#endif

}  // namespace autograph
