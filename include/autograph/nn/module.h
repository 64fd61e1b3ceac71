// Modules: layers with parameters, put together to networks, as in PyTorch.
//
//     struct Net : nn::Module {
//       nn::Linear& hidden = add<nn::Linear>("hidden", 784, 512);
//       nn::Linear& head = add<nn::Linear>("head", 512, 10);
//       Var forward(const Var& x) override { return head(relu(hidden(x))); }
//     };
//
//     GraphBuilder graph;
//     Net net;
//     const Var x = graph.input("x", DType::f32, {64, 784}), target = graph.input("target", DType::i64, {64});
//     const Var loss = nn::cross_entropy(net(x), target);
//     nn::minimize(loss, net, AdamW{});
//     graph.output("loss", loss);
//     const Executable step = compile(graph.build());
//
// The same modules work on eager values (autograph/eager.h): a parameter then is a variable, and EagerOptimizer(
// net.named_weights(x), AdamW{}) updates them; functions that call modules can be captured.
//
// Each parameter has a path, "hidden.weight", which is its name in files as torch would have it, and the name of its
// state in a graph: a graph that trains and one that evaluates share what they learn through one StateStore. Shapes are
// torch's, so that a state dict that torch wrote can be loaded, trained and saved again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograph/builder.h"
#include "autograph/nn/init.h"
#include "autograph/setting.h"
#include "autograph/state_store.h"
#include "autograph/tensor_io.h"
#include "autograph/train.h"

namespace autograph::nn {

class Module;

/// A tensor that belongs to a module: a parameter, which learns, or a buffer (running statistics, a counter), which the
/// module updates by itself.
class Parameter {
 public:
  Parameter(const Module& owner, std::string name, Dims dims, Init init);
  Parameter(const Module& owner, std::string name, Tensor value);

  /// "weight".
  const std::string& name() const { return name_; }
  /// "layers.0.weight": with the names of all modules that it is in.
  std::string path() const;
  const Dims& dims() const { return dims_; }
  DType dtype() const { return value_.is_present() ? value_.dtype() : DType::f32; }
  bool is_buffer() const { return is_buffer_; }
  /// Is it one of those that minimize() changes?
  bool learns() const;
  /// Freezes it, or lets it learn again; buffers never learn.
  void set_learns(bool learns);
  /// What it begins with; drawn when somebody asks for the first time.
  const Tensor& value() const;
  /// Throws TypeError or ShapeError, naming the path, when dtype or shape is another.
  void set_value(const Tensor& value);

  /// The parameter as a value of the graph that `like` belongs to: the state of its path, which is added at first use.
  /// Beside eager values, and while a function is captured: an eager value, of parameters that learn a variable.
  Var beside(const Var& like) const;
  /// What a buffer is after all updates so far.
  Var latest(const Var& like) const;
  /// Makes `value` what it is after the run; of eager values at once. Captured functions leave buffers of integers
  /// (counters of batches) as they are.
  void update(const Var& value) const;

 private:
  friend class Module;
  void set_eager(const Var& value) const;

  const Module* owner_;
  std::string name_;
  Dims dims_;
  Init init_;
  bool is_buffer_ = false;
  Setting learns_{true};
  mutable Tensor value_;
  mutable Var eager_;  // the variable that has the elements, once there is one
};

/// A layer, or a network of them.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What the module makes of x. Modules that take more have functions of their own beside it; called without, they
  /// throw UnsupportedError.
  virtual Var forward(const Var& x);
  /// forward(), with the path of the module in the provenance of its nodes.
  Var operator()(const Var& x);

  /// Makes a module part of this one, which owns it: `hidden = add<Linear>("hidden", 784, 512)`.
  template <class M, class... Arguments>
  M& add(const std::string& name, Arguments&&... arguments) {
    return static_cast<M&>(adopt(name, std::make_unique<M>(std::forward<Arguments>(arguments)...)));
  }
  /// The same for one that is there already. Throws ValueError when the name is taken, empty, or has a dot.
  Module& adopt(const std::string& name, std::unique_ptr<Module> child);

  /// "" for the outermost.
  std::string path() const;
  /// Modules directly inside, in the order in which they were added.
  std::vector<Module*> children() const;
  /// All parameters of this module and those inside, in torch's order; without buffers.
  std::vector<Parameter*> parameters() const;
  /// The same with buffers, in the order of a state dict.
  std::vector<Parameter*> tensors() const;
  /// The one of this path; ValueError with the nearest path when there is none.
  Parameter& tensor(std::string_view path) const;
  /// Elements of all parameters.
  int64_t num_parameters() const;

  /// Dropout drops and batch norms follow their batches (how modules begin), or not; for all modules inside, too.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  /// Parameters whose paths fit `patterns` (with * and ?, several with commas between) do not learn any more, or, with
  /// `learn`, learn again. Throws ValueError, with the nearest path, when none fits.
  void freeze(std::string_view patterns, bool learn = false);
  /// Seed of what is drawn from now on, weights and dropout; said to the outermost module, before anything is drawn.
  void set_seed(uint64_t seed) { seed_ = seed; }
  /// Seed of the outermost module.
  uint64_t seed() const;

  /// The parameters that learn and are states of the graph of `like`; beside an eager value all that learn.
  std::vector<Var> weights(const Var& like) const;
  /// The same by path.
  std::vector<std::pair<std::string, Var>> named_weights(const Var& like) const;

  /// All tensors by path, as torch's state_dict() has them. They share memory with the module.
  NamedTensors state_dict() const;
  /// Takes them over. Throws ValueError, listing all paths that are missing or unknown, TypeError or ShapeError; the
  /// module is then as it was. Not `strict`: what is missing stays, what is unknown is passed over.
  void load_state_dict(const NamedTensors& tensors, bool strict = true);
  /// state_dict() as a safetensors file, with these texts in its header, and back.
  void save(const std::string& file, const std::map<std::string, std::string>& metadata = {}) const;
  void load(const std::string& file, bool strict = true);
  /// Takes over what a store has of the module's tensors, for example after training; kAveragePrefix: averages.
  void read_from(const StateStore& store, const std::string& prefix = "");
  /// Overwrites what a store has of them.
  void write_to(StateStore& store) const;

 protected:
  /// A parameter of this module. The reference holds as long as the module.
  Parameter& add_parameter(const std::string& name, Dims dims, Init init);
  /// A buffer.
  Parameter& add_buffer(const std::string& name, Tensor value);

 private:
  void collect(std::vector<Parameter*>& list) const;
  void check_name(const std::string& name) const;

  const Module* parent_ = nullptr;  // null: the outermost
  std::string name_;
  Setting is_training_{true};
  uint64_t seed_ = 0;
  std::vector<std::unique_ptr<Parameter>> tensors_;  // parameters first
  std::vector<std::unique_ptr<Module>> children_;
};

/// Modules one after the other, named "0", "1"...: `net.push<Linear>(784, 512).push(relu).push<Linear>(512, 10)`.
class Sequential : public Module {
 public:
  template <class M, class... Arguments>
  Sequential& push(Arguments&&... arguments) {
    add<M>(std::to_string(children().size()), std::forward<Arguments>(arguments)...);
    return *this;
  }
  /// A function without parameters, which has a number of its own like any module.
  Sequential& push(std::function<Var(const Var&)> function);
  /// The same for a function that takes a Var by value: relu, tanh, sigmoid.
  Sequential& push(Var (*function)(Var));
  Var forward(const Var& x) override;
};

/// Modules of one kind, named "0", "1"..., that their owner calls one by one: torch.nn.ModuleList.
///
///     ModuleList<Block>& h = add<ModuleList<Block>>("h");
///     for (int64_t i = 0; i < layers; ++i) h.push(settings);
///     for (Block* block : h) x = (*block)(x);
template <class M>
class ModuleList : public Module {
 public:
  /// Makes one more.
  template <class... Arguments>
  M& push(Arguments&&... arguments) {
    modules_.push_back(&add<M>(std::to_string(modules_.size()), std::forward<Arguments>(arguments)...));
    return *modules_.back();
  }
  size_t size() const { return modules_.size(); }
  M& operator[](size_t i) const { return *modules_.at(i); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<M*> modules_;
};

/// Anything that is a function of x alone, as a module.
class Function : public Module {
 public:
  explicit Function(std::function<Var(const Var&)> function) : function_(std::move(function)) {}
  Var forward(const Var& x) override { return function_(x); }

 private:
  std::function<Var(const Var&)> function_;
};

/// x + block(x), or shortcut(x) + block(x); the modules are called "block" and "shortcut".
class Residual : public Module {
 public:
  explicit Residual(std::unique_ptr<Module> block, std::unique_ptr<Module> shortcut = nullptr);
  Var forward(const Var& x) override;

 private:
  Module& block_;
  Module* shortcut_ = nullptr;
};

/// All parameters in one row, f32 [num_parameters()], as torch.nn.utils has it. TypeError where one is no f32.
Tensor parameters_to_vector(const Module& module);
/// Takes them from there. ShapeError where there are more or fewer.
void vector_to_parameters(const Tensor& vector, Module& module);

/// minimize() of the weights of a module that learn.
UpdateStep minimize(const Var& loss, const Module& module, const Optimizer& optimizer,
                    const UpdateOptions& options = {});

}  // namespace autograph::nn
