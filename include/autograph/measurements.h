// What was measured on this machine, as a file: for a machine that is there for a while, and then again.
#pragma once

#include <cstdint>
#include <string>

namespace autograph {

/// What a file of measurements, or a part of a cache, holds.
struct MeasurementCounts {
  int64_t times = 0;     ///< Of kernels and changes of layout.
  int64_t samples = 0;   ///< Of whole graphs.
  int64_t verdicts = 0;  ///< Of attestation.
};

/// Writes what the cache in `cache_folder` ("": the default one) knows of devices whose identity begins with `identity`
/// (Device::identity(); "": all) to `file`, over what is there. Throws IoError where it cannot be written.
MeasurementCounts export_measurements(const std::string& file, const std::string& identity = "",
                                      const std::string& cache_folder = "");

/// Adds what `file` holds to the cache: newer measurements replace older ones, and what was found wrong stays wrong.
/// Returns what the file holds. Throws IoError where it cannot be read or the cache cannot be written, FormatError
/// where it is no file of measurements of this version.
MeasurementCounts import_measurements(const std::string& file, const std::string& cache_folder = "");

}  // namespace autograph
