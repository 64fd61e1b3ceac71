// stft: transforms of frames of a signal, times a window.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/signal/transform.h"
#include "backends/gpu/emit/text/known_integers.h"

namespace autograph::gpu {
namespace {

constexpr size_t kStep = 1, kWindow = 2, kLength = 3;

}  // namespace

Emitted emit_stft(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const auto step = known_integers(call, kStep);
  if (!step || (call.has_input(kLength) && !call.constant(kLength))) return refused("frames that are computed");
  const Dims x = call.input_dims(0), y = call.output_dims(0);
  int64_t length = call.has_input(kWindow) ? call.input_dims(kWindow)[0] : x[1];
  if (call.has_input(kLength)) length = known_integers(call, kLength)->front();
  if (const std::string reason = why_not_length(length); !reason.empty()) return refused(reason);
  Writer writer(target);
  cover_operands(writer.index(), call);
  writer.index().cover(step->front());  // a single frame has a step, too
  if (num_elements(y) == 0) return writer.finish();
  const auto lit = [&](int64_t value) { return writer.index().literal(value); };
  const std::string_view stored = storage_type(dtype), type = compute_type(transform_dtype(target));
  Transform transform;
  transform.lines = y[0] * y[1];
  transform.length = length;
  transform.count = y[2];
  transform.is_real = x[2] == 1;
  transform.inputs = {input_parameter("x", stored, 0)};
  if (call.has_input(kWindow)) transform.inputs.push_back(input_parameter("window", stored, kWindow));
  transform.output = output_parameter("y", stored);
  transform.read = [&] {
    writer.line("const Index at = (line / {0} * {1} + line % {0} * {2} + n) * {3};", lit(y[1]), lit(x[1]),
                lit(step->front()), x[2]);
    const std::string weight =
        call.has_input(kWindow) ? fmt::format(" * ({}){}", type, load(dtype, "window", "n")) : "";
    writer.line("const {} x_re = {}{};", type, load(dtype, "x", "at"), weight);
    if (x[2] == 2) writer.line("const {} x_im = {}{};", type, load(dtype, "x", "at + 1"), weight);
  };
  transform.write = [&] {
    writer.line("const Index to = 2 * (line * {} + k);", lit(y[2]));
    writer.line("{}", store(dtype, "y", "to", fmt::format("({})re", compute_type(dtype))));
    writer.line("{}", store(dtype, "y", "to + 1", fmt::format("({})im", compute_type(dtype))));
  };
  write_transform(writer, transform);
  return writer.finish();
}

}  // namespace autograph::gpu
