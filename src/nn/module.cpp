#include "autograph/nn/module.h"

#include <algorithm>
#include <functional>
#include <set>

#include "autodiff/name_pattern.h"
#include "autograph/eager.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "nn/binding.h"

namespace autograph::nn {
namespace {

std::string joined(const std::string& path, const std::string& name) {
  if (path.empty()) return name;
  return name.empty() ? path : path + "." + name;
}

void check_same_type(const std::string& path, const Tensor& given, DType dtype, const Dims& dims) {
  AG_CHECK_USER(given.is_present() && given.dtype() == dtype, TypeError, "[nn] {}: expected {}, got {}", path,
                to_string(dtype), given.is_present() ? std::string(to_string(given.dtype())) : "none");
  AG_CHECK_USER(given.dims() == dims, ShapeError, "[nn] {}: expected {}, got {}", path, to_string(dims),
                to_string(given.dims()));
}

std::vector<std::string> paths_of(const std::vector<Parameter*>& tensors) {
  std::vector<std::string> paths;
  for (const Parameter* tensor : tensors) paths.push_back(tensor->path());
  return paths;
}

}  // namespace

// ---- Parameter
// -------------------------------------------------------------------------------------------------------

Parameter::Parameter(const Module& owner, std::string name, Dims dims, Init init)
    : owner_(&owner), name_(std::move(name)), dims_(std::move(dims)), init_(std::move(init)) {}

Parameter::Parameter(const Module& owner, std::string name, Tensor value)
    : owner_(&owner),
      name_(std::move(name)),
      dims_(value.dims()),
      init_(Init::zeros()),
      is_buffer_(true),
      learns_(false),
      value_(std::move(value)) {}

std::string Parameter::path() const { return joined(owner_->path(), name_); }

bool Parameter::learns() const {
  if (!is_buffer_ && is_capturing()) learns_.guard(fmt::format("learning of '{}'", path()));
  return learns_.is_on();
}

void Parameter::set_learns(bool learns) { learns_.set(learns && !is_buffer_); }

const Tensor& Parameter::value() const {
  if (eager_.is_valid()) return elements(eager_);
  if (!value_.is_present()) value_ = init_.draw(dims_, owner_->seed(), path());
  return value_;
}

void Parameter::set_value(const Tensor& value) {
  check_same_type(path(), value, dtype(), dims_);
  value_ = value.clone();
  if (eager_.is_valid()) set_eager(eager(value_));
}

Var Parameter::beside(const Var& like) const {
  if (!wants_eager(like)) return state_beside(like, path(), value());
  if (!eager_.is_valid()) {
    eager_ = dtypes::kFloat.contains(dtype()) ? variable(value().clone()) : eager(value().clone());
  }
  return learns() ? eager_ : detach(eager_);
}

Var Parameter::latest(const Var& like) const {
  const Var now = beside(like);
  return wants_eager(like) ? now : latest_of(now);
}

// Variables are assigned to, so that captured functions do it, too. Integers cannot be variables.
void Parameter::set_eager(const Var& value) const {
  if (dtypes::kFloat.contains(dtype())) return assign(eager_, detach(value));
  if (!is_capturing()) eager_ = detach(value);
}

void Parameter::update(const Var& value) const {
  const Var now = beside(value);
  wants_eager(value) ? set_eager(value) : autograph::update(now, value);
}

// ---- Module
// ----------------------------------------------------------------------------------------------------------

Var Module::forward(const Var&) {
  throw UnsupportedError(fmt::format("[nn] {}: it takes more than one value (call the function that does)",
                                     path().empty() ? "module" : path()));
}

Var Module::operator()(const Var& x) {
  if (name_.empty()) return forward(x);
  const ProvenanceScope scope(name_);
  return forward(x);
}

void Module::check_name(const std::string& name) const {
  AG_CHECK_USER(!name.empty() && name.find('.') == std::string::npos, ValueError,
                "[nn] add: expected a name without dots, got '{}'", name);
  const bool is_tensor =
      std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t->name() == name; });
  const bool is_child =
      std::any_of(children_.begin(), children_.end(), [&](const auto& c) { return c->name_ == name; });
  AG_CHECK_USER(!is_tensor && !is_child, ValueError, "[nn] add: the module has a '{}' already", name);
}

Module& Module::adopt(const std::string& name, std::unique_ptr<Module> child) {
  AG_CHECK_USER(child && !child->parent_, ValueError, "[nn] add '{}': expected a module that is part of no other",
                name);
  check_name(name);
  child->parent_ = this;
  child->name_ = name;
  children_.push_back(std::move(child));
  return *children_.back();
}

Parameter& Module::add_parameter(const std::string& name, Dims dims, Init init) {
  check_name(name);
  const auto first_buffer =
      std::find_if(tensors_.begin(), tensors_.end(), [](const auto& tensor) { return tensor->is_buffer(); });
  return **tensors_.insert(first_buffer, std::make_unique<Parameter>(*this, name, std::move(dims), std::move(init)));
}

Parameter& Module::add_buffer(const std::string& name, Tensor value) {
  check_name(name);
  return *tensors_.emplace_back(std::make_unique<Parameter>(*this, name, std::move(value)));
}

std::string Module::path() const { return parent_ ? joined(parent_->path(), name_) : ""; }

std::vector<Module*> Module::children() const {
  std::vector<Module*> list;
  for (const auto& child : children_) list.push_back(child.get());
  return list;
}

void Module::collect(std::vector<Parameter*>& list) const {
  for (const auto& tensor : tensors_) list.push_back(tensor.get());
  for (const auto& child : children_) child->collect(list);
}

std::vector<Parameter*> Module::tensors() const {
  std::vector<Parameter*> list;
  collect(list);
  return list;
}

std::vector<Parameter*> Module::parameters() const {
  std::vector<Parameter*> list = tensors();
  std::erase_if(list, [](const Parameter* tensor) { return tensor->is_buffer(); });
  return list;
}

Parameter& Module::tensor(std::string_view path) const {
  const std::vector<Parameter*> list = tensors();
  for (Parameter* tensor : list) {
    if (tensor->path() == path) return *tensor;
  }
  throw ValueError(fmt::format("[nn] no tensor '{}'{}", path, did_you_mean(std::string(path), paths_of(list))));
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const Parameter* parameter : parameters()) {
    int64_t elements = 1;
    for (const int64_t extent : parameter->dims()) elements *= extent;
    count += elements;
  }
  return count;
}

void Module::train(bool on) {
  is_training_.set(on);
  for (const auto& child : children_) child->train(on);
}

bool Module::is_training() const {
  if (is_capturing()) is_training_.guard(parent_ ? fmt::format("training of '{}'", path()) : "training of the module");
  return is_training_.is_on();
}

void Module::freeze(std::string_view patterns, bool learn) {
  const std::vector<Parameter*> list = parameters();
  bool found = false;
  for (Parameter* parameter : list) {
    if (!fits(patterns, parameter->path())) continue;
    parameter->set_learns(learn);
    found = true;
  }
  AG_CHECK_USER(found, ValueError, "[nn] freeze: no parameter is called '{}'{}", patterns,
                did_you_mean(std::string(patterns), paths_of(list)));
}

uint64_t Module::seed() const { return parent_ ? parent_->seed() : seed_; }

std::vector<Var> Module::weights(const Var& like) const {
  std::vector<Var> list;
  for (auto& [path, weight] : named_weights(like)) list.push_back(std::move(weight));
  return list;
}

std::vector<std::pair<std::string, Var>> Module::named_weights(const Var& like) const {
  std::vector<std::pair<std::string, Var>> list;
  for (const Parameter* parameter : parameters()) {
    const bool is_there = wants_eager(like) || has_state(like, parameter->path());
    if (parameter->learns() && is_there) list.emplace_back(parameter->path(), parameter->beside(like));
  }
  return list;
}

NamedTensors Module::state_dict() const {
  NamedTensors dict;
  for (const Parameter* tensor : tensors()) dict.emplace_back(tensor->path(), tensor->value());
  return dict;
}

void Module::load_state_dict(const NamedTensors& given, bool strict) {
  std::vector<std::pair<Parameter*, const Tensor*>> found;
  std::set<std::string> used;
  std::vector<std::string> missing, unknown;
  for (Parameter* tensor : tensors()) {
    const std::string path = tensor->path();
    const auto it = std::find_if(given.begin(), given.end(), [&](const auto& entry) { return entry.first == path; });
    if (it == given.end()) {
      missing.push_back(path);
      continue;
    }
    check_same_type(path, it->second, tensor->dtype(), tensor->dims());
    found.emplace_back(tensor, &it->second);
    used.insert(path);
  }
  for (const auto& [name, tensor] : given) {
    if (!used.contains(name)) unknown.push_back(name);
  }
  AG_CHECK_USER(!strict || (missing.empty() && unknown.empty()), ValueError,
                "[nn] state dict: expected the tensors of the module, got one without [{}] and with [{}]",
                join(missing, ", "), join(unknown, ", "));
  for (const auto& [tensor, value] : found) tensor->set_value(*value);
}

void Module::save(const std::string& file, const std::map<std::string, std::string>& metadata) const {
  SafeTensors content{state_dict(), metadata};
  content.metadata.emplace("format", "pt");
  write_safetensors(file, content);
}

void Module::load(const std::string& file, bool strict) { load_state_dict(read_safetensors(file).tensors, strict); }

void Module::read_from(const StateStore& store, const std::string& prefix) {
  for (Parameter* tensor : tensors()) {
    const std::string name = prefix + tensor->path();
    if (store.contains(name)) tensor->set_value(store.get(name));
  }
}

void Module::write_to(StateStore& store) const {
  for (const Parameter* tensor : tensors()) {
    if (store.contains(tensor->path())) store.set(tensor->path(), tensor->value());
  }
}

// ---- Containers
// ------------------------------------------------------------------------------------------------------

Sequential& Sequential::push(std::function<Var(const Var&)> function) { return push<Function>(std::move(function)); }

Sequential& Sequential::push(Var (*function)(Var)) {
  return push<Function>([function](const Var& x) { return function(x); });
}

Var Sequential::forward(const Var& x) {
  Var y = x;
  for (Module* child : children()) y = (*child)(y);
  return y;
}

Residual::Residual(std::unique_ptr<Module> block, std::unique_ptr<Module> shortcut)
    : block_(adopt("block", std::move(block))) {
  if (shortcut) shortcut_ = &adopt("shortcut", std::move(shortcut));
}

Var Residual::forward(const Var& x) { return (shortcut_ ? (*shortcut_)(x) : x) + block_(x); }

// ---- All parameters in a row ------------------------------------------------------------------------------------

Tensor parameters_to_vector(const Module& module) {
  Tensor vector = Tensor::empty(DType::f32, {module.num_parameters()});
  auto* to = vector.mutable_data<float>();
  for (const Parameter* parameter : module.parameters()) {
    to = std::ranges::copy(parameter->value().elements<float>(), to).out;
  }
  return vector;
}

void vector_to_parameters(const Tensor& vector, Module& module) {
  check_same_type("parameters", vector, DType::f32, {module.num_parameters()});
  const auto* from = vector.data<float>();
  for (Parameter* parameter : module.parameters()) {
    Tensor value = Tensor::empty(DType::f32, parameter->dims());
    std::copy_n(from, value.num_elements(), value.mutable_data<float>());
    from += value.num_elements();
    parameter->set_value(value);
  }
}

// ---- Training
// --------------------------------------------------------------------------------------------------------

UpdateStep minimize(const Var& loss, const Module& module, const Optimizer& optimizer, const UpdateOptions& options) {
  return autograph::minimize(loss, module.weights(loss), optimizer, options);
}

}  // namespace autograph::nn
