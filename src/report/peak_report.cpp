#include "report/peak_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/table.h"

namespace autograph {
Json peak_json(const MachinePeak& peak) {
  Json compute = Json::array();
  for (const ComputePeak& entry : peak.compute) {
    compute.push(Json::object({{"threads", entry.threads}, {"gflops", entry.gflops}}));
  }
  Json memory = Json::array();
  for (const MemoryPeak& entry : peak.memory) {
    memory.push(Json::object({{"level", entry.level},
                              {"threads", entry.threads},
                              {"bytes_per_thread", entry.bytes_per_thread},
                              {"read_gb_per_s", entry.read_gb_per_s},
                              {"copy_gb_per_s", entry.copy_gb_per_s}}));
  }
  return Json::object({{"isa", peak.isa}, {"compute", std::move(compute)}, {"memory", std::move(memory)}});
}

std::string peak_text(const MachinePeak& peak, bool escapes) {
  Table compute({{"threads", true}, {"f32 GFLOP/s", true}});
  for (const ComputePeak& entry : peak.compute) {
    compute.add({fmt::format("{}", entry.threads), fmt::format("{:.1f}", entry.gflops)});
  }
  Table memory({{"level"}, {"threads", true}, {"each", true}, {"read GB/s", true}, {"copy GB/s", true}});
  for (const MemoryPeak& entry : peak.memory) {
    memory.add({entry.level, fmt::format("{}", entry.threads), human_bytes(static_cast<double>(entry.bytes_per_thread)),
                fmt::format("{:.1f}", entry.read_gb_per_s), fmt::format("{:.1f}", entry.copy_gb_per_s)});
  }
  return fmt::format("peak of multiply-adds ({})\n", peak.isa) + compute.to_string(escapes) + "\n" +
         memory.to_string(escapes);
}

double bandwidth_gb_per_s(const MachinePeak& peak, double bytes, int threads) {
  const MemoryPeak* level = peak.level_for(bytes, threads);
  return level ? std::max(level->read_gb_per_s, level->copy_gb_per_s) : 0;
}

ModelRoof model_roof(const GraphSummary& summary, const MachinePeak& peak, int threads) {
  const double bytes = static_cast<double>(summary.parameter_bytes) + summary.io_bytes;
  const double gflops = peak.gflops(threads);
  const double gb_per_s = bandwidth_gb_per_s(peak, bytes, threads);
  ModelRoof roof;
  if (gflops > 0) roof.compute_ms = summary.flops / gflops / 1e6;
  if (gb_per_s > 0) roof.memory_ms = bytes / gb_per_s / 1e6;
  return roof;
}

}  // namespace autograph
