#include "passes/decide/recompute_scopes.h"

#include <set>

#include "ir/program/program.h"
#include "runtime/base/names.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

bool isForward(Operation* op) {
  auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
  return (!phase || phase.getValue().empty()) && !op->hasAttr(kPrologueAttr);
}

std::string kindOf(Operation* op) {
  return op->getName().stripDialect().str();
}

bool matches(Operation* op, const std::string& pattern) {
  return globMatches(pattern, kindOf(op)) || globMatches(pattern, labelOf(op));
}

bool mayBeRecomputed(Operation* op) {
  return isForward(op) && op->getNumOperands() > 0;
}

}  // namespace

std::vector<std::string> recomputableNames(func::FuncOp step) {
  std::set<std::string> names;
  for (Operation& op : step.getBody().front().without_terminator()) {
    if (mayBeRecomputed(&op)) {
      names.insert({kindOf(&op), labelOf(&op)});
    }
  }
  return {names.begin(), names.end()};
}

bool isRecomputed(Operation* op, const std::vector<std::string>& patterns) {
  if (!mayBeRecomputed(op)) {
    return false;
  }
  auto scope = op->getAttrOfType<IntegerAttr>(kUserRecomputeAttr);
  bool outside = false;
  for (Operation* user : op->getUsers()) {
    outside |= user->hasTrait<OpTrait::IsTerminator>() || (isForward(user) && stageOf(user) != stageOf(op));
    outside |= scope && isForward(user) && user->getAttr(kUserRecomputeAttr) != scope;
  }
  const bool named = llvm::any_of(patterns, [&](const std::string& pattern) { return matches(op, pattern); });
  return !outside && (scope || named);
}

}  // namespace weft
