// `autograph bench MODEL`: steady latency of one compiled model.
#include <fmt/core.h>

#include <array>
#include <iostream>
#include <sstream>

#include "autograph/error.h"
#include "base/check.h"
#include "cli/execute.h"
#include "cli/machine.h"
#include "cli/options/training_flags.h"
#include "cli/sources/given_inputs.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  TrainingFlags training;
  double seconds = 3;
  int64_t warmup = 3;
  bool memory = false;
  bool serve = false;
};

// Leading extent of the first tensor input: what people call the batch.
int64_t batch_of(const std::vector<Datum>& inputs) {
  for (const Datum& datum : inputs) {
    if (datum.is_tensor() && datum.tensor().rank() > 0) return datum.tensor().dims()[0];
  }
  return 1;
}

// What is known after the first run: members of the result that both ways of measuring print.
struct Prepared {
  Json::Object members;
  std::vector<std::pair<std::string, std::string>> rows;
  std::string table;  // behind the rows
};

Prepared describe(const std::string& model, const CompiledModel& compiled, const std::string& precision, int64_t batch,
                  const std::array<double, 3>& load_compile_run_ms) {
  const Executable& executable = compiled.executable;
  const auto& [load_ms, compile_ms, first_run_ms] = load_compile_run_ms;
  const MemoryReport memory = executable.memory();
  const auto bytes = [](size_t count) { return human_bytes(static_cast<double>(count)); };
  Prepared prepared;
  prepared.members = {{"model", model},
                      {"device", compiled.device},
                      {"strategy", compiled.strategy},
                      {"threads", executable.threads()},
                      {"streams", compiled.streams},
                      {"precision", precision},
                      {"batch", batch},
                      {"load_ms", load_ms},
                      {"compile_ms", compile_ms},
                      {"first_run_ms", first_run_ms},
                      {"weight_bytes", memory.weight_bytes},
                      {"arena_bytes", memory.arena_bytes},
                      {"sum_of_tensors_bytes", memory.sum_of_tensors_bytes},
                      {"lower_bound_bytes", memory.lower_bound_bytes}};
  prepared.rows = {{"model", model},
                   {"device", fmt::format("{}, {} threads, {} with {} streams, {}", compiled.device,
                                          executable.threads(), compiled.strategy, compiled.streams, precision)},
                   {"batch", fmt::format("{}", batch)},
                   {"load", human_ms(load_ms)},
                   {"compile", human_ms(compile_ms)},
                   {"first run", human_ms(first_run_ms)},
                   {"weights", bytes(memory.weight_bytes)},
                   {"activations", fmt::format("{} planned, {} without reuse, {} at least", bytes(memory.arena_bytes),
                                               bytes(memory.sum_of_tensors_bytes), bytes(memory.lower_bound_bytes))}};
  return prepared;
}

void add_training(Prepared& prepared, const TrainingFlags& flags, const StateStore& states) {
  const size_t bytes = states.size_bytes();
  prepared.members.insert(
      prepared.members.end(),
      {{"loss", flags.loss}, {"optimizer", flags.optimizer}, {"state_bytes", static_cast<int64_t>(bytes)}});
  prepared.rows.emplace_back("training", fmt::format("{}, {}", flags.loss, flags.optimizer));
  prepared.rows.emplace_back("states",
                             human_bytes(static_cast<double>(bytes)) + ", weights and what the optimiser remembers");
}

// With --memory: who owns the peak of the arena.
void add_memory(Session& session, Prepared& prepared, const Executable& executable) {
  constexpr size_t kListed = 15;
  const std::vector<PeakTensor> tensors = executable.memory_at_peak();
  Json list = Json::array();
  Table table({{"in use at the peak", true}, {"tensor"}, {"made by"}, {"read last by"}});
  double bytes = 0, rest = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PeakTensor& tensor = tensors[i];
    bytes += static_cast<double>(tensor.bytes);
    list.push(Json::object({{"bytes", static_cast<int64_t>(tensor.bytes)},
                            {"type", tensor.type},
                            {"node", tensor.node},
                            {"op", tensor.op},
                            {"last_reader", tensor.last_reader}}));
    if (i >= kListed) {
      rest += static_cast<double>(tensor.bytes);
      continue;
    }
    table.add({human_bytes(static_cast<double>(tensor.bytes)), tensor.type.empty() ? "working memory" : tensor.type,
               tensor.op + (tensor.node.empty() || tensor.node == tensor.op ? "" : " " + tensor.node),
               tensor.last_reader});
  }
  if (tensors.size() > kListed) {
    table.add({human_bytes(rest), fmt::format("{} more", tensors.size() - kListed), "", ""});
  }
  prepared.members.emplace_back("peak_tensors", std::move(list));
  prepared.table = fmt::format("\n{}{} in all\n", table.to_string(session.stdout_escapes()), human_bytes(bytes));
}

// Asked when runs are over: were there processors for all threads?
Json::Object latency_members(const Latency& latency, const Executable& executable) {
  return {{"iterations", latency.sorted_ms.size()},
          {"latency_ms", latency_json(latency)},
          {"threads_now", executable.threads_now()}};
}

void measure_once(Session& session, const Options& options, const Executable& executable,
                  const std::vector<Datum>& inputs, Prepared prepared) {
  const Latency latency = measure(session, executable, inputs, options.warmup, options.seconds);
  const int64_t peak = peak_resident_bytes();
  for (auto& member : latency_members(latency, executable)) prepared.members.push_back(std::move(member));
  prepared.members.emplace_back("peak_bytes", peak);
  const std::string runs = fmt::format("{} of {} runs", human_ms(latency.quantile(0.5)), latency.sorted_ms.size());
  for (auto& row : std::vector<std::pair<std::string, std::string>>{
           {"median", runs},
           {"min", human_ms(latency.quantile(0))},
           {"p90", human_ms(latency.quantile(0.9))},
           {"p99", human_ms(latency.quantile(0.99))},
           {"mean", human_ms(latency.mean())},
           {"peak", human_bytes(static_cast<double>(peak)) + " of the whole process"}}) {
    prepared.rows.push_back(std::move(row));
  }
  if (executable.threads_now() < executable.threads()) {
    prepared.rows.emplace_back("busy", fmt::format("other programs leave processors for {} of {} threads",
                                                   executable.threads_now(), executable.threads()));
  }
  if (options.training.train) {
    const double samples = static_cast<double>(batch_of(inputs)) / latency.quantile(0.5) * 1e3;
    prepared.members.emplace_back("samples_per_second", samples);
    prepared.rows.emplace_back("samples/s", fmt::format("{:.1f}", samples));
  }
  session.print(std::move(prepared.members), pairs_to_string(prepared.rows) + prepared.table);
}

// One JSON document on a line for what was prepared, then one for each line "WARMUP_SECONDS SECONDS" of stdin.
void serve(Session& session, const Executable& executable, const std::vector<Datum>& inputs, Prepared prepared) {
  constexpr double kMostSeconds = 86400;
  const auto print_line = [&](Json::Object members) {
    members.insert(members.begin(), {"schema", Json(1)});
    session.print_text(Json::object(std::move(members)).dump(0) + "\n");
  };
  prepared.members.emplace_back("peak_bytes", peak_resident_bytes());
  print_line(std::move(prepared.members));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    double warmup_seconds = 0;
    double seconds = 0;
    const bool parsed = static_cast<bool>(words >> warmup_seconds >> seconds);
    AG_CHECK_USER(parsed && std::max(warmup_seconds, seconds) <= kMostSeconds, UserError,
                  "[cli] serve: expected a line 'WARMUP_SECONDS SECONDS', got '{}'", line);
    measure(session, executable, inputs, 0, warmup_seconds);
    const Latency latency = measure(session, executable, inputs, 1, seconds);
    print_line(latency_members(latency, executable));
  }
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.seconds >= 0 && options.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                options.seconds);
  AG_CHECK_USER(options.warmup >= 0, UserError, "[cli] warmup: expected 0 or more, got {}", options.warmup);
  const Stopwatch loading;
  LoadedModel loaded = load_model(session, options.model);
  const double load_ms = loading.ms();
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  make_training_step(loaded, options.training, "bench --train");
  const std::vector<Datum>& inputs = given_inputs(session, loaded, options.model);
  const Stopwatch compiling;
  const CompiledModel compiled = compile_model(session, loaded, options.run);
  const Executable& executable = compiled.executable;
  const double compile_ms = compiling.ms();
  const Stopwatch first;
  executable.run(inputs);
  const double first_run_ms = first.ms();
  log_plan(session, executable);
  Prepared prepared = describe(loaded.name, compiled, with_plan(session, loaded, options.run).precision,
                               batch_of(inputs), {load_ms, compile_ms, first_run_ms});
  if (options.training.train) add_training(prepared, options.training, executable.states());
  if (options.memory) add_memory(session, prepared, executable);
  if (options.serve) {
    serve(session, executable, inputs, std::move(prepared));
  } else {
    measure_once(session, options, executable, inputs, std::move(prepared));
  }
  return 0;
}

}  // namespace

Command bench_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "--seconds",
                   .value_name = "T",
                   .doc = "How long to measure, warm-up not included; 3 when not given.",
                   .target = &options->seconds});
  table.push_back({.names = "--warmup",
                   .value_name = "N",
                   .doc = "Runs before measuring; 3 when not given.",
                   .target = &options->warmup});
  table.push_back(input_option(options->model));
  table.push_back(
      {.names = "--memory",
       .doc = "Also list what lies in memory when most of it is in use, with who made it and reads it last.",
       .target = &options->memory});
  table.push_back({.names = "--serve",
                   .doc = "Stay: measure once for each line 'WARMUP_SECONDS SECONDS' of stdin, one JSON line each.",
                   .target = &options->serve});
  for (Option& option : training_option_table(options->training)) table.push_back(std::move(option));
  for (Option& option : run_option_table(options->run)) table.push_back(std::move(option));
  return {
      .name = "bench",
      .doc = "steady latency of a model",
      .details =
          "The quantiles are of single runs, one after the other. With --serve, one process is measured in turns with "
          "others: it prints a JSON line once it is ready, then one for each line that it reads, until stdin ends.",
      .examples = {{"autograph bench zoo:resnet50 --seconds 5", "Five seconds on the CPU."},
                   {"autograph bench model.onnx --batch 8 --threads 2 --json", "Batch 8 on two threads, as JSON."},
                   {"autograph bench zoo:squeezenet --train --batch 8 --optimizer adamw", "Steps of training."},
                   {"autograph bench zoo:resnet50 --train --memory", "Who owns the peak of memory."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
