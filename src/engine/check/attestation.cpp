#include "engine/check/attestation.h"

#include "autograph/attested_kernels.h"
#include "base/files/cache_folder.h"

namespace autograph {
namespace {

// Rounding two factors to bf16 changes a product by a relative 2^-8; roundings of weights are the same at all
// positions, so that they add up more than independent ones would.
constexpr double kBf16Epsilon = 1.0 / 64;

}  // namespace

std::string cache_folder_of(const CompileOptions& options) {
  return options.cache_folder.empty() ? default_cache_folder() : options.cache_folder;
}

ErrorModel error_model_of(const CompileOptions& options) {
  ErrorModel model;
  if (options.precision == Precision::bf16) model.epsilon = kBf16Epsilon;
  model.exact = options.exact;
  return model;
}

Verdicts* verdicts_of(const Device& device, const CompileOptions& options) {
  if (device.properties().is_reference) return nullptr;
  return &Verdicts::of(cache_folder_of(options), device.identity() + "; build " + build_hash() + "; " +
                                                     std::string(to_string(options.precision)));
}

AttestedKernels attested_kernels(const CompileOptions& options) {
  Verdicts* verdicts = verdicts_of(get_device(options.device, options.precision), options);
  if (!verdicts) return {};
  return {verdicts->num_trusted(), verdicts->refused()};
}

}  // namespace autograph
