#include "passes/plan/constant_data.h"

#include <bit>

#include "mlir/IR/DialectResourceBlobManager.h"

namespace weft {

using namespace mlir;  // NOLINT

// Elements are copied as they lie in memory.
static_assert(std::endian::native == std::endian::little);

namespace {

std::string elementBytes(const llvm::APInt& value) {
  const uint64_t word = value.getZExtValue();
  return {reinterpret_cast<const char*>(&word), std::max(value.getBitWidth() / 8, 1u)};
}

std::string splatBytes(DenseElementsAttr elements, int64_t count) {
  const std::string one = isa<FloatType>(elements.getElementType())
                              ? elementBytes(elements.getSplatValue<llvm::APFloat>().bitcastToAPInt())
                              : elementBytes(elements.getSplatValue<llvm::APInt>());
  std::string bytes;
  bytes.reserve(one.size() * count);
  for (int64_t i = 0; i < count; ++i) {
    bytes += one;
  }
  return bytes;
}

std::string denseBytes(DenseElementsAttr elements) {
  if (!elements.getElementType().isInteger(1)) {
    return {elements.getRawData().begin(), elements.getRawData().end()};
  }
  std::string bytes;  // bits in memory
  for (const bool value : elements.getValues<bool>()) {
    bytes.push_back(value ? 1 : 0);
  }
  return bytes;
}

}  // namespace

FailureOr<std::string> constantData(ir::nn::ConstantOp op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const int64_t size = type.getNumElements() * std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  std::string bytes;
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
    bytes = dense.isSplat() ? splatBytes(dense, type.getNumElements()) : denseBytes(dense);
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue())) {
    AsmResourceBlob* blob = resource.getRawHandle().getBlob();
    if (blob == nullptr) {
      return op->emitError("the elements of this constant are not in the module (resource without data)");
    }
    bytes.assign(blob->getData().begin(), blob->getData().end());
  }
  if (static_cast<int64_t>(bytes.size()) != size) {
    return op->emitError() << "the constant has " << bytes.size() << " bytes of elements, its type " << type
                           << " asks for " << size;
  }
  return bytes;
}

}  // namespace weft
