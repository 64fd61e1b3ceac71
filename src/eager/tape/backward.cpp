// Gradients as users ask for them.
#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "eager/capture/recording.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"
#include "eager/tape/tape_pass.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

Eager& variable_of(const Var& value, std::string_view where) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[{}] variable: expected one, got none", where);
  AG_CHECK_USER(value.is_eager() && static_cast<Eager&>(value.eager()).is_variable(), ValueError,
                "[{}] variable: expected what variable() gave, got {} that was computed, or is of a graph", where,
                to_string(value.type()));
  return static_cast<Eager&>(value.eager());
}

void check_like(const Var& given, const Eager& value, std::string_view where) {
  AG_CHECK_USER(given.is_valid() && given.type() == value.type(), ShapeError, "[{}] value: expected {}, got {}", where,
                to_string(value.type()), given.is_valid() ? to_string(given.type()) : "nothing");
}

}  // namespace

std::vector<Var> Eager::vjp(const std::vector<Var>& outputs, const std::vector<Var>& output_gradients,
                            const std::vector<Var>& wanted) {
  for (const Var& value : wanted) {
    AG_CHECK_USER(autograph::requires_grad(value), ValueError,
                  "[grad] value: expected one that is a variable or depends on one, got {} without a past (make it "
                  "with variable(), outside NoGrad)",
                  to_string(value.type()));
  }
  TapePass pass(outputs, &wanted, modes().records);
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (output_gradients[k].is_valid()) pass.seed(outputs[k], output_gradients[k]);
  }
  pass.run();
  std::vector<Var> gradients;
  for (const Var& value : wanted) {
    const Var gradient = pass.gradient(value);
    gradients.push_back(gradient.is_valid() ? gradient : filled_like(detach(value), 0));
  }
  return gradients;
}

void backward(const Var& value, const BackwardOptions& options) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[backward] value: expected one, got none");
  if (Recording* capture = modes().capture) return capture->backward(value, options);
  const Eager& here = eager_of(value, "backward");
  AG_CHECK_USER(here.requires_grad(), ValueError,
                "[backward] value: expected one that depends on a variable, got {} without a past (made inside NoGrad, "
                "detached, of integers, or of no variable())",
                to_string(value.type()));
  Var gradient = options.gradient;
  if (gradient.is_valid()) {
    check_like(gradient, here, "backward");
  } else {
    AG_CHECK_USER(value.shape().num_elements() == 1, ShapeError,
                  "[backward] value: expected one element, got {} (reduce it first, or say what flows into it)",
                  to_string(value.type()));
    const RecordScope none(false);
    gradient = filled_like(value, 1);
  }
  TapePass pass({value}, nullptr, options.differentiable);
  pass.seed(value, gradient);
  pass.run();
  const RecordScope records(options.differentiable);
  for (const Var& variable : pass.variables()) {
    const Var added = pass.gradient(variable);
    if (!added.is_valid()) continue;
    Var& total = static_cast<Eager&>(variable.eager()).as_variable().gradient;
    total = total.is_valid() ? total + added : added;
  }
}

Var gradient(const Var& variable) {
  Eager& here = variable_of(variable, "gradient");
  if (Recording* capture = modes().capture) return capture->gradient(here);
  return here.as_variable().gradient;
}

void clear_gradient(const Var& variable) {
  Eager& here = variable_of(variable, "clear_gradient");
  if (Recording* capture = modes().capture) return capture->set_gradient(here, Var());
  here.as_variable().gradient = Var();
}

void set_gradient(const Var& variable, const Var& gradient) {
  Eager& here = variable_of(variable, "set_gradient");
  if (Recording* capture = modes().capture) return capture->set_gradient(here, gradient);
  check_like(gradient, here, "set_gradient");
  eager_of(gradient, "set_gradient");
  here.as_variable().gradient = gradient;
}

void assign(const Var& variable, const Var& value) {
  Eager& here = variable_of(variable, "assign");
  if (Recording* capture = modes().capture) return capture->assign(here, value);
  check_like(value, here, "assign");
  here.set_tensor(eager_of(value, "assign").tensor());
}

Var detach(const Var& value) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[detach] value: expected one, got none");
  if (!value.is_eager() || modes().capture) return stop_gradient(value);
  const auto& here = static_cast<const Eager&>(value.eager());
  return Var(std::make_shared<Eager>(std::make_shared<const Type>(value.type()), here.datum()));
}

}  // namespace autograph
