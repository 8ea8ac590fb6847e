#include "ir/nn/infer.h"

#include <algorithm>

#include "ir/nn/contract_spec.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

namespace weft::ir {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;
using mlir::failed;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

bool sameShapesAndElements(mlir::TypeRange a, mlir::TypeRange b) {
  return a.size() == b.size() && llvm::all_of_zip(a, b, [](Type x, Type y) { return plainType(x) == plainType(y); });
}

RankedTensorType plainType(Type type) {
  auto tensor = llvm::cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType());
}

RankedTensorType plainType(Value value) {
  return plainType(value.getType());
}

RankedTensorType withShape(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, plainType(value).getElementType());
}

std::string printType(Value value) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::interleave(plainType(value).getShape(), out, "x");
  out << (plainType(value).getRank() > 0 ? "x" : "") << plainType(value).getElementType();
  return text;
}

int64_t dimensionOf(Value value, int64_t dim) {
  ArrayRef<int64_t> shape = llvm::cast<RankedTensorType>(value.getType()).getShape();
  return shape[dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim];
}

int64_t reducedCount(Value value, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    count *= dimensionOf(value, dim);
  }
  return count;
}

LogicalResult InferSite::error(int check, const Twine& text) const {
  return mlir::emitOptionalError(location, op, " (", check, "): ", text);
}

LogicalResult InferSite::give(ArrayRef<Type> inferred) const {
  for (Type type : inferred) {
    if (!isBounded(type)) {
      return mlir::emitOptionalError(location, op, ": the result would be ", type,
                                     "; a tensor has at least one element and at most ", kMaxBytes, " bytes");
    }
  }
  types.assign(inferred.begin(), inferred.end());
  return success();
}

namespace infer {
namespace {

ArrayRef<int64_t> shape(Value value) {
  return llvm::cast<RankedTensorType>(value.getType()).getShape();
}
int64_t rank(Value value) {
  return static_cast<int64_t>(shape(value).size());
}
Type element(Value value) {
  return llvm::cast<RankedTensorType>(value.getType()).getElementType();
}

std::string number(int64_t value) {
  return std::to_string(value);
}

std::string list(ArrayRef<int64_t> values) {
  std::string text = "[";
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(values, out);
  out << "]";
  return text;
}

LogicalResult sameElements(const InferSite& site, int check, Value a, Value b) {
  if (element(a) != element(b)) {
    return site.error(check, "element types differ: " + printType(a) + " and " + printType(b) + "; cast one of them");
  }
  return success();
}

LogicalResult broadcastShapes(const InferSite& site, int check, ValueRange values, SmallVector<int64_t>& result) {
  for (Value value : values) {
    ArrayRef<int64_t> dims = shape(value);
    if (dims.size() > result.size()) {
      result.insert(result.begin(), dims.size() - result.size(), 1);
    }
    for (size_t j = 0; j < dims.size(); ++j) {
      int64_t& size = result[result.size() - dims.size() + j];
      if (size != dims[j] && size != 1 && dims[j] != 1) {
        return site.error(check, "shapes do not broadcast: " + printType(values.front()) + " and " + printType(value) +
                                     " have sizes " + number(size) + " and " + number(dims[j]) +
                                     " in a dimension, aligned at the right");
      }
      size = size == 1 ? dims[j] : size;
    }
  }
  return success();
}

LogicalResult checkGelu(const InferSite& site, StringRef approximate) {
  if (approximate != "tanh" && approximate != "none") {
    return site.error(1, "approximate is \"" + approximate + "\"; it must be \"tanh\" or \"none\"");
  }
  return success();
}

LogicalResult leading(const InferSite& site, int check, Value x, Value lead, StringRef name) {
  if (rank(x) < 1 || shape(x).drop_back() != shape(lead)) {
    return site.error(check,
                      name + " is " + printType(lead) + "; it must have the leading dimensions of " + printType(x));
  }
  return success();
}

LogicalResult sameTypeAs(const InferSite& site, int check, Value x, Value other, StringRef name) {
  if (plainType(x) != plainType(other)) {
    return site.error(check, name + " is " + printType(other) + "; it must be " + printType(x));
  }
  return success();
}

LogicalResult scalar(const InferSite& site, int check, Value value, StringRef name) {
  if (rank(value) != 0) {
    return site.error(check, name + " is " + printType(value) + "; it must be a scalar");
  }
  return success();
}

LogicalResult checkDims(const InferSite& site, Value x, ArrayRef<int64_t> dims) {
  bool increasing = std::is_sorted(dims.begin(), dims.end(), std::less_equal<int64_t>());
  if (!increasing || (!dims.empty() && (dims.front() < 0 || dims.back() >= rank(x)))) {
    return site.error(1, "dims are " + list(dims) + "; they must increase and lie in [0, " + number(rank(x)) +
                             ") for " + printType(x));
  }
  return success();
}

}  // namespace

LogicalResult same(const InferSite& site, Value x) {
  return site.give({plainType(x)});
}

LogicalResult sameOperands(const InferSite& site, ValueRange operands) {
  for (Value operand : operands.drop_front()) {
    if (failed(sameTypeAs(site, 1, operands.front(), operand, "an operand"))) {
      return mlir::failure();
    }
  }
  return same(site, operands.front());
}

LogicalResult gelu(const InferSite& site, Value x, StringRef approximate) {
  return failed(checkGelu(site, approximate)) ? mlir::failure() : same(site, x);
}

LogicalResult geluGrad(const InferSite& site, ValueRange operands, StringRef approximate) {
  return failed(checkGelu(site, approximate)) ? mlir::failure() : sameOperands(site, operands);
}

LogicalResult binary(const InferSite& site, Value a, Value b) {
  SmallVector<int64_t> result;
  if (failed(sameElements(site, 1, a, b)) || failed(broadcastShapes(site, 2, {a, b}, result))) {
    return mlir::failure();
  }
  return site.give({withShape(a, result)});
}

LogicalResult compare(const InferSite& site, Value a, Value b, StringRef predicate) {
  if (!llvm::is_contained({"eq", "ne", "lt", "le", "gt", "ge"}, predicate)) {
    return site.error(3, "predicate is \"" + predicate + "\"; it must be eq, ne, lt, le, gt or ge");
  }
  SmallVector<int64_t> result;
  if (failed(sameElements(site, 1, a, b)) || failed(broadcastShapes(site, 2, {a, b}, result))) {
    return mlir::failure();
  }
  return site.give({RankedTensorType::get(result, mlir::IntegerType::get(a.getContext(), 1))});
}

LogicalResult select(const InferSite& site, Value condition, Value a, Value b) {
  SmallVector<int64_t> result;
  if (failed(sameElements(site, 1, a, b)) || failed(broadcastShapes(site, 2, {condition, a, b}, result))) {
    return mlir::failure();
  }
  return site.give({withShape(a, result)});
}

LogicalResult matmul(const InferSite& site, Value a, Value b, bool transposeA, bool transposeB) {
  if (failed(sameElements(site, 1, a, b))) {
    return mlir::failure();
  }
  if (rank(a) < 2 || (rank(b) != 2 && rank(b) != rank(a))) {
    return site.error(2, "a is " + printType(a) + " and b is " + printType(b) +
                             "; a needs at least 2 dimensions, b 2 or as many as a");
  }
  int64_t k = dimensionOf(a, transposeA ? -2 : -1);
  int64_t kOfB = dimensionOf(b, transposeB ? -1 : -2);
  if (k != kOfB) {
    return site.error(3, "k is " + number(k) + " in a (" + printType(a) + (transposeA ? " transposed" : "") + ") and " +
                             number(kOfB) + " in b (" + printType(b) + (transposeB ? " transposed)" : ")"));
  }
  if (rank(b) > 2 && shape(a).drop_back(2) != shape(b).drop_back(2)) {
    return site.error(4, "batch dimensions differ: " + printType(a) + " and " + printType(b));
  }
  SmallVector<int64_t> result(shape(a).drop_back(2));
  result.push_back(dimensionOf(a, transposeA ? -1 : -2));
  result.push_back(dimensionOf(b, transposeB ? -2 : -1));
  return site.give({withShape(a, result)});
}

LogicalResult contract(const InferSite& site, Value a, Value b, StringRef text) {
  if (failed(sameElements(site, 1, a, b))) {
    return mlir::failure();
  }
  absl::StatusOr<ContractSpec> spec = parseContractSpec(text);
  if (!spec.ok()) {
    return site.error(2, std::string(spec.status().message()));
  }
  llvm::StringMap<int64_t> sizes;
  for (auto [value, letters] : {std::pair(a, spec->a), std::pair(b, spec->b)}) {
    if (letters.size() != shape(value).size()) {
      return site.error(
          3, "specification \"" + text + "\" gives " + number(letters.size()) + " letters to " + printType(value));
    }
    for (auto [letter, size] : llvm::zip(letters, shape(value))) {
      int64_t known = sizes.try_emplace(letter, size).first->second;
      if (known != size) {
        return site.error(4, "letter '" + letter + "' is " + number(known) + " in " + printType(a) + " and " +
                                 number(size) + " in " + printType(b));
      }
    }
  }
  SmallVector<int64_t> result;
  for (const std::string& letter : spec->result) {
    result.push_back(sizes.lookup(letter));
  }
  return site.give({withShape(a, result)});
}

LogicalResult transpose(const InferSite& site, Value x, ArrayRef<int64_t> permutation) {
  llvm::SmallBitVector seen(shape(x).size());
  SmallVector<int64_t> result;
  for (int64_t dim : permutation) {
    if (dim >= 0 && dim < rank(x)) {
      seen.set(dim);
      result.push_back(shape(x)[dim]);
    }
  }
  if (permutation.size() != shape(x).size() || !seen.all()) {
    return site.error(
        1, "permutation " + list(permutation) + " does not name every dimension of " + printType(x) + " once");
  }
  return site.give({withShape(x, result)});
}

LogicalResult slice(const InferSite& site, Value x, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  if (offsets.size() != shape(x).size() || sizes.size() != shape(x).size()) {
    return site.error(1, "offsets " + list(offsets) + " and sizes " + list(sizes) +
                             " must have one entry for each dimension of " + printType(x));
  }
  for (auto [offset, size, dim] : llvm::zip(offsets, sizes, shape(x))) {
    if (offset < 0 || size < 0 || offset > dim || size > dim - offset) {
      return site.error(2, "offset " + number(offset) + " and size " + number(size) +
                               " reach outside a dimension of size " + number(dim) + " of " + printType(x));
    }
  }
  return site.give({withShape(x, sizes)});
}

LogicalResult pad(const InferSite& site, Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  if (low.size() != shape(x).size() || high.size() != shape(x).size()) {
    return site.error(1, "low " + list(low) + " and high " + list(high) +
                             " must have one entry for each dimension of " + printType(x));
  }
  SmallVector<int64_t> result;
  for (auto [below, above, dim] : llvm::zip(low, high, shape(x))) {
    if (below < 0 || above < 0) {
      return site.error(2, "low " + list(low) + " or high " + list(high) + " is negative; use slice");
    }
    if (below > kMaxBytes || above > kMaxBytes) {
      return site.error(3, "low " + list(low) + " or high " + list(high) + " is more than a tensor can have");
    }
    result.push_back(below + dim + above);
  }
  return site.give({withShape(x, result)});
}

LogicalResult concat(const InferSite& site, ValueRange xs, int64_t dim) {
  if (xs.empty()) {
    return site.error(1, "there is no operand");
  }
  if (dim < 0 || dim >= rank(xs.front())) {
    return site.error(2, "dim " + number(dim) + " is not a dimension of " + printType(xs.front()));
  }
  SmallVector<int64_t> result(shape(xs.front()));
  for (Value x : xs.drop_front()) {
    SmallVector<int64_t> expected(shape(xs.front()));
    if (rank(x) == rank(xs.front())) {
      expected[dim] = shape(x)[dim];
    }
    if (plainType(x) != withShape(xs.front(), expected)) {
      return site.error(
          3, printType(xs.front()) + " and " + printType(x) + " may differ only in dimension " + number(dim));
    }
    result[dim] += shape(x)[dim];
  }
  return site.give({withShape(xs.front(), result)});
}

LogicalResult reduce(const InferSite& site, Value x, ArrayRef<int64_t> dims, bool keepDims) {
  if (failed(checkDims(site, x, dims))) {
    return mlir::failure();
  }
  SmallVector<int64_t> result;
  for (int64_t d = 0; d < rank(x); ++d) {
    if (!llvm::is_contained(dims, d)) {
      result.push_back(shape(x)[d]);
    } else if (keepDims) {
      result.push_back(1);
    }
  }
  return site.give({withShape(x, result)});
}

LogicalResult mean(const InferSite& site, Value x, ArrayRef<int64_t> dims, bool keepDims, int64_t count) {
  if (count < 1) {
    return site.error(2, "count is " + number(count) + "; it must be positive");
  }
  return reduce(site, x, dims, keepDims);
}

LogicalResult scalarOf(const InferSite& site, Value x) {
  return site.give({withShape(x, {})});
}

LogicalResult boolScalar(const InferSite& site, Value x) {
  return site.give({RankedTensorType::get({}, mlir::IntegerType::get(x.getContext(), 1))});
}

LogicalResult rowwise(const InferSite& site, Value x) {
  if (rank(x) < 1) {
    return site.error(1, printType(x) + " has no last dimension");
  }
  return same(site, x);
}

namespace {

// (1) x has a last dimension. (2) `vector` has its size.
LogicalResult lastOf(const InferSite& site, Value x, Value vector, StringRef name) {
  if (failed(rowwise(site, x))) {
    return mlir::failure();
  }
  if (plainType(vector) != withShape(x, {shape(x).back()})) {
    return site.error(2, name + " is " + printType(vector) + "; it must have the last dimension of " + printType(x));
  }
  return success();
}

}  // namespace

LogicalResult layerNorm(const InferSite& site, Value x, Value gamma, Value beta) {
  if (failed(lastOf(site, x, gamma, "gamma")) || failed(lastOf(site, x, beta, "beta"))) {
    return mlir::failure();
  }
  RankedTensorType lead = withShape(x, shape(x).drop_back());
  return site.give({plainType(x), lead, lead});
}

LogicalResult layerNormGrad(const InferSite& site, ValueRange operands) {
  Value x = operands[0];
  Value gamma = operands[1];
  if (failed(layerNorm(site, x, gamma, gamma)) || failed(sameTypeAs(site, 3, x, operands[4], "dy")) ||
      failed(leading(site, 4, x, operands[2], "mean")) || failed(leading(site, 4, x, operands[3], "rstd"))) {
    return mlir::failure();
  }
  return site.give({plainType(x), plainType(gamma), plainType(gamma)});
}

LogicalResult rmsNorm(const InferSite& site, Value x, Value gamma) {
  if (failed(lastOf(site, x, gamma, "gamma"))) {
    return mlir::failure();
  }
  return site.give({plainType(x), withShape(x, shape(x).drop_back())});
}

LogicalResult rmsNormGrad(const InferSite& site, ValueRange operands) {
  Value x = operands[0];
  if (failed(lastOf(site, x, operands[1], "gamma")) || failed(sameTypeAs(site, 3, x, operands[3], "dy")) ||
      failed(leading(site, 4, x, operands[2], "rstd"))) {
    return mlir::failure();
  }
  return site.give({plainType(x), plainType(operands[1])});
}

LogicalResult embedding(const InferSite& site, Value table, Value ids, int64_t rows) {
  if (rank(table) != 2) {
    return site.error(1, "the table is " + printType(table) + "; it must have two dimensions, rows and columns");
  }
  if (rows < 1) {
    return site.error(2, "rows is " + number(rows) + "; it must be positive");
  }
  SmallVector<int64_t> result(shape(ids));
  result.push_back(shape(table)[1]);
  return site.give({withShape(table, result)});
}

LogicalResult crossEntropy(const InferSite& site, Value logits, Value labels) {
  if (failed(leading(site, 1, logits, labels, "labels"))) {
    return mlir::failure();
  }
  RankedTensorType lead = withShape(logits, shape(labels));
  return site.give({lead, lead});
}

LogicalResult crossEntropyGrad(const InferSite& site, ValueRange operands) {
  for (auto [index, name] : {std::pair(1, "labels"), std::pair(2, "lse"), std::pair(3, "dloss")}) {
    if (failed(leading(site, 1, operands[0], operands[index], name))) {
      return mlir::failure();
    }
  }
  return same(site, operands[0]);
}

LogicalResult pick(const InferSite& site, Value x, Value labels) {
  if (failed(leading(site, 1, x, labels, "labels"))) {
    return mlir::failure();
  }
  return site.give({withShape(x, shape(labels))});
}

namespace {

LogicalResult checkQueriesAndKeys(const InferSite& site, Value q, Value k, Value v) {
  if (rank(q) != 4 || rank(k) != 4 || rank(v) != 4) {
    return site.error(1, "q, k, v are " + printType(q) + ", " + printType(k) + ", " + printType(v) +
                             "; each needs four dimensions [B, H, T, D]");
  }
  if (shape(q)[0] != shape(k)[0] || shape(q)[1] % shape(k)[1] != 0 || shape(q)[3] != shape(k)[3] ||
      element(q) != element(k)) {
    return site.error(2, "q is " + printType(q) + " and k is " + printType(k) +
                             "; they may differ only in dimension 2, and in dimension 1 where the heads of k divide "
                             "those of q");
  }
  return sameTypeAs(site, 3, k, v, "v");
}

LogicalResult checkBias(const InferSite& site, Value q, Value k, Value bias) {
  const SmallVector<int64_t> scores = {shape(q)[0], shape(q)[1], shape(q)[2], shape(k)[2]};
  bool fits = rank(bias) == 4 && element(bias) == element(q) && shape(bias)[3] == scores[3];
  for (int64_t d = 0; fits && d < 3; ++d) {
    fits = shape(bias)[d] == scores[d] || shape(bias)[d] == 1;
  }
  if (!fits) {
    return site.error(5, "bias is " + printType(bias) + "; it must have q's element type and broadcast against the " +
                             "scores " + list(scores) + ", with a size for each key");
  }
  return success();
}

LogicalResult checkAttention(const InferSite& site, Value q, Value k, Value v, Value bias) {
  if (failed(checkQueriesAndKeys(site, q, k, v))) {
    return mlir::failure();
  }
  return bias ? checkBias(site, q, k, bias) : success();
}

// Operand i where there is one.
Value optional(ValueRange operands, size_t i) {
  return i < operands.size() ? operands[i] : Value();
}

}  // namespace

LogicalResult attention(const InferSite& site, ValueRange operands) {
  Value q = operands[0];
  if (failed(checkAttention(site, q, operands[1], operands[2], optional(operands, 3)))) {
    return mlir::failure();
  }
  return site.give({plainType(q), withShape(q, shape(q).drop_back())});
}

LogicalResult attentionGrad(const InferSite& site, ValueRange operands, bool biasGradient) {
  Value q = operands[0];
  Value bias = optional(operands, 6);
  if (failed(checkAttention(site, q, operands[1], operands[2], bias)) ||
      failed(sameTypeAs(site, 4, q, operands[3], "out")) || failed(sameTypeAs(site, 4, q, operands[5], "dout")) ||
      failed(leading(site, 4, q, operands[4], "lse"))) {
    return mlir::failure();
  }
  if (biasGradient && !bias) {
    return site.error(6, "bias_gradient is true, but there is no bias");
  }
  SmallVector<Type> types = {plainType(q), plainType(operands[1]), plainType(operands[2])};
  if (biasGradient) {
    types.push_back(plainType(bias));
  }
  return site.give(types);
}

LogicalResult rotary(const InferSite& site, Value x, Value cos, Value sin) {
  if (rank(x) < 2 || shape(x).back() % 2 != 0) {
    return site.error(1, "x is " + printType(x) + "; it needs rows of pairs, [..., T, D] with an even D");
  }
  RankedTensorType table = withShape(x, {shape(x)[rank(x) - 2], shape(x).back() / 2});
  for (auto [value, name] : {std::pair(cos, "cos"), std::pair(sin, "sin")}) {
    if (plainType(value) != table) {
      return site.error(2, Twine(name) + " is " + printType(value) + "; beside x, which is " + printType(x) +
                               ", it must be " + list(table.getShape()) + " of the same element type");
    }
  }
  return same(site, x);
}

LogicalResult dropout(const InferSite& site, Value x, Value step, double rate) {
  if (failed(scalar(site, 1, step, "step"))) {
    return mlir::failure();
  }
  if (!(rate >= 0 && rate < 1)) {
    return site.error(2, "rate is " + std::to_string(rate) + "; it must lie in [0, 1)");
  }
  return same(site, x);
}

LogicalResult update(const InferSite& site, ValueRange operands, unsigned tensors, unsigned results) {
  for (unsigned i = 1; i < operands.size(); ++i) {
    std::string name = "operand " + std::to_string(i);
    if (failed(i < tensors ? sameTypeAs(site, 1, operands[0], operands[i], name)
                           : scalar(site, 2, operands[i], name))) {
      return mlir::failure();
    }
  }
  return site.give(SmallVector<Type>(results, plainType(operands[0])));
}

}  // namespace infer
}  // namespace weft::ir
