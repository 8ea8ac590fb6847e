// Types of batch norm and of the operators it is written with: x [n, c, ...], statistics [micro-batches, c].
#include "ir/nn/infer.h"
#include "llvm/ADT/StringExtras.h"

namespace weft::ir::infer {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

llvm::ArrayRef<int64_t> shape(Value value) {
  return plainType(value).getShape();
}

LogicalResult hasChannels(const InferSite& site, int check, Value x) {
  return shape(x).size() >= 2
             ? success()
             : site.error(check, "x is " + printType(x) + "; it needs a batch and a channel dimension");
}

LogicalResult perChannel(const InferSite& site, int check, Value x, Value value) {
  if (plainType(value) != withShape(x, {shape(x)[1]})) {
    return site.error(check, "x is " + printType(x) + ", a value for each channel is " + printType(value) +
                                 "; it must be [" + llvm::Twine(shape(x)[1]) + "] of the same type");
  }
  return success();
}

LogicalResult perMicroBatch(const InferSite& site, int check, Value x, Value value) {
  const llvm::ArrayRef<int64_t> dims = shape(value);
  if (dims.size() != 2 || dims[1] != shape(x)[1] || plainType(value) != withShape(x, dims)) {
    return site.error(check, "x is " + printType(x) + ", a statistic is " + printType(value) +
                                 "; it must be [micro-batches, " + llvm::Twine(shape(x)[1]) + "] of the same type");
  }
  return success();
}

LogicalResult sameAs(const InferSite& site, int check, Value x, Value other) {
  if (plainType(x) != plainType(other)) {
    return site.error(
        check, "x is " + printType(x) + " and another operand " + printType(other) + "; they must have the same type");
  }
  return success();
}

}  // namespace

LogicalResult batchNorm(const InferSite& site, ValueRange operands) {
  if (operands.size() != 3 && operands.size() != 5) {
    return site.error(
        3, llvm::Twine(operands.size()) + " operands; x, gamma, beta, or these and the running mean and variance");
  }
  Value x = operands[0];
  if (failed(hasChannels(site, 1, x))) {
    return failure();
  }
  for (Value other : operands.drop_front()) {
    if (failed(perChannel(site, 2, x, other))) {
      return failure();
    }
  }
  const Type statistic = withShape(x, {1, shape(x)[1]});
  llvm::SmallVector<Type> types = {plainType(x), statistic, statistic, statistic};
  types.append(operands.size() - 3, plainType(operands[1]));
  return site.give(types);
}

LogicalResult batchNormGrad(const InferSite& site, ValueRange operands) {
  Value x = operands[0];
  Value gamma = operands[1];
  if (failed(hasChannels(site, 1, x)) || failed(perChannel(site, 2, x, gamma)) ||
      failed(sameAs(site, 3, x, operands[5]))) {
    return failure();
  }
  for (Value statistic : operands.slice(2, 3)) {
    if (failed(perMicroBatch(site, 4, x, statistic))) {
      return failure();
    }
  }
  return site.give({plainType(x), plainType(gamma), plainType(gamma)});
}

LogicalResult channelDot(const InferSite& site, Value x, Value z, Value center) {
  if (failed(hasChannels(site, 1, x)) || failed(sameAs(site, 1, x, z)) || failed(perMicroBatch(site, 2, x, center))) {
    return failure();
  }
  return site.give({plainType(center)});
}

LogicalResult channelAffine(const InferSite& site, ValueRange operands) {
  if (operands.size() < 3 || operands.size() % 2 == 0) {
    return site.error(1, llvm::Twine(operands.size()) + " operands; x, a for each term and one offset");
  }
  Value x = operands[0];
  if (failed(hasChannels(site, 2, x))) {
    return failure();
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool image = i % 2 == 0 && i + 1 < operands.size();
    if (failed(image ? sameAs(site, 2, x, operands[i]) : perMicroBatch(site, 3, x, operands[i]))) {
      return failure();
    }
  }
  return site.give({plainType(x)});
}

}  // namespace weft::ir::infer
