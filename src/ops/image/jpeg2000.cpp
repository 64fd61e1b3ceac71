// JPEG 2000 files and bare code streams, by OpenJPEG: one, three or more components of any depth, subsampled or not.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "ops/image/image_decoder.h"

#ifdef AG_HAS_JPEG2000
#include <openjpeg.h>
#endif

namespace autograph {

#ifdef AG_HAS_JPEG2000
namespace {

struct Source {
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

OPJ_SIZE_T take_bytes(void* out, OPJ_SIZE_T count, void* data) {
  auto* source = static_cast<Source*>(data);
  const size_t taken = std::min(count, source->bytes.size() - source->at);
  if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);  // the library's sign of the end
  std::memcpy(out, source->bytes.data() + source->at, taken);
  source->at += taken;
  return taken;
}

OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void* data) {
  auto* source = static_cast<Source*>(data);
  const auto left = static_cast<OPJ_OFF_T>(source->bytes.size() - source->at);
  if (count < 0 || count > left) return -1;
  source->at += static_cast<size_t>(count);
  return count;
}

OPJ_BOOL seek(OPJ_OFF_T offset, void* data) {
  auto* source = static_cast<Source*>(data);
  if (offset < 0 || static_cast<size_t>(offset) > source->bytes.size()) return OPJ_FALSE;
  source->at = static_cast<size_t>(offset);
  return OPJ_TRUE;
}

template <auto Destroy>
struct Closer {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using Stream = std::unique_ptr<opj_stream_t, Closer<opj_stream_destroy>>;
using Codec = std::unique_ptr<opj_codec_t, Closer<opj_destroy_codec>>;
using Image = std::unique_ptr<opj_image_t, Closer<opj_image_destroy>>;

Stream open(Source& source) {
  Stream stream(opj_stream_default_create(OPJ_TRUE));
  if (!stream) return nullptr;
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), source.bytes.size());
  opj_stream_set_read_function(stream.get(), take_bytes);
  opj_stream_set_skip_function(stream.get(), skip_bytes);
  opj_stream_set_seek_function(stream.get(), seek);
  return stream;
}

// Sample of a component at a pixel of the image, as 0..255.
int sample_at(const opj_image_comp_t& component, int64_t y, int64_t x) {
  const int64_t row = std::min<int64_t>(y / component.dy, component.h - 1);
  const int64_t column = std::min<int64_t>(x / component.dx, component.w - 1);
  int64_t value = component.data[row * component.w + column];
  if (component.sgnd) value += int64_t{1} << (component.prec - 1);
  if (component.prec < 8) return static_cast<int>(value * 255 / ((1 << component.prec) - 1));
  return static_cast<int>(std::clamp<int64_t>(value >> (component.prec - 8), 0, 255));
}

// The luma and chroma of ITU-R 601 to red, green and blue.
void from_luma(const std::array<int, 3>& in, uint8_t* rgb) {
  const double blue = in[1] - 128;
  const double red = in[2] - 128;
  const std::array<double, 3> value{in[0] + 1.402 * red, in[0] - 0.344136 * blue - 0.714136 * red,
                                    in[0] + 1.772 * blue};
  for (size_t c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(std::clamp<long>(std::lround(value[c]), 0, 255));
}

bool is_readable(const opj_image_t& image) {
  for (uint32_t c = 0; c < image.numcomps; ++c) {
    const opj_image_comp_t& component = image.comps[c];
    const bool fits = component.data && component.w > 0 && component.h > 0 && component.dx > 0 && component.dy > 0 &&
                      component.prec >= 1 && component.prec <= 31;
    if (!fits) return false;
  }
  return image.numcomps > 0;
}

void write_pixels(const opj_image_t& image, int64_t height, int64_t width, uint8_t* out) {
  const bool gray = image.numcomps < 3;
  const bool luma = !gray && image.color_space == OPJ_CLRSPC_SYCC;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, out += 3) {
      std::array<int, 3> values{};
      for (size_t c = 0; c < 3; ++c) values[c] = sample_at(image.comps[gray ? 0 : c], y, x);
      if (luma) {
        from_luma(values, out);
      } else {
        for (size_t c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(values[c]);
      }
    }
  }
}

}  // namespace

bool read_jpeg2000(std::span<const uint8_t> bytes, const PixelSink& sink) {
  const bool bare = bytes[0] == 0xFF;
  const Codec codec(opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  Source source{bytes};
  const Stream stream = open(source);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!codec || !stream || !opj_setup_decoder(codec.get(), &parameters)) return false;
  opj_image_t* header = nullptr;
  const bool has_header = opj_read_header(stream.get(), codec.get(), &header);
  const Image image(header);
  if (!has_header || !image) return false;
  const int64_t height = int64_t{image->y1} - image->y0;
  const int64_t width = int64_t{image->x1} - image->x0;
  if (!is_sane_extent(height, width)) return false;
  uint8_t* out = sink(height, width);
  if (!opj_decode(codec.get(), stream.get(), image.get()) || !opj_end_decompress(codec.get(), stream.get()))
    return false;
  if (!is_readable(*image)) return false;
  write_pixels(*image, height, width, out);
  return true;
}
#else
bool read_jpeg2000(std::span<const uint8_t>, const PixelSink&) { throw_no_decoder("JPEG 2000", "libopenjp2-7-dev"); }
#endif

}  // namespace autograph
