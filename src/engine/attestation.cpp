#include "engine/attestation.h"

#include "autograph/attested_kernels.h"

namespace autograph {
namespace {

// Rounding a factor to bf16 changes it by a relative 2^-9 at most, and so the other one.
constexpr double kBf16Epsilon = 1.0 / 128;

}  // namespace

std::string cache_folder_of(const CompileOptions& options) {
  return options.cache_folder.empty() ? default_cache_folder() : options.cache_folder;
}

ErrorModel error_model_of(const CompileOptions& options) {
  ErrorModel model;
  if (options.precision == "bf16") model.epsilon = kBf16Epsilon;
  model.exact = options.exact;
  return model;
}

Verdicts* verdicts_of(const Device& device, const CompileOptions& options) {
  if (!device.identity) return nullptr;
  return &Verdicts::of(cache_folder_of(options),
                       device.identity() + "; build " + build_hash() + "; " + options.precision);
}

AttestedKernels attested_kernels(const CompileOptions& options) {
  Verdicts* verdicts = verdicts_of(get_device(options.device, options.precision), options);
  if (!verdicts) return {};
  return {verdicts->num_trusted(), verdicts->refused()};
}

}  // namespace autograph
