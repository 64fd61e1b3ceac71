#include "backends/gpu/emit/text/window.h"

#include <algorithm>
#include <functional>

#include "base/checked_int.h"
#include "base/join.h"

namespace autograph::gpu {
namespace {

// May a window reach beyond the input?
bool can_be_outside(const WindowAxis& axis) {
  return axis.pad_begin > 0 ||
         (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation - axis.pad_begin >= axis.in;
}

// Row-major, of coordinates c0, c1, ...
std::string flat(const IndexType& index, const Dims& extents, std::string_view stem, std::string_view id = "") {
  std::string text;
  for (size_t a = 0; a < extents.size(); ++a) {
    const std::string c = fmt::format("{}{}{}", stem, a, id);
    text = text.empty() ? c : fmt::format("({}) * {} + {}", text, index.literal(extents[a]), c);
  }
  return text.empty() ? "0" : text;
}

// Where the window at output position `o` begins along axis `a`, and how far behind that its tap `k` lies (both flat).
std::string begin_of(const IndexType& index, const std::vector<WindowAxis>& axes, std::string_view o, size_t a) {
  return fmt::format("({}) * {} - {}", coordinate(index, o, out_extents(axes), a), index.literal(axes[a].stride),
                     index.literal(axes[a].pad_begin));
}
std::string reach_of(const IndexType& index, const std::vector<WindowAxis>& axes, std::string_view k, size_t a) {
  return fmt::format("({}) * {}", coordinate(index, k, kernel_extents(axes), a), index.literal(axes[a].dilation));
}

std::string inside(const IndexType& index, const WindowAxis& axis, size_t a) {
  return fmt::format("p{0} >= 0 && p{0} < {1}", a, index.literal(axis.in));
}

}  // namespace

Dims in_extents(const std::vector<WindowAxis>& axes) {
  Dims dims;
  for (const WindowAxis& axis : axes) dims.push_back(axis.in);
  return dims;
}

Dims out_extents(const std::vector<WindowAxis>& axes) {
  Dims dims;
  for (const WindowAxis& axis : axes) dims.push_back(axis.out);
  return dims;
}

Dims kernel_extents(const std::vector<WindowAxis>& axes) {
  Dims dims;
  for (const WindowAxis& axis : axes) dims.push_back(axis.kernel);
  return dims;
}

void cover_windows(IndexType& index, const std::vector<WindowAxis>& axes) {
  for (const WindowAxis& axis : axes) {
    index.cover(axis.in + axis.pad_begin + std::max<int64_t>(axis.pad_end, 0));
    // The last windows may reach beyond the padding.
    index.cover(checked_add(axis.in + axis.pad_begin, (axis.kernel - 1) * axis.dilation, "window"));
    // Where there is one window, or one tap, steps may be larger than all that is there.
    index.cover(axis.stride);
    index.cover(axis.dilation);
  }
}

void write_taps(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view o,
                const std::function<void()>& body) {
  const IndexType& index = writer.index();
  for (size_t a = 0; a < axes.size(); ++a) writer.line("const Index s{} = {};", a, begin_of(index, axes, o, a));
  for (size_t a = 0; a < axes.size(); ++a) {
    writer.open("for (Index k{0} = 0; k{0} < {1}; ++k{0})", a, index.literal(axes[a].kernel));
    writer.line("const Index p{0} = s{0} + k{0} * {1};", a, index.literal(axes[a].dilation));
    if (can_be_outside(axes[a])) writer.line("if (!({})) continue;", inside(index, axes[a], a));
  }
  writer.line("const Index p = {};", flat(index, in_extents(axes), "p"));
  writer.line("const Index k = {};", flat(index, kernel_extents(axes), "k"));
  body();
  for (size_t a = 0; a < axes.size(); ++a) writer.close();
}

void write_windows_over(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view p,
                        const std::function<void()>& body) {
  const IndexType& index = writer.index();
  for (size_t a = 0; a < axes.size(); ++a) {
    const WindowAxis& axis = axes[a];
    writer.open("for (Index k{0} = 0; k{0} < {1}; ++k{0})", a, index.literal(axis.kernel));
    writer.line("const Index t{0} = ({1}) + {2} - k{0} * {3};", a, coordinate(index, p, in_extents(axes), a),
                index.literal(axis.pad_begin), index.literal(axis.dilation));
    writer.line("if (t{0} < 0 || t{0} % {1} != 0 || t{0} / {1} >= {2}) continue;", a, index.literal(axis.stride),
                index.literal(axis.out));
    writer.line("const Index o{0} = t{0} / {1};", a, index.literal(axis.stride));
  }
  writer.line("const Index o = {};", flat(index, out_extents(axes), "o"));
  writer.line("const Index k = {};", flat(index, kernel_extents(axes), "k"));
  body();
  for (size_t a = 0; a < axes.size(); ++a) writer.close();
}

TapText write_tap(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view o, std::string_view k) {
  const IndexType& index = writer.index();
  std::vector<std::string> conditions;
  for (size_t a = 0; a < axes.size(); ++a) {
    writer.line("const Index p{} = {} + {};", a, begin_of(index, axes, o, a), reach_of(index, axes, k, a));
    if (can_be_outside(axes[a])) conditions.push_back(inside(index, axes[a], a));
  }
  return {flat(index, in_extents(axes), "p"), join(conditions, " && ")};
}

void write_window(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view o, std::string_view id) {
  const IndexType& index = writer.index();
  for (size_t a = 0; a < axes.size(); ++a) writer.line("const Index s{}{} = {};", a, id, begin_of(index, axes, o, a));
  writer.line("const Index window{} = {};", id, flat(index, in_extents(axes), "s", id));
}

void write_tap_alone(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view k, std::string_view id) {
  const IndexType& index = writer.index();
  for (size_t a = 0; a < axes.size(); ++a) writer.line("const Index d{}{} = {};", a, id, reach_of(index, axes, k, a));
  writer.line("const Index tap{} = {};", id, flat(index, in_extents(axes), "d", id));
}

std::string inside_of(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view window_id,
                      std::string_view tap_id) {
  const std::string_view type = writer.index().name() == "i32" ? "u32" : "u64";
  std::vector<std::string> conditions;
  for (size_t a = 0; a < axes.size(); ++a) {
    // What is negative is larger than all others.
    if (can_be_outside(axes[a])) {
      conditions.push_back(fmt::format("({0})(s{1}{2} + d{1}{3}) < {4}", type, a, window_id, tap_id, axes[a].in));
    }
  }
  return join(conditions, " && ");
}

}  // namespace autograph::gpu
