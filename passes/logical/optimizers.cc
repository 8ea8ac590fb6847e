#include "passes/logical/optimizers.h"

#include <algorithm>
#include <utility>

#include "ir/nn/nn.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT

// A parameter with its finished gradient, and what its group says.
struct OptimizerBuilder::Trained {
  UpdateEmitter& emit;
  std::string name;
  Value parameter;
  Value gradient;
  Value lr;
  double decay = 0;

  Location loc() const { return parameter.getLoc(); }
  Type element() const { return UpdateEmitter::elementOf(parameter); }
  ArrayRef<int64_t> shape() const { return cast<RankedTensorType>(parameter.getType()).getShape(); }
  int64_t elements() const { return cast<RankedTensorType>(parameter.getType()).getNumElements(); }

  Value compare(StringRef predicate, Value a, Value b) const {
    NamedAttrList attrs;
    attrs.set("predicate", emit.builder().getStringAttr(predicate));
    return make("compare", {a, b}, attrs);
  }
  Value number(double value) const { return emit.scalar(element(), value); }
  // "mean.h0.fc.weight": what people read of a collective says of which parameter it is.
  Operation* create(StringRef mnemonic, ValueRange operands, NamedAttrList attrs = {}) const {
    attrs.set(kNameAttr, emit.builder().getStringAttr(mnemonic + "." + name));
    return emit.create(loc(), mnemonic, operands, std::move(attrs));
  }
  Value make(StringRef mnemonic, ValueRange operands, NamedAttrList attrs = {}) const {
    Operation* op = create(mnemonic, operands, std::move(attrs));
    return op ? op->getResult(0) : Value();
  }
  // State of the parameter's shape, or of another.
  Value state(const std::string& kind, double first = 0) const {
    return emit.state(kind + "." + name, parameter.getType(), first);
  }
  Value state(const std::string& kind, ArrayRef<int64_t> shape) const {
    return emit.state(kind + "." + name, RankedTensorType::get(shape, element()), 0);
  }
};

static Value inType(UpdateEmitter& emit, Value scalar, Type element) {
  if (!scalar || UpdateEmitter::elementOf(scalar) == element) {
    return scalar;
  }
  OperationState state(scalar.getLoc(), ir::nn::CastOp::getOperationName());
  state.addOperands(scalar);
  state.addTypes(RankedTensorType::get({}, element));
  state.addAttribute(kPhaseAttr, emit.builder().getStringAttr("update"));
  return emit.builder().create(state)->getResult(0);
}

OptimizerBuilder::OptimizerBuilder(UpdateEmitter& emit, const Optimizer& optimizer)
    : emit_(emit), optimizer_(optimizer) {
  Builder& builder = emit.builder();
  lr_ = emit.state("lr", RankedTensorType::get({}, builder.getF32Type()), setting("lr"));
  count_ = emit.state(kStepCountState, RankedTensorType::get({}, builder.getI32Type()), 0);
  step_ = emit.value(count_.getLoc(), "add", {count_, emit.scalar(builder.getI32Type(), 1)});
}

LogicalResult OptimizerBuilder::update(const std::string& name, Value parameter, Value gradient) {
  using Apply = void (OptimizerBuilder::*)(const Trained&);
  static const std::map<std::string, Apply> kinds = {
      {"sgd", &OptimizerBuilder::sgd},         {"adam", &OptimizerBuilder::adam},
      {"adamw", &OptimizerBuilder::adam},      {"adagrad", &OptimizerBuilder::adagrad},
      {"rmsprop", &OptimizerBuilder::rmsProp}, {"lamb", &OptimizerBuilder::lamb},
      {"lion", &OptimizerBuilder::lion},       {"adafactor", &OptimizerBuilder::adafactor}};
  const auto apply = kinds.find(optimizer_.kind);
  if (apply == kinds.end()) {
    return emitError(parameter.getLoc()) << "optimizer '" << optimizer_.kind << "' updates nothing";
  }
  const optim::Group group = optimizer_.groupOf(name);
  (this->*apply->second)({emit_, name, parameter, gradient, rateOf(group.lrFactor.value_or(1)),
                          group.weightDecay.value_or(setting("weight_decay"))});
  return success(!emit_.failed());
}

void OptimizerBuilder::finish() {
  for (size_t phase = 0; phase < later_.size(); ++phase) {
    for (size_t i = 0; i < later_[phase].size() && !emit_.failed(); ++i) {
      const std::function<void()> rest = std::move(later_[phase][i]);  // it may add to the list
      rest();
    }
  }
  emit_.replace(count_, step_);
}

void OptimizerBuilder::later(size_t phase, std::function<void()> rest) {
  later_.resize(std::max(later_.size(), phase + 1));
  later_[phase].push_back(std::move(rest));
}

// The learning rate of a group.
Value OptimizerBuilder::rateOf(double factor) {
  Value& rate = rates_[factor];
  if (!rate && factor == 1) {
    rate = lr_;
  } else if (!rate) {
    rate = emit_.value(lr_.getLoc(), "mul", {lr_, emit_.scalar(UpdateEmitter::elementOf(lr_), factor)});
  }
  return rate;
}

Value OptimizerBuilder::stepAs(Type element) {
  Value& step = steps_[element.getAsOpaquePointer()];
  if (!step) {
    step = inType(emit_, step_, element);
  }
  return step;
}

// The gradient with weight decay in it (L2). As a difference: the compiler takes a sum for one that it may regroup.
Value OptimizerBuilder::decayed(const Trained& p) {
  return p.decay == 0 ? p.gradient : p.make("sub", {p.gradient, p.make("mul", {p.parameter, p.number(-p.decay)})});
}

// state + weight (value - state), which replaces the state.
Value OptimizerBuilder::average(const Trained& p, Value state, Value value, Value weight) {
  Value next = p.make("sub", {state, p.make("mul", {p.make("sub", {state, value}), weight})});
  emit_.replace(state, next);
  return next;
}

// p (1 - lr decay) - rate direction.
void OptimizerBuilder::descend(const Trained& p, Value direction, Value rate, double decay) {
  NamedAttrList attrs;
  attrs.set("weight_decay", real(decay));
  finishUpdate(p, emit_.create(p.loc(), "descend", {p.parameter, direction, rate, p.lr}, attrs), {p.parameter});
}

// The results of the operator that updates the parameter, the first of them its next value, replace these arguments.
void OptimizerBuilder::finishUpdate(const Trained& p, Operation* op, ArrayRef<Value> arguments) {
  if (op == nullptr) {
    return;
  }
  op->setAttr(kNameAttr, emit_.builder().getStringAttr("update." + p.name));
  for (auto [argument, result] : llvm::zip(arguments, op->getResults())) {
    emit_.replace(argument, result);
  }
}

NamedAttrList OptimizerBuilder::settings(std::initializer_list<const char*> names) {
  NamedAttrList attrs;
  for (const char* name : names) {
    attrs.set(name, real(setting(name)));
  }
  return attrs;
}

// A direction and the next values of its state.
Value OptimizerBuilder::direction(const Trained& p, StringRef mnemonic, ArrayRef<Value> operands,
                                  ArrayRef<Value> states, NamedAttrList attrs) {
  Operation* op = p.create(mnemonic, operands, std::move(attrs));
  if (op == nullptr) {
    return {};
  }
  for (auto [state, next] : llvm::zip(states, op->getResults().drop_front())) {
    emit_.replace(state, next);
  }
  return op->getResult(0);
}

void OptimizerBuilder::sgd(const Trained& p) {
  Value momentum = p.state("momentum");
  NamedAttrList attrs = settings({"momentum"});
  attrs.set("nesterov", emit_.builder().getBoolAttr(setting("nesterov") != 0));
  Value gradient = p.gradient;
  double decay = p.decay;
  if (setting("dampening") != 0 && setting("momentum") != 0) {
    // The buffer begins with the whole of the first gradient.
    Value first = p.compare("eq", step_, emit_.scalar(UpdateEmitter::elementOf(step_), 1));
    Value weight = p.make("select", {first, p.number(1), p.number(1 - setting("dampening"))});
    gradient = p.make("mul", {decayed(p), weight});
    decay = 0;
  }
  attrs.set("weight_decay", real(decay));
  finishUpdate(p, emit_.create(p.loc(), "sgd", {p.parameter, gradient, momentum, p.lr}, attrs),
               {p.parameter, momentum});
}

void OptimizerBuilder::adam(const Trained& p) {
  Value m = p.state("adam.m");
  Value v = p.state("adam.v");
  NamedAttrList attrs = settings({"beta1", "beta2", "epsilon"});
  attrs.set("weight_decay", real(p.decay));
  attrs.set("decoupled", emit_.builder().getBoolAttr(optimizer_.kind == "adamw"));
  finishUpdate(p, emit_.create(p.loc(), "adam", {p.parameter, p.gradient, m, v, p.lr, step_}, attrs),
               {p.parameter, m, v});
}

void OptimizerBuilder::adagrad(const Trained& p) {
  Value rate = p.lr;
  if (const double decay = setting("lr_decay"); decay != 0) {
    // 1 + (t - 1) decay
    Value slower = p.make("sub", {p.make("mul", {stepAs(p.element()), p.number(decay)}), p.number(decay - 1)});
    rate = p.make("div", {inType(emit_, p.lr, p.element()), slower});
  }
  Value sum = p.state("adagrad.sum", setting("initial"));
  descend(p, direction(p, "rms_direction", {decayed(p), sum}, {sum}, settings({"epsilon"})), rate, 0);
}

void OptimizerBuilder::rmsProp(const Trained& p) {
  const double alpha = setting("alpha");
  Value v = p.state("rmsprop.v");
  Value gradient = decayed(p);
  Value made;
  if (setting("centered") != 0) {
    Value mean = average(p, p.state("rmsprop.m"), gradient, p.number(1 - alpha));
    Value squares = average(p, v, p.make("mul", {gradient, gradient}), p.number(1 - alpha));
    // A variance, but for rounding.
    Value variance = p.make("maximum", {p.make("sub", {squares, p.make("mul", {mean, mean})}), p.number(0)});
    Value root = p.make("sub", {p.make("sqrt", {variance}), p.number(-setting("epsilon"))});
    made = p.make("div", {gradient, root});
  } else {
    NamedAttrList attrs = settings({"epsilon"});
    attrs.set("decay", real(alpha));
    attrs.set("gain", real(1 - alpha));
    made = direction(p, "rms_direction", {gradient, v}, {v}, attrs);
  }
  if (setting("momentum") == 0) {
    return descend(p, made, p.lr, 0);
  }
  Value momentum = p.state("momentum");
  Operation* op = emit_.create(p.loc(), "sgd", {p.parameter, made, momentum, p.lr}, settings({"momentum"}));
  finishUpdate(p, op, {p.parameter, momentum});
}

void OptimizerBuilder::lamb(const Trained& p) {
  Value m = p.state("lamb.m");
  Value v = p.state("lamb.v");
  Value made =
      direction(p, "adam_direction", {p.gradient, m, v, step_}, {m, v}, settings({"beta1", "beta2", "epsilon"}));
  if (p.decay != 0) {
    made = p.make("sub", {made, p.make("mul", {p.parameter, p.number(-p.decay)})});
  }
  Value parameterSquares = p.make("sum_squares", {p.parameter});
  Value directionSquares = p.make("sum_squares", {made});
  later(0, [=, this] { trustedStep(p, made, parameterSquares, directionSquares); });
}

void OptimizerBuilder::trustedStep(const Trained& p, Value made, Value parameterSquares, Value directionSquares) {
  Value parameterNorm = p.make("sqrt", {parameterSquares});
  Value directionNorm = p.make("sqrt", {directionSquares});
  Value trusted = p.compare("gt", p.make("minimum", {parameterNorm, directionNorm}), p.number(0));
  // Divides by no zero, also where the ratio is not used.
  Value divisor = p.make("select", {trusted, directionNorm, p.number(1)});
  Value ratio = p.make("select", {trusted, p.make("div", {parameterNorm, divisor}), p.number(1)});
  descend(p, made, p.make("mul", {ratio, inType(emit_, p.lr, p.element())}), 0);
}

void OptimizerBuilder::lion(const Trained& p) {
  Value m = p.state("lion.m");
  descend(p, direction(p, "lion_direction", {p.gradient, m}, {m}, settings({"beta1", "beta2"})), p.lr, p.decay);
}

// In three phases for a matrix: means of squares, their mean, the direction.
void OptimizerBuilder::adafactor(const Trained& p) {
  Value squares = p.make("mul", {p.gradient, p.gradient});
  Value size = meanOfSquares(p, p.parameter);
  if (p.shape().size() < 2) {
    return adafactorDirection(p, average(p, p.state("adafactor.v"), squares, newWeight(p.element())), size);
  }
  const auto last = static_cast<int64_t>(p.shape().size()) - 1;
  Value ofRows = mean(p, squares, last);
  Value ofColumns = mean(p, squares, last - 1);
  later(0, [=, this] {
    SmallVector<int64_t> rowShape(p.shape());
    SmallVector<int64_t> columnShape(p.shape());
    rowShape[last] = 1;
    columnShape[last - 1] = 1;
    Value weight = newWeight(p.element());
    Value rows = average(p, p.state("adafactor.row", rowShape), ofRows, weight);
    Value columns = average(p, p.state("adafactor.column", columnShape), ofColumns, weight);
    Value ofAll = mean(p, rows, last - 1);
    later(1, [=, this] {
      Value whole = p.make("maximum", {ofAll, p.number(setting("epsilon"))});
      adafactorDirection(p, p.make("mul", {p.make("div", {rows, whole}), columns}), size);
    });
  });
}

void OptimizerBuilder::adafactorDirection(const Trained& p, Value estimate, Value size) {
  const double epsilon = setting("epsilon");
  Value root = p.make("rsqrt", {p.make("maximum", {estimate, p.number(epsilon * epsilon)})});
  Value made = p.make("mul", {p.gradient, root});
  Value squares = meanOfSquares(p, made);
  later(2, [=, this] {
    Value scale = p.make("maximum", {p.make("sqrt", {size}), p.number(setting("epsilon2"))});
    Value excess = p.make("div", {p.make("sqrt", {squares}), p.number(setting("clip_threshold"))});
    Value rate = p.make("mul", {p.make("div", {scale, p.make("maximum", {excess, p.number(1)})}), slowedRate(p)});
    descend(p, made, rate, p.decay);
  });
}

// t^beta2_decay
Value OptimizerBuilder::newWeight(Type element) {
  Value& weight = weights_[element.getAsOpaquePointer()];
  if (!weight) {
    Location loc = step_.getLoc();
    Value decay = emit_.scalar(element, setting("beta2_decay"));
    weight = emit_.value(loc, "exp", {emit_.value(loc, "mul", {emit_.value(loc, "log", {stepAs(element)}), decay})});
  }
  return weight;
}

// min(lr, 1 / sqrt(t))
Value OptimizerBuilder::slowedRate(const Trained& p) {
  Value& rate = slowed_[{p.lr.getAsOpaquePointer(), p.element().getAsOpaquePointer()}];
  if (!rate) {
    Location loc = step_.getLoc();
    Value slow = emit_.value(loc, "rsqrt", {stepAs(p.element())});
    rate = emit_.value(loc, "minimum", {inType(emit_, p.lr, p.element()), slow});
  }
  return rate;
}

// Over one dimension, which stays with size 1.
Value OptimizerBuilder::mean(const Trained& p, Value value, int64_t dim) {
  NamedAttrList attrs;
  attrs.set("dims", emit_.builder().getDenseI64ArrayAttr({dim}));
  attrs.set("keep_dims", emit_.builder().getBoolAttr(true));
  attrs.set("count", emit_.builder().getI64IntegerAttr(p.shape()[dim]));
  return p.make("mean", {value}, attrs);
}

// Divided where the sum is made: a sum over ranks goes on through it, so the collective stands behind it.
Value OptimizerBuilder::meanOfSquares(const Trained& p, Value value) {
  return p.make("div", {p.make("sum_squares", {value}), p.number(static_cast<double>(p.elements()))});
}

}  // namespace weft
