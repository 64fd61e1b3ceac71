#include "report/chrome_trace.h"

#include <set>

#include "report/json.h"

namespace autograph {
namespace {

Json metadata(const char* what, int stream, const std::string& name) {
  Json args = Json::object();
  args.add("name", name);
  Json event = Json::object();
  event.add("name", what).add("ph", "M").add("pid", 1).add("tid", stream).add("args", std::move(args));
  return event;
}

Json complete_event(const StepProfile& step) {
  Json args = Json::object();
  args.add("op", step.op).add("kernel", step.kernel);
  if (!step.layout.empty()) args.add("layout", step.layout);
  if (step.duration_us > 0 && step.flops > 0) args.add("gflops", step.flops / step.duration_us / 1e3);
  if (step.duration_us > 0 && step.bytes > 0) args.add("gb_per_s", step.bytes / step.duration_us / 1e3);
  Json event = Json::object();
  event.add("name", step.name).add("cat", step.op).add("ph", "X").add("pid", 1).add("tid", step.stream);
  event.add("ts", step.start_us).add("dur", step.duration_us).add("args", std::move(args));
  return event;
}

}  // namespace

std::string chrome_trace(const std::vector<StepProfile>& steps, const std::string& process_name) {
  Json events = Json::array();
  events.push(metadata("process_name", 0, process_name));
  std::set<int> streams;
  for (const StepProfile& step : steps) streams.insert(step.stream);
  for (const int stream : streams) events.push(metadata("thread_name", stream, "stream " + std::to_string(stream)));
  for (const StepProfile& step : steps) events.push(complete_event(step));
  Json trace = Json::object();
  trace.add("displayTimeUnit", "ms").add("traceEvents", std::move(events));
  return trace.dump(0);
}

}  // namespace autograph
