// Typed builders of the ops on signals.
#pragma once

#include "autograph/builder.h"

namespace autograph {

/// 0.5 - 0.5 cos(2 pi n / N) for n < `size` (one integer): N is the size, or one less where not `periodic`.
Var hann_window(Var size, bool periodic = true, DType dtype = DType::f32);
/// 25/46 - 21/46 cos(2 pi n / N) for n < `size` (one integer): N is the size, or one less where not `periodic`.
Var hamming_window(Var size, bool periodic = true, DType dtype = DType::f32);
/// 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N) for n < `size` (one integer): N is the size, or one less where not
/// `periodic`.
Var blackman_window(Var size, bool periodic = true, DType dtype = DType::f32);
/// Fourier transform of `x`, [signal..., 1] real or [signal..., 2] complex, along `axis` (a scalar; -2 when not given),
/// cut or padded with zeros to `length` (a scalar). Gives [signal..., 2]; `onesided`: the first half of the spectrum
/// alone.
Var dft(Var x, Var length = {}, Var axis = {}, bool inverse = false, bool onesided = false);
/// Fourier transforms of frames of `signal`, [batch, length, 1] or [batch, length, 2], each `step` (a scalar) behind
/// the one before, times `window` [frame length]: [batch, frames, frequencies, 2].
Var stft(Var signal, Var step, Var window = {}, Var frame_length = {}, bool onesided = true);
/// Weights [length / 2 + 1, bins] that gather a spectrum into triangular bins of the mel scale; all operands are
/// scalars.
Var mel_weight_matrix(Var bins, Var length, Var sample_rate, Var lowest_hertz, Var highest_hertz,
                      DType dtype = DType::f32);

}  // namespace autograph
