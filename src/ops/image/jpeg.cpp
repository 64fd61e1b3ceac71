// JPEG, by libjpeg-turbo with its exact integer transform and its smooth upsampling of colour, as ONNX asks.
#include <cstdio>
#include <vector>

#include "ops/image/image_decoder.h"

#ifdef AG_HAS_JPEG
#include <jpeglib.h>
// After jpeglib.h, whose types it uses.
#include <jerror.h>

#include <csetjmp>
#endif

namespace autograph {

#ifdef AG_HAS_JPEG
namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // first: the library hands its address back
  std::jmp_buf jump;
  bool damaged;
};

void leave(j_common_ptr info) { std::longjmp(reinterpret_cast<ErrorManager*>(info->err)->jump, 1); }

// Warnings that mean missing or damaged pixels.
void note(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)) {
    reinterpret_cast<ErrorManager*>(info->err)->damaged = true;
  }
}

// The library jumps out of itself at errors: nothing in these two functions has a destructor.
bool start(jpeg_decompress_struct& info, ErrorManager& errors, std::span<const uint8_t> bytes) {
  if (setjmp(errors.jump)) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  if (jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) return false;
  const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  return true;
}

// Writes `components` bytes a pixel.
bool read_rows(jpeg_decompress_struct& info, ErrorManager& errors, uint8_t* out) {
  if (setjmp(errors.jump)) return false;
  jpeg_start_decompress(&info);
  const size_t row_bytes = static_cast<size_t>(info.output_width) * static_cast<size_t>(info.output_components);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = out + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return !errors.damaged;
}

// Cyan, magenta, yellow and black to red, green and blue. Adobe's files, nearly all there are, store them inverted.
void write_inks(const std::vector<uint8_t>& inks, bool inverted, uint8_t* out) {
  for (size_t i = 0; i < inks.size() / 4; ++i) {
    const auto amount = [&](size_t c) { return inverted ? inks[4 * i + c] : 255 - inks[4 * i + c]; };
    for (size_t c = 0; c < 3; ++c) out[3 * i + c] = static_cast<uint8_t>((amount(c) * amount(3) + 127) / 255);
  }
}

}  // namespace

bool read_jpeg(std::span<const uint8_t> bytes, const PixelSink& sink) {
  ErrorManager errors{};
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = note;
  struct Guard {
    jpeg_decompress_struct& info;
    ~Guard() { jpeg_destroy_decompress(&info); }
  } guard{info};
  if (!start(info, errors, bytes) || !is_sane_extent(info.image_height, info.image_width)) return false;
  uint8_t* out = sink(info.image_height, info.image_width);
  if (info.out_color_space == JCS_RGB) return read_rows(info, errors, out);
  std::vector<uint8_t> inks(size_t{4} * info.image_height * info.image_width);
  if (!read_rows(info, errors, inks.data())) return false;
  write_inks(inks, info.saw_Adobe_marker != FALSE, out);
  return true;
}
#else
bool read_jpeg(std::span<const uint8_t>, const PixelSink&) { throw_no_decoder("JPEG", "libjpeg-dev"); }
#endif

}  // namespace autograph
