#include <cmath>

#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using mlir::Value;

// dx = body(op, emit, dy) for an operator of one operand and one result.
template <typename Op, typename Body>
void addUnary(OperatorRegistry& registry, Body body) {
  addGradient<Op>(registry, [body](Op op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = body(op, emit, context.resultGradients[0]);
  });
}

void addActivations(OperatorRegistry& registry) {
  addUnary<ReluOp>(registry, [](ReluOp op, Emitter& emit, Value dy) { return emit.make<ReluGradOp>(op.getY(), dy); });
  addUnary<GeluOp>(registry, [](GeluOp op, Emitter& emit, Value dy) {
    return emit.make<GeluGradOp>(op.getX(), dy, op.getApproximate());
  });
  addUnary<TanhOp>(registry, [](TanhOp op, Emitter& emit, Value dy) { return emit.make<TanhGradOp>(op.getY(), dy); });
  addUnary<SigmoidOp>(registry,
                      [](SigmoidOp op, Emitter& emit, Value dy) { return emit.make<SigmoidGradOp>(op.getY(), dy); });
  addUnary<SiluOp>(registry, [](SiluOp op, Emitter& emit, Value dy) { return emit.make<SiluGradOp>(op.getX(), dy); });
  addUnary<SoftplusOp>(registry,
                       [](SoftplusOp op, Emitter& emit, Value dy) { return emit.make<SoftplusGradOp>(op.getX(), dy); });
  addUnary<HardSwishOp>(
      registry, [](HardSwishOp op, Emitter& emit, Value dy) { return emit.make<HardSwishGradOp>(op.getX(), dy); });
  addUnary<LeakyReluOp>(registry, [](LeakyReluOp op, Emitter& emit, Value dy) {
    return emit.make<LeakyReluGradOp>(op.getX(), dy, op.getSlope());
  });
  addUnary<EluOp>(registry,
                  [](EluOp op, Emitter& emit, Value dy) { return emit.make<EluGradOp>(op.getX(), dy, op.getAlpha()); });
}

// Steps have slope 0 wherever they have one.
template <typename Op>
void addStep(OperatorRegistry& registry) {
  addUnary<Op>(registry, [](Op, Emitter&, Value) { return Value(); });
}

void addFunctions(OperatorRegistry& registry) {
  addUnary<AbsOp>(registry,
                  [](AbsOp op, Emitter& emit, Value dy) { return emit.make<MulOp>(dy, emit.make<SignOp>(op.getX())); });
  // 2 / sqrt(pi) e^(-x^2) dy.
  addUnary<ErfOp>(registry, [](ErfOp op, Emitter& emit, Value dy) {
    Value bell = emit.make<ExpOp>(emit.make<NegOp>(emit.make<MulOp>(op.getX(), op.getX())));
    return emit.make<MulOp>(dy, emit.make<MulOp>(bell, emit.number(M_2_SQRTPI, dy)));
  });
  addUnary<SinOp>(registry,
                  [](SinOp op, Emitter& emit, Value dy) { return emit.make<MulOp>(dy, emit.make<CosOp>(op.getX())); });
  addUnary<CosOp>(registry, [](CosOp op, Emitter& emit, Value dy) {
    return emit.make<NegOp>(emit.make<MulOp>(dy, emit.make<SinOp>(op.getX())));
  });
  addStep<SignOp>(registry);
  addStep<FloorOp>(registry);
  addStep<CeilOp>(registry);
}

void addUnaries(OperatorRegistry& registry) {
  addUnary<NegOp>(registry, [](NegOp op, Emitter& emit, Value dy) { return emit.make<NegOp>(dy); });
  addUnary<ExpOp>(registry, [](ExpOp op, Emitter& emit, Value dy) { return emit.make<MulOp>(dy, op.getY()); });
  addUnary<LogOp>(registry, [](LogOp op, Emitter& emit, Value dy) { return emit.make<DivOp>(dy, op.getX()); });
  // y = x^1/2: dx = dy / (2 y).
  addUnary<SqrtOp>(registry, [](SqrtOp op, Emitter& emit, Value dy) {
    return emit.make<DivOp>(emit.make<MulOp>(dy, emit.number(0.5, dy)), op.getY());
  });
  // y = x^-1/2: dx = -1/2 y^3 dy.
  addUnary<RsqrtOp>(registry, [](RsqrtOp op, Emitter& emit, Value dy) {
    Value y = op.getY();
    Value cube = emit.make<MulOp>(y, emit.make<MulOp>(y, y));
    return emit.make<MulOp>(dy, emit.make<MulOp>(cube, emit.number(-0.5, dy)));
  });
  addUnary<CastOp>(registry, [](CastOp op, Emitter& emit, Value dy) -> Value {
    mlir::Type element = op.getX().getType().getElementType();
    return llvm::isa<mlir::FloatType>(element) ? emit.cast(dy, element) : Value();
  });
  addUnary<ConstrainOp>(
      registry, [](ConstrainOp op, Emitter& emit, Value dy) { return emit.make<ConstrainOp>(dy, op.getLayout()); });
  addUnary<StopGradientOp>(registry, [](StopGradientOp, Emitter&, Value) { return Value(); });
}

// da = body(emit, a, b, dy), db likewise, both of y's shape; what was broadcast is summed.
template <typename Op, typename BodyA, typename BodyB>
void addBinary(OperatorRegistry& registry, BodyA forA, BodyB forB) {
  addGradient<Op>(registry, [forA, forB](Op op, Emitter& emit, GradientContext& context) {
    Value dy = context.resultGradients[0];
    if (context.wanted[0]) {
      context.operandGradients[0] = emit.sumTo(forA(op, emit, dy), op.getA());
    }
    if (context.wanted[1]) {
      context.operandGradients[1] = emit.sumTo(forB(op, emit, dy), op.getB());
    }
  });
}

void addArithmetic(OperatorRegistry& registry) {
  auto same = [](auto, Emitter&, Value dy) { return dy; };
  addBinary<AddOp>(registry, same, same);
  addBinary<SubOp>(registry, same, [](SubOp, Emitter& emit, Value dy) { return emit.make<NegOp>(dy); });
  addBinary<MulOp>(
      registry, [](MulOp op, Emitter& emit, Value dy) { return emit.make<MulOp>(dy, op.getB()); },
      [](MulOp op, Emitter& emit, Value dy) { return emit.make<MulOp>(dy, op.getA()); });
  // y = a / b: db = -dy y / b.
  addBinary<DivOp>(
      registry, [](DivOp op, Emitter& emit, Value dy) { return emit.make<DivOp>(dy, op.getB()); },
      [](DivOp op, Emitter& emit, Value dy) {
        return emit.make<NegOp>(emit.make<MulOp>(dy, emit.make<DivOp>(op.getY(), op.getB())));
      });
}

// y = a^b: da = b a^(b-1) dy, 0 for b = 0; db = y log(a) dy, 0 for a = 0.
void addPower(OperatorRegistry& registry) {
  addBinary<PowOp>(
      registry,
      [](PowOp op, Emitter& emit, Value dy) {
        Value zero = emit.number(0.0, dy);
        Value less = emit.make<PowOp>(op.getA(), emit.make<SubOp>(op.getB(), emit.number(1.0, dy)));
        Value isConstant = emit.make<CompareOp>(op.getB(), zero, "eq");
        return emit.make<MulOp>(dy, emit.make<SelectOp>(isConstant, zero, emit.make<MulOp>(op.getB(), less)));
      },
      [](PowOp op, Emitter& emit, Value dy) {
        Value isZero = emit.make<CompareOp>(op.getA(), emit.number(0.0, dy), "eq");
        Value log = emit.make<LogOp>(emit.make<SelectOp>(isZero, emit.number(1.0, dy), op.getA()));
        return emit.make<MulOp>(dy, emit.make<MulOp>(op.getY(), log));
      });
}

// dy where `winner predicate other`, half of it where both are equal.
Value chosen(Emitter& emit, Value dy, std::pair<Value, Value> winnerAndOther, llvm::StringRef predicate) {
  auto [winner, other] = winnerAndOther;
  mlir::Type element = plainType(dy).getElementType();
  Value wins = emit.cast(emit.make<CompareOp>(winner, other, predicate), element);
  Value ties = emit.cast(emit.make<CompareOp>(winner, other, "eq"), element);
  Value weight = emit.make<AddOp>(wins, emit.make<MulOp>(ties, emit.number(0.5, dy)));
  return emit.make<MulOp>(dy, weight);
}

template <typename Op>
void addExtremum(OperatorRegistry& registry, const char* predicate) {
  addBinary<Op>(
      registry,
      [predicate](Op op, Emitter& emit, Value dy) { return chosen(emit, dy, {op.getA(), op.getB()}, predicate); },
      [predicate](Op op, Emitter& emit, Value dy) { return chosen(emit, dy, {op.getB(), op.getA()}, predicate); });
}

void addSelect(OperatorRegistry& registry) {
  addGradient<SelectOp>(registry, [](SelectOp op, Emitter& emit, GradientContext& context) {
    Value dy = context.resultGradients[0];
    Value zero = emit.number(0.0, dy);
    if (context.wanted[1]) {
      Value da = emit.make<SelectOp>(op.getCondition(), dy, zero);
      context.operandGradients[1] = emit.sumTo(da, op.getA());
    }
    if (context.wanted[2]) {
      Value db = emit.make<SelectOp>(op.getCondition(), zero, dy);
      context.operandGradients[2] = emit.sumTo(db, op.getB());
    }
  });
}

}  // namespace

void addElementwiseGradients(OperatorRegistry& registry) {
  addActivations(registry);
  addFunctions(registry);
  addUnaries(registry);
  addArithmetic(registry);
  addPower(registry);
  addExtremum<MaximumOp>(registry, "gt");
  addExtremum<MinimumOp>(registry, "lt");
  addSelect(registry);
}

}  // namespace weft::ir
