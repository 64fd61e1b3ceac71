#include "backends/opencl/machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>

#include "autograph/error.h"
#include "backends/opencl/declarations.h"
#include "base/join.h"

namespace autograph::opencl {
namespace {

std::string text_of(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  check(api().clGetDeviceInfo(device, what, 0, nullptr, &bytes), "clGetDeviceInfo");
  std::string text(bytes, '\0');
  check(api().clGetDeviceInfo(device, what, bytes, text.data(), nullptr), "clGetDeviceInfo");
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

template <class T>
T number_of(cl_device_id device, cl_device_info what) {
  T number{};
  check(api().clGetDeviceInfo(device, what, sizeof(T), &number, nullptr), "clGetDeviceInfo");
  return number;
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  std::array<char, 512> text{};
  api().clGetPlatformInfo(platform, what, text.size() - 1, text.data(), nullptr);
  return text.data();
}

bool is_pocl(cl_platform_id platform) {
  return platform_text(platform, CL_PLATFORM_NAME) == "Portable Computing Language";
}

struct Place {
  cl_platform_id platform;
  cl_device_id device;
};

// Graphics processors, then accelerators, then processors; those without a compiler cannot build what is generated.
std::vector<Place> find_places() {
  std::vector<Place> places;
  if (!find_api()) return places;
  cl_uint count = 0;
  if (api().clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return places;
  std::vector<cl_platform_id> platforms(count);
  check(api().clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  for (const cl_device_type type : {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU}) {
    for (cl_platform_id platform : platforms) {
      cl_uint num_devices = 0;
      if (api().clGetDeviceIDs(platform, type, 0, nullptr, &num_devices) != CL_SUCCESS) continue;
      std::vector<cl_device_id> devices(num_devices);
      check(api().clGetDeviceIDs(platform, type, num_devices, devices.data(), nullptr), "clGetDeviceIDs");
      for (cl_device_id device : devices) {
        if (number_of<cl_bool>(device, CL_DEVICE_AVAILABLE) && number_of<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE))
          places.push_back({platform, device});
      }
    }
  }
  return places;
}

const std::vector<Place>& all_places() {
  static const std::vector<Place> kPlaces = find_places();
  return kPlaces;
}

std::string name_of(size_t index) { return index == 0 ? "opencl" : fmt::format("opencl:{}", index); }

}  // namespace

Machine::Machine(std::string name, cl_platform_id platform, cl_device_id device)
    : name_(std::move(name)), device_(device) {
  cl_int code = CL_SUCCESS;
  const std::array<cl_context_properties, 3> properties{CL_CONTEXT_PLATFORM,
                                                        reinterpret_cast<cl_context_properties>(platform), 0};
  context_ = api().clCreateContext(properties.data(), 1, &device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  const std::string device_name = text_of(device, CL_DEVICE_NAME);
  identity_ = fmt::format("opencl {} driver {}; {}; {}", device_name, text_of(device, CL_DRIVER_VERSION),
                          text_of(device, CL_DEVICE_VERSION), platform_text(platform, CL_PLATFORM_VERSION));
  const std::string extensions = text_of(device, CL_DEVICE_EXTENSIONS);
  target_.dialect = gpu::Dialect::opencl;
  target_.has_f64 = extensions.find("cl_khr_fp64") != std::string::npos;
  // Reductions halve groups.
  target_.max_group = std::bit_floor(std::min<size_t>(256, number_of<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  target_.local_bytes = number_of<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  if ((number_of<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0) {
    target_.processors = static_cast<int>(number_of<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
  }
  memory_ = std::make_unique<OpenClMemory>(name_, context_, new_queue(),
                                           number_of<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  // PoCL keeps what it has compiled by itself, by group size; a binary it makes for all group sizes, which takes as
  // long as the rest together. Its header takes longer than most programs, also where it has them already.
  programs_ = is_pocl(platform)
                  ? std::make_unique<ProgramCache>(context_, device_, identity_, "", kDeclarations)
                  : std::make_unique<ProgramCache>(context_, device_, identity_, gpu::default_program_folder());
}

cl_command_queue Machine::new_queue() const {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = api().clCreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &code);
  check(code, "clCreateCommandQueue");
  return queue;
}

const std::vector<std::string>& machine_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (size_t i = 0; i < all_places().size(); ++i) names.push_back(name_of(i));
    return names;
  }();
  return kNames;
}

const Machine& get_machine(size_t index) {
  static std::mutex mutex;
  static auto& machines = *new std::vector<Machine*>;  // not destroyed, see Machine
  api();
  const std::vector<Place>& places = all_places();
  if (index >= places.size()) {
    throw DeviceError(
        places.empty()
            ? "[opencl] device: libOpenCL is there, but no platform with a device that has a compiler (looked at all "
              "platforms that it lists: see clinfo; drivers are announced in /etc/OpenCL/vendors, for the processor by "
              "the Debian package pocl-opencl-icd)"
            : fmt::format("[opencl] device: expected one of {}, got '{}'", bracketed(machine_names()), name_of(index)));
  }
  const std::lock_guard lock(mutex);
  machines.resize(places.size(), nullptr);
  if (!machines[index]) machines[index] = new Machine(name_of(index), places[index].platform, places[index].device);
  return *machines[index];
}

}  // namespace autograph::opencl
