// Costs by measurement: each candidate is run alone, with weights that come from memory and activations that are in
// cache, as they are in the middle of a network.
#pragma once

#include <functional>
#include <string>

#include "autograph/device.h"
#include "autograph/kernel_times.h"
#include "cost/measurement_cache.h"
#include "runtime/kernel_cost.h"

namespace autograph {

/// Called while measuring: steps asked about so far, all steps, candidates measured so far.
using OnMeasure = std::function<void(size_t step, size_t num_steps, size_t measured)>;

/// For one thread at a time.
class MeasuredCost : public KernelCost {
 public:
  /// Measurements hold for devices of equal identity alone.
  /// Where `may_measure` says no (null: never), candidates that are not in the cache cost what they are estimated to.
  MeasuredCost(const Device& device, MeasurementCache& cache, OnMeasure progress = nullptr,
               std::function<bool()> may_measure = nullptr);
  ~MeasuredCost() override;

  std::vector<double> candidates_us(const KernelCatalog& catalog, const KernelCall& call,
                                    std::span<const KernelCandidate> candidates) override;
  double reorder_us(const KernelCatalog& catalog, const ReorderCall& call) override;
  bool is_concurrent() const override { return false; }
  /// Times measured before by an object for a device of this identity.
  void know(const KernelTimes& times) { given_ = times; }
  /// All times that answers were made from.
  const KernelTimes& used() const { return used_; }
  /// What has been measured or kept for a key, which is then among `used()`.
  std::optional<double> find(const std::string& key);
  /// Keeps another figure of this machine with the measurements.
  void keep(const std::string& key, double us);
  void begin_step(size_t step, size_t num_steps) override;
  /// Candidates and reorders that were run.
  size_t num_measured() const { return num_measured_; }

 private:
  class Candidate;
  class Caches;
  void store(const std::string& key, double us);
  Candidate make_reorder(const KernelCatalog& catalog, const ReorderCall& call) const;
  void make_caches(const KernelCatalog& catalog, int threads);
  /// Times all candidates in turns; make_caches() must have been called.
  void measure(std::vector<Candidate>& timed);

  const Device& device_;
  const std::string identity_;
  std::unique_ptr<Stream> stream_;
  MeasurementCache& cache_;
  OnMeasure progress_;
  std::function<bool()> may_measure_;
  KernelTimes given_;
  KernelTimes used_;
  std::unique_ptr<Caches> caches_;
  size_t step_ = 0;
  size_t num_steps_ = 0;
  size_t num_measured_ = 0;
};

}  // namespace autograph
