#include "ir/program/signature.h"

#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT

SignatureBuilder::SignatureBuilder(func::FuncOp function) : function_(function) {
  for (const Argument& argument : argumentsOf(function)) {
    names_.push_back(argument.name);
    numbers_.try_emplace(argument.name, argument.index);
  }
}

BlockArgument SignatureBuilder::argument(StringRef name) {
  const auto known = numbers_.find(name);
  return known == numbers_.end() ? BlockArgument() : function_.getBody().front().getArgument(known->second);
}

BlockArgument SignatureBuilder::addArgument(Type type, const NamedAttrList& attributes, Location place) {
  BlockArgument added = function_.getBody().front().addArgument(type, place);
  auto name = dyn_cast_or_null<StringAttr>(attributes.get(kNameAttr));
  names_.push_back(name ? name.str() : "");
  numbers_.try_emplace(names_.back(), added.getArgNumber());
  newArguments_.push_back(attributes.getDictionary(function_.getContext()));
  return added;
}

void SignatureBuilder::addResult(Value value, const NamedAttrList& attributes) {
  values_.push_back(value);
  newResults_.push_back(attributes.getDictionary(function_.getContext()));
}

void SignatureBuilder::finish() {
  Operation* terminator = function_.getBody().front().getTerminator();
  SmallVector<DictionaryAttr> arguments;
  for (unsigned i = 0; i + newArguments_.size() < function_.getBody().getNumArguments(); ++i) {
    arguments.push_back(function_.getArgAttrDict(i));
  }
  SmallVector<DictionaryAttr> results;
  for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
    results.push_back(function_.getResultAttrDict(i));
  }
  terminator->insertOperands(terminator->getNumOperands(), values_);
  refreshType(function_);
  // A dictionary that is missing counts as an empty one.
  const auto filled = [&](SmallVector<DictionaryAttr> all, ArrayRef<DictionaryAttr> more) {
    llvm::append_range(all, more);
    for (DictionaryAttr& attributes : all) {
      attributes = attributes ? attributes : DictionaryAttr::get(function_.getContext());
    }
    return all;
  };
  function_.setAllArgAttrs(filled(arguments, newArguments_));
  function_.setAllResultAttrs(filled(results, newResults_));
  newArguments_.clear();
  values_.clear();
  newResults_.clear();
}

}  // namespace weft
